"""Tables of the lab: on the terminal, and as Markdown that says which command made it."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

console = Console()


def show_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def write_markdown(
    path: Path, text: tuple[str, str, str], headings: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Writes a table with its title, an introduction that names command, data and seeds, and a last line."""
    title, intro, last = text
    table = [_line(headings), _line(["---"] * len(headings)), *map(_line, rows)]
    lines = [f"# {title}", "", intro, "", *table, *([] if not last else ["", last]), ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    console.print(f"Wrote {path}")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
