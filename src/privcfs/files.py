"""Turns files and other libraries' objects into checked arrays; keeps nothing, and loads no pickle.

Used by the owner while loading, for public and for private input alike, so its errors may name lines and values:
they are raised before a vault serves.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.columns import Description, NodeColumns, arrow, parquet_batches, shown
from privcfs.errors import OwnerError
from privcfs.store import FEATURES, SUFFIX, open_store

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

WHOLE = re.compile(r"-?[0-9]{1,18}")
HEADERS = {("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")}
Fault = type[OwnerError]
NOWHERE = np.array([-1])
MOST_ROWS = 10_000_000  # of a Parquet file that is loaded into memory
CELLS = 2**20  # of a Parquet file that are looked at together while it is loaded


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes there are and, where they have names, the public table from name to number."""

    count: int
    numbers: Mapping[str, int] | None = None

    def number(self, text: str) -> int:
        """The node that `text` names; KeyError where there is none."""
        if self.numbers is not None:
            return self.numbers[text]
        if not WHOLE.fullmatch(text):
            raise KeyError(text)
        return int(text)

    def show(self, number: int) -> str:
        """A node as errors name it: its quoted name where nodes have names and it is one of them, or its number."""
        known = self.numbers is not None and 0 <= number < self.count
        return shown(next(islice(self.numbers or (), number, None))) if known else str(number)


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


