"""Turns edge lists and feature tables of any size into stores: streamed, sorted on disk, in bounded memory.

Used by the owner before a vault serves, so its errors may name values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import ContextError
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import TableNames, feature_blocks, read_features
from privcfs.tables.store import FEATURES, MOST_NODES, PAIRS, StoreWriter

Numbers = NDArray[np.int64]
RUN = 2**23  # keys that are sorted in memory: two a pair
BLOCK = 2**22  # keys that are merged at a time


def import_pairs(source: Path, out: Path, reader: EdgeListReader) -> None:
    """An edge list (.csv or .parquet) as a store of neighbour lists; refuses what `reader` would refuse."""
    count = reader.nodes.count
    if count > MOST_NODES:
        reader.refuse(f"has {count} nodes", f"a store holds at most {MOST_NODES}")
    with StoreWriter(out, PAIRS, reader.fault) as writer:
        runs = _runs((_keys(batch, reader) for batch in reader.batches(source)), writer.folder)
        _write_lists(_distinct(_merged(runs), reader), count, writer)
        for run in runs:
            run.unlink()
        writer.finish(count, count)


def import_features(source: Path, out: Path, node_ids: Sequence[str] = ()) -> int:
    """A feature table (.npy, .npz, .csv or .parquet) as a store; how many rows it has. Errors name `node_ids`."""
    rows, width, total = 0, None, 0
    with StoreWriter(out, FEATURES, ContextError) as writer:
        writer.append("starts", np.zeros(1, np.int64))
        for table, names in feature_blocks(source, TableNames(nodes=node_ids)):
            block = read_features(table, ContextError, replace(names, first_row=rows))
            if width not in (None, block.shape[1]):
                raise ContextError(f"features has rows of {width} and of {block.shape[1]} columns; match them.")
            writer.append("starts", block.indptr[1:].astype(np.int64) + total)
            writer.append("numbers", block.indices)
            writer.append("values", block.data)
            rows, width, total = rows + block.shape[0], int(block.shape[1]), total + block.nnz
        if not rows or width is None:
            raise ContextError(f"features file {source.name} has no rows; give one row of numbers per node.")
        writer.finish(rows, width)
    return rows


def _keys(rows: Numbers, reader: EdgeListReader) -> Numbers:
    """Each row in both directions as one whole number: node, other node, and whether the direction is turned."""
    loops = rows[:, 0] == rows[:, 1]
    one, other = rows[~loops].T
    count = reader.nodes.count
    return np.concatenate([(one * count + other) * 2, (other * count + one) * 2 + 1])


def _runs(batches: Iterable[Numbers], folder: Path) -> list[Path]:
    """Sorted runs on disk."""
    runs: list[Path] = []
    pending: list[Numbers] = []

    def write() -> None:
        runs.append(folder / f"run{len(runs)}")
        np.sort(np.concatenate(pending)).tofile(runs[-1])
        pending.clear()

    for batch in batches:
        pending.append(batch)
        if sum(map(len, pending)) >= RUN:
            write()
    if pending:
        write()
    return runs


def _merged(runs: Sequence[Path]) -> Iterator[Numbers]:
    """All keys in ascending order. A block ends at the least of the runs' last keys, so that none is passed over."""
    left = dict.fromkeys(runs, 0)
    while True:
        share = max(BLOCK // max(len(left), 1), 1)
        heads = {run: np.fromfile(run, np.int64, share, offset=8 * place) for run, place in left.items()}
        left = {run: left[run] for run, head in heads.items() if len(head)}
        if not left:
            return
        pivot = min(int(heads[run][-1]) for run in left)
        taken = {run: int(np.searchsorted(heads[run], pivot, side="right")) for run in left}
        yield np.sort(np.concatenate([heads[run][:stop] for run, stop in taken.items()]))
        left = {run: place + taken[run] for run, place in left.items()}


def _distinct(blocks: Iterable[Numbers], reader: EdgeListReader) -> Iterator[Numbers]:
    """Each pair once, as node times count plus other node."""
    last = -2
    for keys in blocks:
        before = np.concatenate([[last], keys[:-1]])
        repeated = keys[keys == before]
        if len(repeated) and not reader.simplify:
            u, w = divmod(int(repeated[0]) >> 1, reader.nodes.count)
            reader.refuse_repeat(*((w, u) if repeated[0] & 1 else (u, w)))
        yield keys[keys >> 1 != before >> 1] >> 1
        last = int(keys[-1])


def _write_lists(pairs: Iterable[Numbers], count: int, writer: StoreWriter) -> None:
    """Writes neighbours in the order in which they come, and where the list of each node starts once that is known."""
    total = node = 0
    for block in pairs:
        owner = block // count
        writer.append("others", block - owner * count)
        stop = int(owner[-1]) + 1 if len(owner) else node
        for start in range(node, stop, BLOCK):
            writer.append("starts", total + np.searchsorted(owner, np.arange(start, min(start + BLOCK, stop))))
        total, node = total + len(block), max(stop, node)
    for start in range(node, count + 1, BLOCK):
        writer.append("starts", np.full(min(BLOCK, count + 1 - start), total))
