"""Turns edge lists and feature tables of any size into stores: streamed, sorted on disk, in bounded memory.

Used by the owner before a vault serves, so its errors may name values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.columns import CsvLayout, Description, arrow, csv_batches, parquet_batches, shown
from privcfs.errors import ContextError
from privcfs.files import (
    EdgeListReader,
    TableNames,
    feature_header,
    first_line,
    is_header,
    number_rows,
    read_features,
    refuse_unreadable,
)
from privcfs.store import FEATURES, MOST_NODES, PAIRS, StoreWriter

Numbers = NDArray[np.int64]
RUN = 2**23  # keys that are sorted in memory: two a pair
BLOCK = 2**22  # keys that are merged at a time
CELLS = 2**23  # of a table, that are read at a time
READ_BYTES = 2**22
NAMED_BYTES = 2**26  # where nodes have names: looking them up begins with all of them, so it is done seldom


def import_pairs(source: Path, out: Path, reader: EdgeListReader) -> None:
    """An edge list (.csv or .parquet) as a store of neighbour lists; refuses what `reader` would refuse."""
    count = reader.nodes.count
    if count > MOST_NODES:
        reader.refuse(f"has {count} nodes", f"a store holds at most {MOST_NODES}")
    rows = reader.parquet_rows(source, CELLS) if source.suffix == ".parquet" else _csv_pairs(source, reader)
    with StoreWriter(out, PAIRS, reader.fault) as writer:
        runs = _runs((_keys(batch, reader) for batch in rows), writer.folder)
        _write_lists(_distinct(_merged(runs), reader), count, writer)
        for run in runs:
            run.unlink()
        writer.finish(count, count)


def import_features(source: Path, out: Path, node_ids: Sequence[str] = ()) -> int:
    """A feature table (.npy, .npz, .csv or .parquet) as a store; how many rows it has. Errors name `node_ids`."""
    rows, width, total = 0, None, 0
    with StoreWriter(out, FEATURES, ContextError) as writer:
        writer.append("starts", np.zeros(1, np.int64))
        for table, names in _feature_blocks(source, TableNames(nodes=node_ids)):
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
    _check_rows(rows, reader)
    loops = rows[:, 0] == rows[:, 1]
    one, other = rows[~loops].T
    count = reader.nodes.count
    return np.concatenate([(one * count + other) * 2, (other * count + one) * 2 + 1])


def _check_rows(rows: Numbers, reader: EdgeListReader) -> None:
    """Refuses what can be seen in some of the rows: a number that is no node, and a self-loop."""
    reader.check_range(rows)
    loops = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if loops.size and not reader.simplify:
        reader.refuse_loop(int(rows[loops[0], 0]))


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
    """All keys in order, block by block: whatever is at most the least of the runs' next block ends comes next."""
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
    """Neighbours as they come; where each node's begin as soon as that is known."""
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


def _csv_pairs(path: Path, reader: EdgeListReader) -> Iterator[Numbers]:
    """Some rows at a time; where they are wrong, the file is read again line by line, so that the error names one."""
    cells = first_line(path, reader.argument, reader.fault)
    if cells is None:
        return
    named = reader.nodes.numbers is not None
    kind = arrow().string() if named else arrow().int64()
    nodes = reader.node_columns()
    types = dict(zip(("source", "target", "weight"), (kind, kind, arrow().float64()), strict=True))
    width, size = max(min(len(cells), 3), 2), NAMED_BYTES if named else READ_BYTES
    first_row = 0
    try:
        for batch in csv_batches(path, CsvLayout(list(types)[:width], types, is_header(cells), size), reader.refuse):
            rows = nodes.rows(batch.columns, first_row)
            _check_rows(rows, reader)
            yield rows
            first_row += batch.num_rows
    except reader.fault:
        for _ in reader.csv_pairs(path):
            pass
        raise


def _feature_blocks(path: Path, names: TableNames) -> Iterator[tuple[NDArray[Any] | sp.csr_array, TableNames]]:
    """Some rows at a time, and what the columns are called."""
    refuse_unreadable(path, "features", ContextError)
    if path.suffix == ".npy":
        yield from ((block, names) for block in _npy_blocks(path))
    elif path.suffix == ".parquet":
        yield from _parquet_features(path, names)
    elif path.suffix == ".csv" and (cells := first_line(path, "features", ContextError)):
        yield from _csv_features(path, replace(names, columns=feature_header(path, ContextError)), len(cells))
    else:
        yield read_features(path, ContextError, names), names


def _npy_blocks(path: Path) -> Iterator[NDArray[Any]]:
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
        width = table.shape[1]
    except (ValueError, OSError, IndexError) as error:
        raise ContextError(f"features file {path.name} cannot be read ({error}); is it complete?") from None
    step = max(CELLS // max(width, 1), 1)
    yield from (np.asarray(table[start : start + step]) for start in range(0, len(table), step))


def _csv_features(path: Path, names: TableNames, width: int) -> Iterator[tuple[NDArray[Any], TableNames]]:
    """Where a cell is no number, the file is read again line by line, so that the error names the cell."""
    numbers = [str(number) for number in range(width)]
    types = dict.fromkeys(numbers, arrow().float64())
    layout = CsvLayout(numbers, types, bool(names.columns), READ_BYTES, empty_lines=width > 1)
    try:
        for batch in csv_batches(path, layout, _refuse_features):
            if any(column.null_count for column in batch.columns):
                _refuse_features("has an empty cell", "write a number there, or drop the column")
            yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns]), names
    except ContextError:
        for _ in number_rows(path, ContextError, names):
            pass
        raise


def _parquet_features(path: Path, names: TableNames) -> Iterator[tuple[NDArray[Any], TableNames]]:
    def check(table: Description) -> None:
        types = arrow().types
        for name, kind in table.columns.items():
            if not any(one(kind) for one in (types.is_integer, types.is_floating, types.is_boolean)):
                _refuse_features(f"column {shown(name)} holds {kind} values", "give numbers, or drop the column")
        columns.extend(table.columns)

    columns: list[str] = []
    for batch in parquet_batches(path, CELLS, check, _refuse_features):
        block = np.column_stack([column.cast("float64", safe=False).to_numpy(zero_copy_only=False) for column in batch])
        yield block, replace(names, columns=tuple(columns))


def _refuse_features(what: str, remedy: str) -> NoReturn:
    raise ContextError(f"features {what}; {remedy}.")
