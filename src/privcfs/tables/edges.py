"""Edge lists: checked pairs of nodes from CSV, Parquet, arrays, SciPy, PyTorch Geometric and networkx."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.tables.named_columns import Links
from privcfs.tables.names import Nodes
from privcfs.tables.neighbours import distinct
from privcfs.tables.parsing import (
    CsvLayout,
    Description,
    Fault,
    Refuse,
    arrow,
    csv_batches,
    csv_rows,
    first_line,
    is_text,
    parquet_batches,
    refuse_unreadable,
    shown,
)

Numbers = NDArray[np.int64]
HEADERS = {("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")}
MOST_ROWS = 10_000_000  # upper bound on the rows of a Parquet file that is loaded into memory
CELLS = 2**20  # how many cells of a Parquet file are decoded at a time while it is loaded into memory
STREAMED_CELLS = 2**23  # how many are decoded at a time while a store is made
READ_BYTES = 2**22  # how many bytes of a CSV file are read at a time
NAMED_BYTES = 2**26  # the same where nodes have names: each batch builds an index of all names, so batches are large
WEIGHTS = "write a finite number; 0 means no edge"
DIGITS = r"^-?[0-9]{1,18}$"


@final
@dataclass(frozen=True, slots=True)
class EdgeListReader:
    """Reads one argument's pairs: `argument` and `fault` say who is to blame and how."""

    argument: str
    fault: Fault
    nodes: Nodes
    simplify: bool = False
    may_simplify: bool = False

    def read(self, source: str | Path | Links | ArrayLike) -> Numbers:
        """Sorted unique pairs (u < w) of an undirected simple graph from a file or an (m, 2) array."""
        if isinstance(source, Links):
            rows = source.rows(self.argument, self.fault, self.nodes)
        elif isinstance(source, str | Path):
            path = Path(source)
            rows = self._parquet(path) if path.suffix == ".parquet" else self._csv(path)
        else:
            rows = self._array(source)
        return self.pairs(rows)

    def pairs(self, rows: Numbers) -> Numbers:
        """Checks ordered rows and merges both directions of a pair into one."""
        self.check_range(rows)
        if not self.simplify:
            self._refuse_loops_and_repeats(rows)
        return distinct(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1), self.nodes.count)

    def check_range(self, rows: Numbers) -> None:
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

    def _refuse_loops_and_repeats(self, rows: Numbers) -> None:
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

    def _array(self, source: ArrayLike) -> Numbers:
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

    def _csv(self, path: Path) -> Numbers:
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

    def _parquet(self, path: Path) -> Numbers:
        return np.concatenate([np.empty((0, 2), np.int64), *self.parquet_rows(path, CELLS, MOST_ROWS)])

    def parquet_rows(self, path: Path, cells: int, most: int | None = None) -> Iterator[Numbers]:
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

    def batches(self, path: Path) -> Iterator[Numbers]:
        """The rows of a CSV or Parquet file of any size, some at a time, without unknown nodes and self-loops."""
        rows = self.parquet_rows(path, STREAMED_CELLS) if path.suffix == ".parquet" else self._csv_batches(path)
        for batch in rows:
            self._check_batch(batch)
            yield batch

    def _csv_batches(self, path: Path) -> Iterator[Numbers]:
        """Through Arrow. Where a row is wrong, the file is read again line by line, so that an error names it."""
        cells = first_line(path, self.argument, self.fault)
        if cells is None:
            return
        layout, nodes, first_row = self._csv_layout(cells), self.node_columns(), 0
        try:
            for batch in csv_batches(path, layout, self.refuse):
                rows = nodes.rows(batch.columns, first_row)
                self._check_batch(rows)
                yield rows
                first_row += batch.num_rows
        except self.fault:
            for _ in self.csv_pairs(path):
                pass
            raise

    def _csv_layout(self, first_line: list[str]) -> CsvLayout:
        """Two columns of nodes and, if the first line has three cells, a column of weights."""
        named = self.nodes.numbers is not None
        node = arrow().string() if named else arrow().int64()
        types = {"source": node, "target": node, "weight": arrow().float64()}
        width = max(min(len(first_line), 3), 2)
        return CsvLayout(list(types)[:width], types, is_header(first_line), NAMED_BYTES if named else READ_BYTES)

    def _check_batch(self, rows: Numbers) -> None:
        """Refuses a number that is no node, and a self-loop unless loops are dropped."""
        self.check_range(rows)
        loops = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if loops.size and not self.simplify:
            self.refuse_loop(int(rows[loops[0], 0]))

    def node_columns(self) -> "NodeColumns":
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