@final
@dataclass(frozen=True, slots=True)
class EdgeListReader:
    """Reads one argument's pairs: `argument` and `fault` say who is to blame and how."""

    argument: str
    fault: Fault
    nodes: Nodes
    simplify: bool = False
    may_simplify: bool = False

    def read(self, source: str | Path | ArrayLike) -> NDArray[np.int64]:
        """Sorted unique pairs (u < w) of an undirected simple graph from a file or an (m, 2) array."""
        if isinstance(source, str | Path):
            path = Path(source)
            rows = self._parquet(path) if path.suffix == ".parquet" else self._csv(path)
        else:
            rows = self._array(source)
        return self.pairs(rows)

    def pairs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Checks ordered rows and merges both directions of a pair into one."""
        self.check_range(rows)
        if not self.simplify:
            self._refuse_loops_and_repeats(rows)
        return distinct(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1), self.nodes.count)

    def check_range(self, rows: NDArray[np.int64]) -> None:
        """Refuses a number that is no node."""
        if rows.size and (rows.min() < 0 or rows.max() >= self.nodes.count):
            outside = (rows < 0) | (rows >= self.nodes.count)
            pair = rows[outside.any(axis=1)][0]
            bad = int(pair[(pair < 0) | (pair >= self.nodes.count)][0])
            where = ", ".join(self.nodes.show(int(node)) for node in pair)
            self._refuse_number("", bad, "" if self.nodes.numbers is None else f" (in the pair {where})")

    def _refuse_number(self, where: str, bad: int, more: str = "") -> NoReturn:
        what = f"{where}names node {bad}{more}, but nodes are 0 to {self.nodes.count - 1}"
        self.refuse(what, "check number_of_nodes")

    def _refuse_loops_and_repeats(self, rows: NDArray[np.int64]) -> None:
        loops = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if loops.size:
            self.refuse_loop(int(rows[loops[0], 0]))
        keys = rows[:, 0] * self.nodes.count + rows[:, 1]
        unique, counts = np.unique(keys, return_counts=True)
        if unique.size < keys.size:
            self.refuse_repeat(*divmod(int(unique[counts > 1][0]), self.nodes.count))

    def refuse_loop(self, node: int, where: str = "") -> NoReturn:
        """A self-loop is the owner's to remove, or to allow."""
        self.refuse(f"{where}joins node {self.nodes.show(node)} to itself", self._simpler())

    def refuse_repeat(self, u: int, w: int) -> NoReturn:
        """A repeated row is the owner's to remove, or to allow."""
        self.refuse(f"lists the pair {self.nodes.show(u)}, {self.nodes.show(w)} more than once", self._simpler())

    def _simpler(self) -> str:
        how = "simplify=True (simplify = true in vault.toml, --simplify for privcfs import)"
        allowed = f", or pass {how} to drop self-loops and merge repeats"
        return "remove it" + (allowed if self.may_simplify else "")

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Says what is wrong with the argument, and what to do."""
        raise self.fault(f"{self.argument} {what}; {remedy}.")

    def _array(self, source: ArrayLike) -> NDArray[np.int64]:
        try:
            array = np.asarray(source)
        except ValueError:
            self.refuse("has rows of different lengths", "give two node numbers per row")
        if array.size == 0:
            return np.empty((0, 2), np.int64)
        if array.ndim != 2 or array.shape[1] != 2:
            self.refuse(f"has shape {array.shape}", "give one row of two node numbers per pair")
        if not np.issubdtype(array.dtype, np.integer) or array.dtype == np.uint64:
            self.refuse(f"holds {array.dtype} values", "give whole node numbers")
        return array.astype(np.int64)

    def _csv(self, path: Path) -> NDArray[np.int64]:
        return np.array(list(self.csv_pairs(path)), np.int64).reshape(-1, 2)

    def csv_pairs(self, path: Path) -> Iterator[tuple[int, int]]:
        """The pairs of a CSV file, line by line, so that errors name the line."""
        for line, cells in csv_rows(path, self.argument, self.fault):
            pair = self._row(line, cells) if cells else None
            if pair is not None:
                yield pair

    def _row(self, line: int, cells: list[str]) -> tuple[int, int] | None:
        """One line's pair; none for a header or for a weight of 0, which means no edge."""
        if line == 1 and is_header(cells):
            return None
        if len(cells) not in (2, 3):
            self.refuse(f"line {line} has {len(cells)} columns", "write source,target or source,target,weight")
        pair = self._pair(cells)
        if pair is None:
            known = "node numbers" if self.nodes.numbers is None else "names of node_ids"
            what = f"line {line} names an unknown node in {shown(','.join(cells[:2]))}"
            self.refuse(what, f"use {known}; a header must read source,target")
        for node in pair:
            if not 0 <= node < self.nodes.count:
                self._refuse_number(f"line {line} ", node)
        if len(cells) == 3 and not self._weight(line, cells[2]):
            return None
        if pair[0] == pair[1] and not self.simplify:
            self.refuse_loop(pair[0], f"line {line} ")
        return pair

    def _pair(self, cells: list[str]) -> tuple[int, int] | None:
        try:
            return self.nodes.number(cells[0]), self.nodes.number(cells[1])
        except KeyError:
            return None

    def _weight(self, line: int, text: str) -> bool:
        try:
            weight = float(text)
        except ValueError:
            weight = float("nan")
        if not np.isfinite(weight):
            self.refuse(f"line {line} has the weight {shown(text)}", "write a finite number; 0 means no edge")
        return weight != 0

    def _parquet(self, path: Path) -> NDArray[np.int64]:
        return np.concatenate([np.empty((0, 2), np.int64), *self.parquet_rows(path, CELLS, MOST_ROWS)])

    def parquet_rows(self, path: Path, cells: int, most: int | None = None) -> Iterator[NDArray[np.int64]]:
        """The rows of a Parquet file, `cells` cells at a time; more than `most` rows are refused unread."""
        nodes = self.node_columns()

        def check(table: Description) -> None:
            self._check_description(path, table, most)
            if table.rows:
                nodes.check_types(table)

        refuse_unreadable(path, self.argument, self.fault)
        first_row = 0
        for columns in parquet_batches(path, cells, check, self.refuse):
            yield nodes.rows(columns, first_row)
            first_row += len(columns[0])

    def node_columns(self) -> NodeColumns:
        """What looks up the nodes of Arrow's columns."""
        names = None if self.nodes.numbers is None else arrow().array(list(self.nodes.numbers), "string")
        return NodeColumns(self.refuse, names)

    def _check_description(self, path: Path, table: Description, most: int | None) -> None:
        """Refuses what the file's own description already shows to be wrong."""
        width, possible = len(table.columns), self.nodes.count * (self.nodes.count - 1)
        if width not in (2, 3):
            self.refuse(f"{path.name} has {width} columns", "keep source, target and at most a weight")
        if most is not None and table.rows > most:
            what = f"file {path.name} has {table.rows} rows; at most {most} are loaded into memory"
            self.refuse(what, "make a store of it with privcfs import")
        if width == 2 and table.rows > possible and not self.simplify:
            what = (
                f"has {table.rows} rows, but {self.nodes.count} nodes have at most {possible} pairs in both directions"
            )
            self.refuse(what, "remove repeated rows and self-loops")


def matrix_rows(matrix: Any, nodes: Nodes, fault: Fault) -> NDArray[np.int64]:
    """The non-zero entries of a SciPy sparse adjacency matrix."""
    if not sp.issparse(matrix) or matrix.shape != (nodes.count, nodes.count):
        raise fault(f"edges must be a sparse matrix of shape ({nodes.count}, {nodes.count}).")
    entries = sp.coo_array(matrix)
    kept = entries.data != 0
    return np.column_stack([entries.coords[0][kept], entries.coords[1][kept]]).astype(np.int64)


def edge_index_rows(data: Any, fault: Fault) -> NDArray[Any]:
    """The edges of a PyTorch Geometric `Data` whose weight is not 0."""
    edge_index = np.asarray(getattr(data, "edge_index", None))
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise fault(f"edges.edge_index has shape {edge_index.shape}; it must be (2, number of edges).")
    weight = getattr(data, "edge_weight", None)
    rows: NDArray[Any] = edge_index.T
    return rows if weight is None else rows[np.asarray(weight) != 0]


