"""Results of the lab: tables and figures, as pages for people and as CSV and JSON for programs."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

console = Console()
DECIMALS = 6  # of numbers in CSV and JSON
WIDEST = 40  # characters of a cell on the terminal before it wraps
MEAN = "mean"  # shows an estimate without its error, which the files have


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error, or with whatever half-width the page says."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


Value = str | int | float | Estimate | None


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A heading, how its numbers are shown, and whether the page shows it (files always do)."""

    name: str
    form: str = ".3f"
    shown: bool = True

    def text(self, value: Value) -> str:
        """One cell of the page."""
        if value is None:
            return "-"
        if isinstance(value, Estimate) and self.form == MEAN:
            return f"{value.mean:.3f}"
        return str(value) if isinstance(value, str | Estimate) else format(value, self.form)


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with the words for those who cannot see it."""

    words: str
    draw: Callable[[], "Figure"]


@final
@dataclass(frozen=True, slots=True)
class Page:
    """One result: a table with its story, and pictures."""

    title: str
    about: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Value]]
    pictures: tuple[Picture, ...] = ()
    brief: tuple[str, ...] = ()  # columns for the terminal, means without errors

    def show(self) -> None:
        """Prints the columns that are meant for the terminal, or as many as fit."""
        if self.brief:
            self._show_brief()
            return
        headings, texts = self._headings(), self._texts()
        fit = len(headings)
        wide = console.options.update(max_width=10_000)
        while fit > 1 and Measurement.get(console, wide, _rich("", headings[:fit], texts)).maximum > console.width:
            fit -= 1
        console.print(_rich(self.title, headings[:fit], texts))
        if fit < len(headings):
            console.print(f"... and {len(headings) - fit} more columns: {', '.join(headings[fit:])}", highlight=False)

    def write(self, folder: Path, name: str, command: str, code: str = "", lead: str = "") -> None:
        """Writes name.md with its pictures, name.csv and name.json.

        `command` and `code` are what made them; `lead` says what the page shows and what follows from it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        pictures = [
            f"{name}.svg" if number == 0 else f"{name}-{number + 1}.svg" for number in range(len(self.pictures))
        ]
        for file, picture in zip(pictures, self.pictures, strict=True):
            save_figure(picture.draw(), folder / file)
        by = f" with code `{code}`" if code else ""
        images = [f"![{picture.words}]({file})" for file, picture in zip(pictures, self.pictures, strict=True)]
        table = [_line(self._headings()), _line(["---"] * len(self._headings())), *map(_line, self._texts())]
        details = ["## Details", self.about, f"Written by `{command}`{by}."]
        parts = [f"# {self.title}", *([lead] if lead else []), "\n".join(table), *images, *details]
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as sheet:
            csv.writer(sheet, lineterminator="\n").writerows(self._flat())
        made = {"command": command, "code": code, "about": self.about, "rows": self.objects()}
        whole = {"title": self.title, "lead": lead} | made
        (folder / f"{name}.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        console.print(f"Wrote {folder / name}.md, .csv, .json" + (", .svg" if pictures else ""))

    def _show_brief(self) -> None:
        position = {column.name: number for number, column in enumerate(self.columns)}
        table = RichTable(title=self.title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for name in self.brief:
            table.add_column(name)
        for row in self.rows:
            cells = [(self.columns[position[name]], row[position[name]]) for name in self.brief]
            table.add_row(*(replace(c, form=MEAN).text(v) if isinstance(v, Estimate) else c.text(v) for c, v in cells))
        console.print(table)

    def _headings(self) -> list[str]:
        return [column.name for column in self.columns if column.shown]

    def _texts(self) -> list[list[str]]:
        return [
            [column.text(value) for column, value in zip(self.columns, row, strict=True) if column.shown]
            for row in self.rows
        ]

    def objects(self) -> list[dict[str, object]]:
        """The rows as the JSON file has them: estimates with mean and error, numbers rounded."""
        return [
            {column.name: _plain(value) for column, value in zip(self.columns, row, strict=True)} for row in self.rows
        ]

    def _flat(self) -> list[list[object]]:
        """An estimate takes two columns, the second for its error."""
        spread = [any(isinstance(row[i], Estimate) for row in self.rows) for i in range(len(self.columns))]
        names = [
            name
            for column, two in zip(self.columns, spread, strict=True)
            for name in ([column.name, f"{column.name} ±"] if two else [column.name])
        ]
        rows: list[list[object]] = [list(names)]
        for row in self.rows:
            cells: list[object] = []
            for value, two in zip(row, spread, strict=True):
                if isinstance(value, Estimate):
                    cells += [_rounded(value.mean), _rounded(value.error)]
                else:
                    cells += [_plain(value), None] if two else [_plain(value)]
            rows.append(["" if cell is None else cell for cell in cells])
        return rows


def save_figure(figure: "Figure", where: Path | TextIO) -> None:
    """An SVG with no date and no random names, so that the same data give the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "privcfs"}):
        figure.savefig(where, format="svg", metadata={"Date": None})


def _rich(title: str, headings: list[str], texts: list[list[str]]) -> RichTable:
    table = RichTable(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        longest = max((len(row[number]) for row in texts), default=0)
        table.add_column(heading, no_wrap=longest <= WIDEST, max_width=WIDEST)
    for row in texts:
        table.add_row(*row[: len(headings)])
    return table


def _plain(value: Value) -> object:
    if isinstance(value, Estimate):
        return {"mean": _rounded(value.mean), "error": _rounded(value.error)}
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float:
    return round(float(value), DECIMALS)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
