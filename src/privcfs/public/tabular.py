"""Answers as tables: rows for programs, a DataFrame where pandas is installed, and HTML for notebooks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from privcfs.errors import MissingDependency
from privcfs.public.interventions import Intervention

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | None
Row = dict[str, Cell]
MOST_SHOWN = 20  # rows of a table in a notebook
COLUMNS = ("operation", "what", "from", "to", "unit")


class Tabular(ABC):
    """Something with rows. All text in them is escaped where it is shown."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[Row]:
        """The rows of the table, all with the same columns."""

    @property
    def caption(self) -> str:
        """What stands above the table in a notebook; empty, the default, for nothing."""
        return ""

    def to_frame(self) -> "pd.DataFrame":
        """The rows as a pandas DataFrame; refuses where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("to_frame needs pandas; run: pip install 'privcfs[table]'.") from None
        return pd.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = self.rows()
        more = f"<p>{len(rows) - MOST_SHOWN:,} more rows: to_frame()</p>" if len(rows) > MOST_SHOWN else ""
        return f"{_paragraph(self.caption)}{_table(rows[:MOST_SHOWN])}{more}"


def rows_of(intervention: Intervention) -> list[Row]:
    """One row for each element of an intervention; one that says so where it has none."""
    found: list[tuple[Cell, ...]] = []
    names = intervention.names
    for verb, pairs in (("delete", intervention.delete), ("add", intervention.add)):
        found += [(verb, " - ".join(names.get(node, str(node)) for node in ends), None, None, None) for ends in pairs]
    found += [("mask", f"feature {feature}", None, "0", None) for feature in intervention.mask]
    found += [("change", one.feature, one.before or None, one.value, one.unit or None) for one in intervention.change]
    return [dict(zip(COLUMNS, one, strict=True)) for one in found or [("nothing", None, None, None, None)]]


def beside(first: Mapping[str, Cell], rows: Sequence[Row]) -> list[Row]:
    """The same rows with some more columns in front."""
    return [{**first, **row} for row in rows]


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return escape(f"{value:.3f}" if isinstance(value, float) else str(value))