def networkx_rows(graph: Any, nodes: Nodes, fault: Fault) -> NDArray[np.int64]:
    """The edges of a networkx graph whose weight is not 0."""
    try:
        listed = [(u, w) for u, w, weight in graph.edges(data="weight", default=1) if weight != 0]
        rows = [[nodes.number(str(u)), nodes.number(str(w))] for u, w in listed]
    except KeyError:
        raise fault("edges names a node that is neither a number nor in node_ids; pass node_ids.") from None
    return np.array(rows, np.int64).reshape(-1, 2)


def gather(starts: NDArray[np.integer], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For some rows of a table stored row after row: each entry's position in `rows`, and where the entry stands."""
    begins, counts = starts[rows], starts[rows + 1] - starts[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    return owner, np.arange(len(owner)) + (begins - np.cumsum(counts) + counts)[owner]


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


def places(nodes: NDArray[np.integer], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each wanted node stands among sorted ones; -1 for those that do not."""
    place = np.searchsorted(nodes, wanted)
    return np.where(np.concatenate([nodes, NOWHERE])[place] == wanted, place, -1)


def _stored_features(path: Path, fault: Fault) -> sp.csr_array:
    """Mapped, and so not looked at here: what is in a store was checked when it was written."""
    store = open_store(path, FEATURES, fault)
    matrix = sp.csr_array((store.rows, store.columns), dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = (store.arrays[name] for name in ("starts", "numbers", "values"))
    return matrix


def neighbour_lists(pairs: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Different pairs as sorted neighbour lists: where each node's list begins, and the neighbours."""
    keys = np.sort(np.concatenate([pairs[:, 0] * count + pairs[:, 1], pairs[:, 1] * count + pairs[:, 0]]))
    nodes, others = np.divmod(keys, count)
    return np.searchsorted(nodes, np.arange(count + 1)), others


def distinct(pairs: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Each pair once, in order."""
    keys = np.sort(pairs[:, 0] * count + pairs[:, 1])
    return np.column_stack(np.divmod(keys[np.diff(keys, prepend=-1) > 0], count))


def read_node_ids(source: str | Path | Sequence[str], fault: Fault) -> tuple[str, ...]:
    """Names of the nodes in order: a sequence, or a file with one name per line."""
    if isinstance(source, str | Path):
        source = _text(Path(source), "node_ids", fault).splitlines()
    try:
        names = tuple(str(name).strip() for name in source)
    except TypeError:
        raise fault("node_ids must be a list of names or a file with one name per line.") from None
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name or not name.isprintable():
            raise fault(
                f"node_ids has an empty or unprintable name, {shown(name)}, at position {position} (counted from 0); "
                "give every node a plain name."
            )
        if name in seen:
            raise fault(f"node_ids names {shown(name)} twice; every node needs a name of its own.")
        seen.add(name)
    return names


def _load_features(path: Path, fault: Fault, names: TableNames) -> tuple[Any, TableNames]:
    """A table and what its columns are called."""
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


def first_line(path: Path, argument: str, fault: Fault) -> list[str] | None:
    """The cells of a table's first line; none for an empty file."""
    return next((cells for _, cells in csv_rows(path, argument, fault)), None)


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first line of an edge list names its columns."""
    return tuple(cell.lower() for cell in cells[:2]) in HEADERS


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def open_arrays(path: Path) -> "NpzFile":
    """An .npz archive, opened so that a pickle inside it is an error."""
    archive: NpzFile = np.load(path, allow_pickle=False)
    return archive


def _text(path: Path, argument: str, fault: Fault) -> str:
    refuse_unreadable(path, argument, fault)
    try:
        return path.read_text(encoding="utf-8-sig")
    except ValueError:
        raise fault(f"{argument} file {path.name!r} is not readable UTF-8 text; is it the right file?") from None


def refuse_unreadable(path: Path, argument: str, fault: Fault) -> None:
    """Opens a file for a moment, and says why where that fails."""
    try:
        with path.open("rb"):
            return
    except FileNotFoundError:
        raise fault(f"{argument} file {path} does not exist; check the path.") from None
    except IsADirectoryError:
        raise fault(f"{argument} file {path} is a directory; name a file.") from None
    except PermissionError:
        raise fault(f"{argument} file {path} cannot be read: permission denied; let this user read it.") from None
    except (OSError, ValueError) as error:
        raise fault(f"{argument} file {str(path)[:200]} cannot be read: {error}; check path and disk.") from None


def csv_rows(path: Path, argument: str, fault: Fault) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file with their numbers, cells without the blanks around them; an empty line has no cells."""
    refuse_unreadable(path, argument, fault)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            for cells in lines:
                yield lines.line_num, [cell.strip() for cell in cells]
    except ValueError:
        raise fault(f"{argument} file {path.name!r} is not readable UTF-8 text; is it the right file?") from None
    except OSError as error:
        raise fault(f"{argument} file {path} cannot be read: {error.strerror}; check the disk.") from None
    except csv.Error as error:
        raise fault(f"{argument} file {path.name} is not a CSV table ({error}); separate cells by commas.") from None
