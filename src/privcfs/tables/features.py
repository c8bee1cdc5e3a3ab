"""Feature tables: one row of finite numbers per node, whole or some rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import ContextError
from privcfs.tables.parsing import (
    CsvLayout,
    Description,
    Fault,
    arrow,
    csv_batches,
    csv_rows,
    first_line,
    is_number,
    parquet_batches,
    refuse_unreadable,
    shown,
)
from privcfs.tables.store import FEATURES, SUFFIX, open_store

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

CELLS = 2**23  # how many cells are read at a time where a table is read in blocks
READ_BYTES = 2**22  # how many bytes of a CSV file are read at a time


@final
@dataclass(frozen=True, slots=True)
class TableNames:
    """What errors call the rows and columns of a feature table: names of columns and nodes, where they have names."""

    columns: Sequence[str] = ()
    nodes: Sequence[str] = ()
    first_row: int = 0  # the number of the first row, where a table is read in parts

    def column(self, number: int) -> str:
        """Such as: column 'age'."""
        return f"column {shown(self.columns[number]) if number < len(self.columns) else number}"

    def node(self, row: int) -> str:
        """Such as: node 'ann'; nothing where nodes have no names."""
        number = self.first_row + row
        return f"node {shown(self.nodes[number])}" if number < len(self.nodes) else ""


UNNAMED = TableNames()


def read_features(
    source: str | Path | ArrayLike | sp.sparray | sp.spmatrix, fault: Fault, names: TableNames = UNNAMED
) -> sp.csr_array:
    """A finite float32 matrix, one row per node, from .csv, .npy, .npz (SciPy sparse), a store or an array.

    `names` is for errors alone; where a CSV file has a header, it names the columns.
    """
    if isinstance(source, str | Path) and Path(source).suffix == SUFFIX:
        return _stored_features(Path(source), fault)
    raw, names = _load_features(Path(source), fault, names) if isinstance(source, str | Path) else (source, names)
    if not sp.issparse(raw):
        try:
            dense = np.asarray(raw)
        except ValueError:
            raise fault("features has rows of different lengths; give one row of numbers per node.") from None
        if dense.ndim != 2 or not (np.issubdtype(dense.dtype, np.number) or dense.dtype == np.bool_):
            raise fault(f"features has shape {dense.shape} and type {dense.dtype}; give one row of numbers per node.")
        raw = dense
    try:
        if hasattr(raw, "check_format"):
            raw.check_format(full_check=True)
        with np.errstate(over="ignore"):  # what is too large for 32 bits becomes infinite, and is refused below
            matrix = sp.csr_array(raw, dtype=np.float32, copy=True)
    except (ValueError, TypeError) as error:
        raise fault(f"features is not a valid table of numbers ({error}); write it again.") from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all():
        _refuse_value(matrix, fault, names)
    return matrix


def _refuse_value(matrix: sp.csr_array, fault: Fault, names: TableNames) -> NoReturn:
    """Names the first value that is missing or infinite."""
    entry = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    node = f" ({names.node(row)})" if names.node(row) else ""
    raise fault(
        f"features has a missing or infinite value ({matrix.data[entry]}) in row {names.first_row + row}{node}, "
        f"{names.column(int(matrix.indices[entry]))}; fill it in or drop the column."
    )


def _stored_features(path: Path, fault: Fault) -> sp.csr_array:
    """Features of a store, mapped into memory. They are not checked again: they were when the store was written."""
    store = open_store(path, FEATURES, fault)
    matrix = sp.csr_array((store.rows, store.columns), dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = (store.arrays[name] for name in ("starts", "numbers", "values"))
    return matrix


def _load_features(path: Path, fault: Fault, names: TableNames) -> tuple[Any, TableNames]:
    """The table in a file, and the names of its columns."""
    readers: dict[str, Callable[[Path], Any]] = {".npy": _npy, ".npz": _sparse_npz}
    if path.suffix not in (*readers, ".csv"):
        raise fault(f"features {path.name} has an unknown ending; use .csv, .npy or .npz (scipy.sparse.save_npz).")
    refuse_unreadable(path, "features", fault)
    if path.suffix == ".csv":
        names = replace(names, columns=feature_header(path, fault))
        return np.array(list(number_rows(path, fault, names)), np.float64), names
    try:
        return readers[path.suffix](path), names
    except Exception as error:
        raise fault(f"features file {path.name} cannot be read ({error}); is it complete?") from None


def _npy(path: Path) -> NDArray[Any]:
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array


def _sparse_npz(path: Path) -> Any:
    with path.open("rb") as file:
        return sp.load_npz(file)


def feature_header(path: Path, fault: Fault) -> Sequence[str]:
    """The names of a feature table's columns: its first line, unless a cell of it is a number."""
    cells = next((cells for _, cells in csv_rows(path, "features", fault) if cells), [])
    return () if any(map(is_number, cells)) else cells


def number_rows(path: Path, fault: Fault, names: TableNames) -> Iterator[list[float]]:
    """The rows of a CSV file of numbers, line by line; `names.columns` is its header, which is passed over.

    Empty lines are passed over, but in a table of one column an empty line between others is an empty cell.
    """
    header, width, row, empty = bool(names.columns), 0, 0, 0
    for line, cells in csv_rows(path, "features", fault):
        if not cells:
            empty = empty or line
            continue
        if empty and width == 1:
            line, cells = empty, [""]
        what = f"features file {path.name} cannot be read: line {line}"
        if width not in (0, len(cells)):
            raise fault(f"{what} has {len(cells)} cells, but the first row has {width}; match them.")
        width, empty = len(cells), 0
        if header:
            header = False
            continue
        try:
            yield [float(cell) for cell in cells]
        except ValueError:
            column = next(number for number, cell in enumerate(cells) if not is_number(cell))
            place = f"(row {row}{names.node(row) and ', ' + names.node(row)}), {names.column(column)}"
            raise fault(f"{what} {place}, holds {shown(cells[column])}; write a number, or drop the column.") from None
        row += 1


def open_arrays(path: Path) -> "NpzFile":
    """An .npz archive, opened so that a pickle inside it is an error."""
    archive: NpzFile = np.load(path, allow_pickle=False)
    return archive


def feature_blocks(path: Path, names: TableNames) -> Iterator[tuple[NDArray[Any] | sp.csr_array, TableNames]]:
    """Blocks of rows of a file of features, and the names of its columns."""
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
