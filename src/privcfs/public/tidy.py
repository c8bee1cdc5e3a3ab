"""Many answers as one tidy table: a row for each element of each answer, the same columns for all kinds of answers."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from privcfs.errors import SettingsError
from privcfs.public.advice import Advice
from privcfs.public.interventions import Intervention
from privcfs.public.public_answer import PublicAnswer
from privcfs.public.release import Release
from privcfs.public.tabular import COLUMNS, Row, Tabular, beside, rows_of

ABOUT = ("target", "answer", "number", "epsilon", "confidence", "size")


@final
@dataclass(frozen=True, slots=True)
class Answers(Tabular):
    """Several releases, guesses and pieces of advice, in any mixture.

    Attributes:
        answers: The answers, in the order of the table.
    """

    answers: tuple[Release | PublicAnswer | Advice, ...]

    def rows(self) -> list[Row]:
        """One row for each element; an answer that changes nothing has one row, whose operation is "nothing".

        `answer` is release, guess or advice; `number` counts the alternatives of one piece of advice from 1; `size` is
        how many elements belong together.
        """
        return [row for answer in self.answers for row in _rows(answer)]

    @property
    def caption(self) -> str:
        """How many there are."""
        return f"{len(self.answers):,} answers. All elements of one answer belong together."

    def write_csv(self, path: str | Path) -> None:
        """Writes the rows as a CSV file with a header.

        Args:
            path: The file; an existing one is replaced.

        Raises:
            SettingsError: The file cannot be written.
        """
        try:
            with Path(path).open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, (*ABOUT, *COLUMNS), lineterminator="\n")
                table.writeheader()
                table.writerows(self.rows())
        except OSError as error:
            raise SettingsError(f"{path} cannot be written: {error.strerror}; choose another file.") from None


def tidy(answers: Iterable[Release | PublicAnswer | Advice]) -> Answers:
    """Puts many answers into one table.

    Args:
        answers: Releases, public guesses and advice, in any mixture.

    Returns:
        Something with `rows()`, `to_frame()` and `write_csv(path)`, which a notebook shows as a table.
    """
    return Answers(tuple(answers))


def _rows(answer: Release | PublicAnswer | Advice) -> list[Row]:
    name = answer.labels.get(answer.target, str(answer.target))
    if isinstance(answer, Advice):
        price = float(answer.epsilon)
        return [
            row
            for number, one in enumerate(answer.changes, 1)
            for row in _elements(name, "advice", number, price, one.confidence, one.intervention)
        ]
    kind, price = ("release", float(answer.epsilon)) if isinstance(answer, Release) else ("guess", 0.0)
    return _elements(name, kind, 1, price, answer.confidence, answer.intervention)


def _elements(
    name: str, kind: str, number: int, price: float, confidence: float | None, intervention: Intervention
) -> list[Row]:
    values = (name, kind, number, price, confidence, intervention.size)
    return beside(dict(zip(ABOUT, values, strict=True)), rows_of(intervention))
