"""Turns files and other libraries' objects into checked arrays; keeps nothing, and loads no pickle.

Used by the owner while loading, for public and for private input alike, so its errors may name lines and values:
they are raised before a vault serves.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import MissingDependency, OwnerError
from privcfs.store import FEATURES, SUFFIX, open_store

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile

WHOLE = re.compile(r"-?[0-9]{1,18}")
HEADERS = {("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")}
Fault = type[OwnerError]
NOWHERE = np.array([-1])


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
            bad = int(rows[(rows < 0) | (rows >= self.nodes.count)][0])
            self.refuse(f"names node {bad}, but nodes are 0 to {self.nodes.count - 1}", "check number_of_nodes")

    def _refuse_loops_and_repeats(self, rows: NDArray[np.int64]) -> None:
        loops = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if loops.size:
            self.refuse_loop(int(rows[loops[0], 0]))
        keys = rows[:, 0] * self.nodes.count + rows[:, 1]
        unique, counts = np.unique(keys, return_counts=True)
        if unique.size < keys.size:
            self.refuse_repeat(*divmod(int(unique[counts > 1][0]), self.nodes.count))

    def refuse_loop(self, node: int) -> NoReturn:
        """A self-loop is the owner's to remove, or to allow."""
        self.refuse(f"joins node {node} to itself", self._simpler())

    def refuse_repeat(self, u: int, w: int) -> NoReturn:
        """So is a row that comes twice."""
        self.refuse(f"lists the pair {u}, {w} more than once", self._simpler())

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
        rows = [pair for line, cells in _csv_rows(path, self.argument, self.fault) if (pair := self._row(line, cells))]
        return np.array(rows, np.int64).reshape(-1, 2)

    def _row(self, line: int, cells: list[str]) -> tuple[int, int] | None:
        """One line's pair; none for a header or for a weight of 0, which means no edge."""
        if line == 1 and is_header(cells):
            return None
        if len(cells) not in (2, 3):
            self.refuse(f"line {line} has {len(cells)} columns", "write source,target or source,target,weight")
        pair = self._pair(cells)
        if pair is None:
            known = "node numbers" if self.nodes.numbers is None else "names of node_ids"
            what = f"line {line} names an unknown node in {','.join(cells[:2])!r}"
            self.refuse(what, f"use {known}; a header must read source,target")
        return pair if len(cells) == 2 or self._weight(line, cells[2]) else None

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
            self.refuse(f"line {line} has the weight {text!r}", "write a finite number; 0 means no edge")
        return weight != 0

    def _parquet(self, path: Path) -> NDArray[np.int64]:
        table = _parquet_columns(path, self.argument, self.fault)
        if len(table) not in (2, 3):
            self.refuse(f"{path.name} has {len(table)} columns", "keep source, target and at most a weight")
        columns = [[str(cell) for cell in column] for column in table]
        rows = [self._row(line, list(cells)) for line, cells in enumerate(zip(*columns, strict=True), start=2)]
        return np.array([row for row in rows if row], np.int64).reshape(-1, 2)


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
    source: str | Path | ArrayLike | sp.sparray | sp.spmatrix, fault: Fault, *, first_row: int = 0
) -> sp.csr_array:
    """A finite float32 matrix, one row per node, from .csv, .npy, .npz (SciPy sparse), a store or an array."""
    if isinstance(source, str | Path) and Path(source).suffix == SUFFIX:
        return _stored_features(Path(source), fault)
    raw = _load_features(Path(source), fault) if isinstance(source, str | Path) else source
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
        matrix = sp.csr_array(raw, dtype=np.float32, copy=True)
    except (ValueError, TypeError) as error:
        raise fault(f"features is not a valid table of numbers ({error}); write it again.") from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        raise fault(
            f"features has a missing or infinite value in row {first_row + row}; fill it in or drop the column."
        )
    return matrix


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
    if not all(name.isprintable() and name for name in names):
        raise fault("node_ids has an empty or unprintable name; give every node a plain name.")
    if len(set(names)) < len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise fault(f"node_ids names {repeated!r} twice; every node needs a name of its own.")
    return names


def _load_features(path: Path, fault: Fault) -> Any:
    readers: dict[str, Callable[[Path], Any]] = {".npy": _npy, ".npz": _sparse_npz, ".csv": _number_table}
    if path.suffix not in readers:
        raise fault(f"features {path.name} has an unknown ending; use .csv, .npy or .npz (scipy.sparse.save_npz).")
    try:
        return readers[path.suffix](path)
    except FileNotFoundError:
        raise fault(f"features file {path} does not exist; check the path.") from None
    except Exception as error:
        raise fault(f"features file {path.name} cannot be read ({error}); is it complete?") from None


def _npy(path: Path) -> NDArray[Any]:
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array


def _sparse_npz(path: Path) -> Any:
    with path.open("rb") as file:
        return sp.load_npz(file)


def _number_table(path: Path) -> NDArray[np.float64]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if rows and not any(is_number(cell) for cell in rows[0]):
        rows = rows[1:]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("rows differ in length")
    return np.array([[float(cell) for cell in row] for row in rows], np.float64)


def first_line(path: Path, argument: str, fault: Fault) -> list[str] | None:
    """The cells of a table's first line; none for an empty file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            cells = next(csv.reader(file), None)
    except FileNotFoundError:
        raise fault(f"{argument} file {path} does not exist; check the path.") from None
    except (OSError, ValueError, csv.Error):
        raise fault(f"{argument} file {path.name!r} is not readable UTF-8 text; is it the right file?") from None
    return None if cells is None else [cell.strip() for cell in cells]


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
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise fault(f"{argument} file {path} does not exist; check the path.") from None
    except (OSError, ValueError):
        raise fault(f"{argument} file {path.name!r} is not readable UTF-8 text; is it the right file?") from None


def _csv_rows(path: Path, argument: str, fault: Fault) -> Iterator[tuple[int, list[str]]]:
    lines = csv.reader(_text(path, argument, fault).splitlines())
    try:
        for line, cells in enumerate(lines, start=1):
            if cells:
                yield line, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise fault(f"{argument} file {path.name} is not a CSV table ({error}); write source,target rows.") from None


def _parquet_columns(path: Path, argument: str, fault: Fault) -> list[list[Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingDependency("Parquet files need pyarrow; run: pip install 'privcfs[parquet]'.") from None
    if not path.exists():
        raise fault(f"{argument} file {path} does not exist; check the path.")
    try:
        table = pyarrow.parquet.read_table(path)
    except Exception:
        raise fault(f"{argument} file {path.name} is not a readable Parquet file; is it complete?") from None
    return [column.to_pylist() for column in table.columns]
