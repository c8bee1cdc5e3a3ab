"""CSV files as people have them: a header, of which some columns are read by name.

All of it runs before a vault serves, so errors may name lines and values. No error of `Links` is raised later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.tables.names import Nodes
from privcfs.tables.parsing import Fault, csv_rows, is_number, shown

Numbers = NDArray[np.int64]


class Cells(NamedTuple):
    """The chosen columns of a file: their names, and the cells of each row with the number of its line."""

    names: tuple[str, ...]
    rows: list[tuple[int, list[str]]]


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file with a header and one row for each node.

    Attributes:
        file: The file.
        nodes: The column with the names of the nodes. Default: None, nodes have numbers in the order of the rows.
        columns: The columns that are features, in the order in which the model reads them. Default: all others.
        options: For columns that hold words, such as the type of a node, their possible words: such a column becomes
            one column of 0 and 1 for each of them, called "type=bank". Default: no column holds words.
        raw: Whether columns are called like the features of the context's schema and hold values as people write them,
            such as 48 or "rents", which the schema turns into what the model reads. Default: False, cells hold what the
            model reads.
    """

    file: str | Path
    nodes: str | None = None
    columns: Sequence[str] = ()
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    raw: bool = False

    def node_ids(self, fault: Fault) -> tuple[str, ...] | None:
        """The names of the nodes.

        Args:
            fault: The class of the errors that it raises.

        Returns:
            The names in the order of the rows, unchecked; None where no column has them.
        """
        return None if self.nodes is None else tuple(row[0] for _, row in self._read([self.nodes], fault).rows)

    def cells(self, fault: Fault) -> Cells:
        """The columns of features as they stand in the file.

        Args:
            fault: The class of the errors that it raises.

        Returns:
            Their names and cells.
        """
        return self._read(self._chosen(fault), fault)

    def features(self, fault: Fault) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """The columns of features as numbers.

        Args:
            fault: The class of the errors that it raises.

        Returns:
            One row for each node, with several columns for one that holds words; and the names of all these columns.
        """
        cells = self.cells(fault)
        unknown = set(self.options) - set(cells.names)
        if unknown:
            self._refuse(fault, f"has no feature {shown(min(unknown))}, which options names", "match the header")
        parts: list[NDArray[np.float64]] = []
        names: list[str] = []
        for place, name in enumerate(cells.names):
            column = [(line, row[place]) for line, row in cells.rows]
            if name not in self.options:
                parts.append(np.array([[self._number(fault, name, *one)] for one in column]).reshape(-1, 1))
                names.append(name)
                continue
            words = list(self.options[name])
            parts.append(np.array([self._one_of(fault, name, words, *one) for one in column]).reshape(-1, len(words)))
            names += [f"{name}={word}" for word in words]
        return np.hstack(parts), tuple(names)

    def _chosen(self, fault: Fault) -> list[str]:
        header = _header(Path(self.file), "features", fault)
        chosen = list(self.columns) or [name for name in header if name != self.nodes]
        if not chosen or len(set(chosen)) < len(chosen) or self.nodes in chosen:
            self._refuse(fault, f"columns is {shown(', '.join(chosen))}", "name each column of features once")
        return chosen

    def _read(self, names: Sequence[str], fault: Fault) -> Cells:
        return _columns(Path(self.file), "features", names, fault)

    def _number(self, fault: Fault, name: str, line: int, text: str) -> float:
        if not is_number(text):
            advice = "write a number, leave the column out of columns, or list its words under options"
            self._refuse(fault, f"line {line}, column {shown(name)}, holds {shown(text)}", advice)
        return float(text)

    def _one_of(self, fault: Fault, name: str, words: list[str], line: int, text: str) -> list[float]:
        if text not in words:
            what = f"line {line}, column {shown(name)}, holds {shown(text)}"
            self._refuse(fault, what, f"its options are {', '.join(map(shown, words))}")
        return [float(text == word) for word in words]

    def _refuse(self, fault: Fault, what: str, advice: str) -> NoReturn:
        raise fault(f"features file {Path(self.file).name} {what}; {advice}.")


