"""Turns edge lists and feature tables of any size into stores: streamed, sorted on disk, in bounded memory.

Used by the owner before a vault serves, so its errors may name values.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import ContextError, MissingDependency
from privcfs.files import EdgeListReader, first_line, is_header, is_number, read_features
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
    table = _parquet_columns(source, reader) if source.suffix == ".parquet" else _csv_columns(source, reader)
    names = None if reader.nodes.numbers is None else _arrow().array(list(reader.nodes.numbers), "string")
    rows = (_node_rows(columns, reader, names) for columns in table)
    with StoreWriter(out, PAIRS, reader.fault) as writer:
        runs = _runs((_keys(batch, reader) for batch in rows), writer.folder)
        _write_lists(_distinct(_merged(runs), reader), count, writer)
        for run in runs:
            run.unlink()
        writer.finish(count, count)


def import_features(source: Path, out: Path) -> int:
    """A feature table (.npy, .npz, .csv or .parquet) as a store; how many rows it has."""
    rows, width, total = 0, None, 0
    with StoreWriter(out, FEATURES, ContextError) as writer:
        writer.append("starts", np.zeros(1, np.int64))
        for table in _feature_blocks(source):
            block = read_features(table, ContextError, first_row=rows)
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
    reader.check_range(rows)
    loops = rows[:, 0] == rows[:, 1]
    if loops.any() and not reader.simplify:
        reader.refuse_loop(int(rows[loops][0, 0]))
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


def _csv_columns(path: Path, reader: EdgeListReader) -> Iterator[Sequence[Any]]:
    arrow = _arrow()
    cells = first_line(path, reader.argument, reader.fault)
    if cells is None:
        return
    named = reader.nodes.numbers is not None
    kind = arrow.string() if named else arrow.int64()
    types = dict(zip(("source", "target", "weight"), (kind, kind, arrow.float64()), strict=True))
    table = _Table(
        list(types)[: max(min(len(cells), 3), 2)], types, is_header(cells), NAMED_BYTES if named else READ_BYTES
    )
    for batch in _csv_batches(path, table, reader.refuse):
        yield batch.columns


def _parquet_columns(path: Path, reader: EdgeListReader) -> Iterator[Sequence[Any]]:
    for batch in _parquet_batches(path, reader.refuse):
        if batch.num_columns not in (2, 3):
            reader.refuse(f"{path.name} has {batch.num_columns} columns", "keep source, target and at most a weight")
        yield batch.columns


def _node_rows(columns: Sequence[Any], reader: EdgeListReader, names: Any) -> Numbers:
    """Two columns of nodes, without the rows whose weight is 0."""
    rows = np.column_stack([_numbered(column, reader, names) for column in columns[:2]])
    if len(columns) == 2:
        return rows
    try:
        weights = np.asarray(columns[2].cast("float64", safe=False).to_numpy(zero_copy_only=False))
    except _arrow().ArrowException:
        reader.refuse("has a weight that is no number", "write a finite number; 0 means no edge")
    if not np.isfinite(weights).all():
        reader.refuse("has a weight that is missing or infinite", "write a finite number; 0 means no edge")
    kept: Numbers = rows[weights != 0]
    return kept


def _numbered(column: Any, reader: EdgeListReader, names: Any) -> Numbers:
    """A column of node numbers, or of names where nodes have names."""
    arrow = _arrow()
    known = "node numbers" if names is None else "names of node_ids"
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = arrow.types
    plain = (kind.is_integer, kind.is_string, kind.is_large_string, kind.is_decimal)
    if column.null_count or not any(one(column.type) for one in plain):
        reader.refuse("names an unknown node, or none, in some row", f"use {known}")
    try:
        if names is None:
            found = column.cast("int64")
        else:
            text = arrow.compute.utf8_trim_whitespace(column.cast("string"))
            found = arrow.compute.index_in(text, value_set=names)
    except arrow.ArrowException:
        reader.refuse("names an unknown node in some row", f"use {known}")
    if found.null_count:
        unknown = text.filter(found.is_null())[0].as_py()
        reader.refuse(f"names an unknown node {unknown!r}", f"use {known}; a header must read source,target")
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _feature_blocks(path: Path) -> Iterator[NDArray[Any] | sp.csr_array]:
    """Some rows at a time."""
    if path.suffix == ".npy" and path.exists():
        try:
            table = np.load(path, mmap_mode="r", allow_pickle=False)
            width = table.shape[1]
        except (ValueError, OSError, IndexError) as error:
            raise ContextError(f"features file {path.name} cannot be read ({error}); is it complete?") from None
        step = max(CELLS // max(width, 1), 1)
        yield from (np.asarray(table[start : start + step]) for start in range(0, len(table), step))
    elif path.suffix == ".parquet":
        for batch in _parquet_batches(path, _refuse_features):
            yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    elif path.suffix == ".csv" and (cells := first_line(path, "features", ContextError)):
        names = [str(number) for number in range(len(cells))]
        types = dict.fromkeys(names, _arrow().float64())
        table = _Table(names, types, not any(map(is_number, cells)), READ_BYTES)
        for batch in _csv_batches(path, table, _refuse_features):
            yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    else:
        yield read_features(path, ContextError)


def _refuse_features(what: str, remedy: str) -> NoReturn:
    raise ContextError(f"features {what}; {remedy}.")


class _Table(NamedTuple):
    """How a CSV file is read."""

    names: list[str]
    types: dict[str, Any]
    header: bool
    bytes: int  # at a time


def _csv_batches(path: Path, table: _Table, refuse: Any) -> Iterator[Any]:
    arrow = _arrow()
    try:
        with arrow.csv.open_csv(
            path,
            arrow.csv.ReadOptions(column_names=table.names, skip_rows=int(table.header), block_size=table.bytes),
            arrow.csv.ParseOptions(),
            arrow.csv.ConvertOptions(column_types=table.types, null_values=[""], strings_can_be_null=True),
        ) as batches:
            yield from batches
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        refuse(f"file {path.name} cannot be read ({_first_words(error)})", "mend that line")


def _parquet_batches(path: Path, refuse: Any) -> Iterator[Any]:
    _arrow()
    import pyarrow.parquet

    if not path.exists():
        refuse(f"file {path} does not exist", "check the path")
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            yield from table.iter_batches(batch_size=max(CELLS // max(table.metadata.num_columns, 1), 1))
    except (pyarrow.ArrowException, OSError):
        refuse(f"file {path.name} is not a readable Parquet file", "is it complete?")


def _first_words(error: Exception) -> str:
    return str(error).splitlines()[0][:200]


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    except ImportError:
        raise MissingDependency("privcfs import needs pyarrow; run: pip install 'privcfs[parquet]'.") from None
    return pyarrow
