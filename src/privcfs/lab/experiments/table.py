"""One result: a table with its story, as Markdown for people and CSV for programs."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import final

from privcfs.lab.report import write_markdown


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text already: what is compared is what is shown."""

    title: str
    about: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def write(self, folder: Path, name: str) -> None:
        """Writes name.md and name.csv."""
        intro = f"Written by `privcfs-lab reproduce {name}`. {self.about}"
        write_markdown(folder / f"{name}.md", (self.title, intro, ""), self.headings, self.rows)
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([self.headings, *self.rows])
