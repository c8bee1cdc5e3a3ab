"""Many answers in one table: the same columns for all kinds, one row for each element."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from privcfs import FeatureChange, Intervention, tidy
from privcfs.errors import SettingsError
from privcfs.public.advice import Advice, Change
from privcfs.public.public_answer import PublicAnswer
from privcfs.public.tabular import COLUMNS
from privcfs.public.tidy import ABOUT, Answers

CHANGE = FeatureChange("LoanDuration", "24", "48", "months")
GUESS = PublicAnswer(3, Intervention(delete=((3, 5),), change=(CHANGE,)), 0.5, {3: "ann", 5: "bob"})
ADVICE = Advice(4, (Change(Intervention(change=(CHANGE,)), 0.9), Change(Intervention(), 0.0)), {1: 1.0}, "digest", ())


@pytest.fixture
def table() -> Answers:
    return tidy([GUESS, ADVICE])


def test_every_element_is_a_row_and_all_kinds_have_the_same_columns(table: Answers) -> None:
    rows = table.rows()
    assert {tuple(row) for row in rows} == {(*ABOUT, *COLUMNS)}
    assert [(row["target"], row["answer"], row["number"], row["operation"]) for row in rows] == [
        ("ann", "guess", 1, "delete"),
        ("ann", "guess", 1, "change"),
        ("4", "advice", 1, "change"),
        ("4", "advice", 2, "nothing"),
    ]
    assert rows[1] | {"from": "48", "to": "24", "unit": "months", "size": 2} == rows[1]


def test_it_is_a_frame_a_csv_file_and_html(table: Answers, tmp_path: Path) -> None:
    frame = table.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["confidence"].dtype == float
    table.write_csv(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["ann - bob", "LoanDuration", "LoanDuration", ""]
    assert "2 answers" in table._repr_html_()
    with pytest.raises(SettingsError, match="cannot be written"):
        table.write_csv(tmp_path / "none" / "answers.csv")
