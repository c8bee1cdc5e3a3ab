"""The only place that parses CSV and Parquet: cells with their line numbers, or columns some rows at a time.

CSV is read line by line with Python's own reader, so that an error can name the line, or in batches through Arrow,
which is faster. A Parquet file of a few kilobytes can stand for billions of rows or for gigantic cells; so its
description is checked before its content, columns of text stay dictionaries of their distinct values, and no value may
be longer than a name. All of it runs before a vault serves, so errors may name rows and values. No pickle is loaded.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from privcfs.errors import MissingDependency, OwnerError

Fault = type[OwnerError]
Refuse = Callable[[str, str], NoReturn]  # takes what is wrong with an argument, and what to do about it
MOST_DECODED = 2**29  # upper bound on the bytes of one column of one row group of a Parquet file, decompressed
MOST_CELL = 2**12  # upper bound on the bytes of a node's name
MOST_SHOWN = 80  # upper bound on the characters of a value in an error


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


def first_line(path: Path, argument: str, fault: Fault) -> list[str] | None:
    """The cells of a table's first line; none for an empty file."""
    return next((cells for _, cells in csv_rows(path, argument, fault)), None)


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_text(path: Path, argument: str, fault: Fault) -> str:
    """The whole of a text file in UTF-8."""
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


class CsvLayout(NamedTuple):
    """How a CSV file is read."""

    names: list[str]
    types: dict[str, Any]
    header: bool
    bytes: int  # at a time
    empty_lines: bool = True  # whether an empty line is passed over


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
        text = [name for name, kind in described.columns.items() if is_text(kind)]
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
    if not arrow().types.is_dictionary(kind) or not is_text(kind.value_type):
        return
    longest = arrow().compute.max(arrow().compute.binary_length(column.dictionary)).as_py() or 0
    if longest > MOST_CELL:
        refuse(f"has a cell of {longest} bytes in column {shown(name)}", f"names have at most {MOST_CELL} bytes")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


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
