"""Reads CSV and Parquet tables through Arrow: some rows at a time, in bounded memory, whatever the file says of itself.

A Parquet file of a few kilobytes can stand for billions of rows or for gigantic cells. So its description is looked at
before its content, columns of text stay dictionaries of their different values, and no value may be longer than a name.
Used by the owner before a vault serves, so its errors may name rows and values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import MissingDependency

Refuse = Callable[[str, str], NoReturn]  # says what is wrong with an argument, and what to do
MOST_DECODED = 2**29  # bytes of one column of one row group of a Parquet file, without compression
MOST_CELL = 2**12  # bytes of a node's name
MOST_SHOWN = 80  # characters of a value in an error
WEIGHTS = "write a finite number; 0 means no edge"
WHOLE_NUMBER = r"^-?[0-9]{1,18}$"


class CsvLayout(NamedTuple):
    """How a CSV file is read."""

    names: list[str]
    types: dict[str, Any]
    header: bool
    bytes: int  # at a time
    empty_lines: bool = True  # whether an empty line is passed over


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

    def rows(self, columns: Sequence[Any], first_row: int) -> NDArray[np.int64]:
        """The first two columns as node numbers, without the rows whose weight, the third column, is 0."""
        rows = np.column_stack([self._numbers(column, first_row) for column in columns[:2]])
        if len(columns) == 2:
            return rows
        weights = self._weights(columns[2])
        if not np.isfinite(weights).all():
            row = first_row + int(np.flatnonzero(~np.isfinite(weights))[0])
            self.refuse(f"{_row(row)} has a weight that is missing or infinite", WEIGHTS)
        kept: NDArray[np.int64] = rows[weights != 0]
        return kept

    def check_types(self, table: "Description") -> None:
        """Refuses columns that hold neither numbers nor text, before they are read."""
        types = arrow().types
        for position, (name, kind) in enumerate(table.columns.items()):
            if types.is_dictionary(kind):
                kind = kind.value_type
            allowed = [types.is_integer, types.is_decimal, _is_text]
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

    def _numbers(self, column: Any, first_row: int) -> NDArray[np.int64]:
        if column.null_count:
            row = first_row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            self.refuse(f"{_row(row)} names no node", self._use())
        if not arrow().types.is_dictionary(column.type):
            return self._looked_up(column, lambda place: first_row + place)
        indices = column.indices.to_numpy(zero_copy_only=False)
        different = self._looked_up(column.dictionary, lambda place: first_row + int(np.argmax(indices == place)))
        numbers: NDArray[np.int64] = different[indices]
        return numbers

    def _looked_up(self, values: Any, row_of: Callable[[int], int]) -> NDArray[np.int64]:
        """The numbers of some values; `row_of` says in which row a value stands."""
        compute = arrow().compute
        try:
            if self.names is not None:
                found = compute.index_in(compute.utf8_trim_whitespace(values.cast("string")), value_set=self.names)
                unknown = found.is_null()
            elif _is_text(values.type):
                unknown = compute.invert(compute.match_substring_regex(values, WHOLE_NUMBER))
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


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def csv_batches(path: Path, layout: CsvLayout, refuse: Refuse) -> Iterator[Any]:
    """Some rows of a CSV file at a time."""
    csv = arrow().csv
    try:
        with csv.open_csv(
            path,
            csv.ReadOptions(column_names=layout.names, skip_rows=int(layout.header), block_size=layout.bytes),
            csv.ParseOptions(ignore_empty_lines=layout.empty_lines),
            csv.ConvertOptions(column_types=layout.types, null_values=[""], strings_can_be_null=True),
        ) as batches:
            yield from batches
    except (arrow().ArrowException, UnicodeDecodeError) as error:
        first_line = str(error).splitlines()[0]
        refuse(f"file {path.name} cannot be read ({shown(first_line)})", "mend that line")


class Description(NamedTuple):
    """What a Parquet file says of itself: how many rows it has, and its columns with their types."""

    rows: int
    columns: dict[str, Any]


def parquet_batches(
    path: Path, cells: int, check: Callable[[Description], None], refuse: Refuse
) -> Iterator[Sequence[Any]]:
    """The columns of a Parquet file, at most `cells` cells at a time; `check` sees the description first."""
    arrow()
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            schema, metadata = table.schema_arrow, table.metadata
            if len(set(schema.names)) < len(schema.names):
                refuse(f"file {path.name} has two columns of one name", "rename one")
            described = Description(metadata.num_rows, dict(zip(schema.names, schema.types, strict=True)))
        check(described)
        _check_sizes(path, metadata, refuse)
        text = [name for name, kind in described.columns.items() if _is_text(kind)]
        size = max(cells // max(len(described.columns), 1), 1)
        read = 0
        with pyarrow.parquet.ParquetFile(path, read_dictionary=text) as table:
            for batch in table.iter_batches(batch_size=size):
                read += batch.num_rows
                if read > described.rows:
                    refuse(f"file {path.name} has more rows than it says", "write it again")
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    _check_cells(name, column, refuse)
                yield batch.columns
    except MemoryError:
        refuse(f"file {path.name} needs more memory than there is", "write it again with smaller row groups")
    except (pyarrow.ArrowException, OSError):
        refuse(f"file {path.name} is not a readable Parquet file", "is it complete?")


def _check_sizes(path: Path, metadata: Any, refuse: Refuse) -> None:
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if column.total_uncompressed_size > MOST_DECODED:
                refuse(
                    f"file {path.name} has a column {shown(column.path_in_schema)} of "
                    f"{column.total_uncompressed_size} bytes in one row group, and at most {MOST_DECODED} are decoded",
                    "write it again with smaller row groups, such as a million rows each",
                )


def _check_cells(name: str, column: Any, refuse: Refuse) -> None:
    """Refuses a value that is longer than any name, before it is copied for each of its rows."""
    kind = column.type
    if not arrow().types.is_dictionary(kind) or not _is_text(kind.value_type):
        return
    longest = arrow().compute.max(arrow().compute.binary_length(column.dictionary)).as_py() or 0
    if longest > MOST_CELL:
        refuse(f"has a cell of {longest} bytes in column {shown(name)}", f"names have at most {MOST_CELL} bytes")


def shown(value: object) -> str:
    """A value from a file as an error shows it: quoted, without control characters, and not longer than a line."""
    text = str(value)
    return repr(text[:MOST_SHOWN]) + ("..." if len(text) > MOST_SHOWN else "")


def arrow() -> Any:
    """Arrow, where it is installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    except ImportError:
        raise MissingDependency(
            "Parquet files and privcfs import need pyarrow; run: pip install 'privcfs[parquet]'."
        ) from None
    return pyarrow