@final
@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Turns columns of a table into node numbers and weights: `names` are the nodes' names, where they have names."""

    refuse: Refuse
    names: Any = None  # an Arrow array

    @property
    def known(self) -> str:
        """What a cell may hold."""
        return "node numbers" if self.names is None else "names of node_ids"

    def rows(self, columns: Sequence[Any], first_row: int) -> Numbers:
        """The first two columns as node numbers, without the rows whose weight, the third column, is 0."""
        rows = np.column_stack([self._numbers(column, first_row) for column in columns[:2]])
        if len(columns) == 2:
            return rows
        weights = self._weights(columns[2])
        if not np.isfinite(weights).all():
            row = first_row + int(np.flatnonzero(~np.isfinite(weights))[0])
            self.refuse(f"{_row(row)} has a weight that is missing or infinite", WEIGHTS)
        kept: Numbers = rows[weights != 0]
        return kept

    def check_types(self, table: "Description") -> None:
        """Refuses columns that hold neither numbers nor text, before they are read."""
        types = arrow().types
        for position, (name, kind) in enumerate(table.columns.items()):
            if types.is_dictionary(kind):
                kind = kind.value_type
            allowed = [types.is_integer, types.is_decimal, is_text]
            if position == 2:
                allowed += [types.is_floating, types.is_boolean]
            if not any(is_kind(kind) for is_kind in allowed):
                self.refuse(f"column {shown(name)} holds {kind} values", WEIGHTS if position == 2 else self._use())

    def _weights(self, column: Any) -> NDArray[np.float64]:
        if arrow().types.is_dictionary(column.type):
            different = self._weights(column.dictionary)
            missing = column.is_null().to_numpy(zero_copy_only=False)
            weights = np.full(len(column), np.nan)
            weights[~missing] = different[column.indices.fill_null(0).to_numpy(zero_copy_only=False)[~missing]]
            return weights
        try:
            return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False), np.float64)
        except arrow().ArrowException:
            self.refuse("has a weight that is no number", WEIGHTS)

    def _use(self) -> str:
        return f"use {self.known}"

    def _numbers(self, column: Any, first_row: int) -> Numbers:
        if column.null_count:
            row = first_row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            self.refuse(f"{_row(row)} names no node", self._use())
        if not arrow().types.is_dictionary(column.type):
            return self._looked_up(column, lambda place: first_row + place)
        indices = column.indices.to_numpy(zero_copy_only=False)
        different = self._looked_up(column.dictionary, lambda place: first_row + int(np.argmax(indices == place)))
        numbers: Numbers = different[indices]
        return numbers

    def _looked_up(self, values: Any, row_of: Callable[[int], int]) -> Numbers:
        """The numbers of some values; `row_of` says in which row a value stands."""
        compute = arrow().compute
        try:
            if self.names is not None:
                found = compute.index_in(compute.utf8_trim_whitespace(values.cast("string")), value_set=self.names)
                unknown = found.is_null()
            elif is_text(values.type):
                unknown = compute.invert(compute.match_substring_regex(values, DIGITS))
                found = values if compute.any(unknown).as_py() else values.cast("int64")
            else:
                found, unknown = values.cast("int64"), values.is_null()
        except arrow().ArrowException:
            self.refuse("names an unknown node in some row", self._use())
        places = np.flatnonzero(unknown.to_numpy(zero_copy_only=False))
        if places.size:
            place = int(places[0])
            what = f"{_row(row_of(place))} names an unknown node {shown(values[place].as_py())}"
            self.refuse(what, self._use())
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _row(number: int) -> str:
    return f"row {number} (counted from 0)"


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first line of an edge list names its columns."""
    return tuple(cell.lower() for cell in cells[:2]) in HEADERS


def matrix_rows(matrix: Any, nodes: Nodes, fault: Fault) -> Numbers:
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


def networkx_rows(graph: Any, nodes: Nodes, fault: Fault) -> Numbers:
    """The edges of a networkx graph whose weight is not 0."""
    try:
        listed = [(u, w) for u, w, weight in graph.edges(data="weight", default=1) if weight != 0]
        rows = [[nodes.number(str(u)), nodes.number(str(w))] for u, w in listed]
    except KeyError:
        raise fault("edges names a node that is neither a number nor in node_ids; pass node_ids.") from None
    return np.array(rows, np.int64).reshape(-1, 2)