@final
@dataclass(frozen=True, slots=True)
class Links:
    """A CSV file with a header and one row for each edge.

    A model that counts every edge alike sees neither types nor weights of edges. So a type or a weight can only decide
    which rows are edges, by a public rule that is the same for all rows.

    Attributes:
        file: The file.
        source: The column with one end. Default: "source".
        target: The column with the other end. Default: "target".
        kind: The column with the type of an edge. Default: None, edges have no types.
        kinds: The types that count as edges; a pair with several of them is one edge. Default: all types.
        weight: The column with the weight of an edge. Default: None, edges have no weights.
        at_least: The least weight that counts as an edge. Default: None, weights are 0, no edge, or 1, an edge.
    """

    file: str | Path
    source: str = "source"
    target: str = "target"
    kind: str | None = None
    kinds: Sequence[str] = ()
    weight: str | None = None
    at_least: float | None = None

    def rows(self, argument: str, fault: Fault, nodes: Nodes) -> Numbers:
        """The pairs that count.

        Args:
            argument: What errors call the file.
            fault: The class of the errors that it raises.
            nodes: The nodes.

        Returns:
            The pairs in the order and direction of the file: (pairs, 2).

        Raises:
            PrivcfsError: As `fault` says: columns are missing, or a row names no node or has no weight that fits.
        """
        wanted = [self.source, self.target, *(one for one in (self.kind, self.weight) if one is not None)]
        if (self.kinds and self.kind is None) or (self.at_least is not None and self.weight is None):
            raise fault(f"{argument}: kinds needs kind, and at_least needs weight; name the column.")
        cells = _columns(Path(self.file), argument, wanted, fault)
        found: list[tuple[int, int]] = []
        kinds: dict[tuple[int, int], set[str]] = {}
        for line, row in cells.rows:
            kind = row[2] if self.kind is not None else ""
            if self.kinds and kind not in self.kinds:
                continue
            if self.weight is not None and not self._counts(argument, fault, line, row[-1]):
                continue
            one, other = (self._node(argument, fault, nodes, line, text) for text in row[:2])
            before = kinds.setdefault((one, other), set())
            if (
                not before or kind in before
            ):  # A pair of several types is one edge; a repeated row is left to be refused.
                found.append((one, other))
            before.add(kind)
        return np.array(found, np.int64).reshape(-1, 2)

    def _counts(self, argument: str, fault: Fault, line: int, text: str) -> bool:
        weight = float(text) if is_number(text) else float("nan")
        where = f"{argument} file {Path(self.file).name}, line {line}, has the weight {shown(text)}"
        if not np.isfinite(weight):
            raise fault(f"{where}; write a finite number.")
        if self.at_least is None and weight not in (0, 1):
            raise fault(
                f"{where}, but the model counts every edge alike; say with at_least from which weight on a row is an "
                "edge, or leave weight out to count every row."
            )
        return weight != 0 if self.at_least is None else weight >= self.at_least

    def _node(self, argument: str, fault: Fault, nodes: Nodes, line: int, text: str) -> int:
        try:
            number = nodes.number(text)
        except KeyError:
            number = -1
        if 0 <= number < nodes.count:
            return number
        known = f"nodes are 0 to {nodes.count - 1}" if nodes.numbers is None else "use the names of the nodes"
        raise fault(
            f"{argument} file {Path(self.file).name}, line {line}, names an unknown node {shown(text)}; {known}."
        )


def columns_in(given: object, file: Path, what: type[Any], key: str) -> Any:
    """A `Table` or `Links` from a table of a vault file; `file` is where it lies."""
    assert isinstance(given, Mapping)
    known = {one for one in what.__dataclass_fields__ if one != "file"}
    if unknown := set(given) - known - {"file"}:
        raise SettingsError(
            f"vault file: {key} has an unknown key {min(unknown)}; there are {', '.join(sorted(known))}."
        )
    words = {"nodes": str, "source": str, "target": str, "kind": str, "weight": str, "raw": bool, "options": dict}
    for name, value in given.items():
        if name in words and not isinstance(value, words[name]):
            raise SettingsError(f"vault file: {key}.{name} is {value!r}; it must be {WORDS[words[name]]}.")
        is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
        if name in ("columns", "kinds") and not is_list:
            raise SettingsError(f"vault file: {key}.{name} must be a list of names in quotes.")
        if name == "at_least" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise SettingsError(f"vault file: {key}.at_least must be a number.")
    for name, value in given.get("options", {}).items():
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            raise SettingsError(f"vault file: {key}.options.{name} must be a list of words in quotes.")
    return what(file, **{name: value for name, value in given.items() if name != "file"})


WORDS = {str: "text in quotes", bool: "true or false", dict: "a table"}


def _header(path: Path, argument: str, fault: Fault) -> list[str]:
    """The names of all columns."""
    header = next((cells for _, cells in csv_rows(path, argument, fault) if cells), [])
    if not header or len(set(header)) < len(header) or not all(header):
        raise fault(f"{argument} file {path.name} has no header with a name of its own for each column; write one.")
    return header


def _columns(path: Path, argument: str, names: Sequence[str], fault: Fault) -> Cells:
    """The cells of some columns; empty lines are passed over."""
    header = _header(path, argument, fault)
    for name in names:
        if name not in header:
            known = ", ".join(map(shown, header))[:400]
            raise fault(f"{argument} file {path.name} has no column {shown(name)}; its header names {known}.")
    places = [header.index(name) for name in names]
    return Cells(tuple(names), list(_rows(path, argument, len(header), places, fault)))


def _rows(path: Path, argument: str, width: int, places: list[int], fault: Fault) -> Iterator[tuple[int, list[str]]]:
    lines = ((line, cells) for line, cells in csv_rows(path, argument, fault) if cells)
    next(lines)
    for line, cells in lines:
        if len(cells) != width:
            what = f"line {line} has {len(cells)} cells, but the header names {width} columns"
            raise fault(f"{argument} file {path.name}: {what}; match them.")
        yield line, [cells[place] for place in places]
