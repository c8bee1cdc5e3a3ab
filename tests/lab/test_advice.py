"""Beyond the paper: what own edges are worth. A slice is measured, and the committed page says what was asked."""

import csv
from pathlib import Path

import numpy as np
import pytest

from privcfs_lab.experiments.advice import COLUMNS, OTHERS, PAID_SHARES, RECORD, SHARES, SLACK, Advised, row_of
from privcfs_lab.measuring.measure import GRID
from privcfs_lab.measuring.study import Study

RESULTS = Path(__file__).parents[2] / "docs/results"


def rows() -> list[dict[str, str]]:
    with (RESULTS / "advice.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("disclosed", [0.5, 0.0])
def test_a_few_targets_are_measured(disclosed: float) -> None:
    work = Advised("cora", "everyone", disclosed)
    found = Study((0,), most=12).measure([work])[work]
    assert len(found) == 12
    for name in ("zero", "guess", "ceiling", "advice", "told", "personal"):
        assert set(found[name]) <= {0.0, 1.0}
    assert (found["zero"] <= found["ceiling"]).all()
    assert (found["guess"] <= found["ceiling"]).all()
    assert (found["advice"] <= found["personal"]).all()
    assert (found["others"] <= found["personal"][:, None] + 1e-9).all()
    for name in ("own", "whole"):
        assert ((found[name] >= 0) & (found[name] <= found["ceiling"][:, None] + 1e-9)).all()
    assert ((found["confidence"] > 0) & (found["confidence"] < 1)).all()
    assert found["advice"].mean() >= found["guess"].mean() - 0.2


def test_a_row_says_what_was_missed() -> None:
    records = np.zeros(100, RECORD)
    records["zero"][:50], records["guess"][:60], records["ceiling"][:80] = 1, 1, 1
    records["advice"][:75], records["confidence"] = 1, np.linspace(0.5, 1, 100)
    records["others"], records["own"], records["whole"] = 0.78, 0.61, 0.7
    names = [column.name for column in COLUMNS]
    work = Advised("cora", "everyone", 0.5)
    met = dict(zip(names, row_of(work, records), strict=True))
    assert met["asked"] == "met"
    assert met["share"] == pytest.approx(25 / 30)
    assert met["above row zero"] == pytest.approx(15 / 20)
    records["advice"][65:], records["others"], records["own"][:, GRID.index("2")] = 0, 0.64, 0.59
    missed = str(row_of(work, records)[-1])
    assert missed == "missed: advice 65%, others @4 85%, others @1 below price 0, own @2 below row zero"


def test_the_committed_page_says_what_was_asked_and_what_was_missed() -> None:
    found = {(row["data"], float(row["disclosed"])): row for row in rows()}
    assert set(SHARES) <= set(found)
    assert {"pubmed", "coauthor-cs", "facebook"} <= {data for data, _ in found}
    for where, row in found.items():
        if where in SHARES:
            assert (float(row["share"]) < SHARES[where]) == (f"advice {SHARES[where]:.0%}" in row["asked"])
        if where in PAID_SHARES:
            bar = PAID_SHARES[where]
            assert (float(row["share @4"]) < bar) == (f"others @4 {bar:.0%}" in row["asked"])
        public = max(float(row["old row zero"]), float(row["row zero"]))
        for price in GRID:
            assert (float(row[f"own @{price}"]) < public - SLACK) == (f"own @{price} below" in row["asked"])
        assert (float(row["others @1"]) < float(row["advice"]) - SLACK) == ("below price 0" in row["asked"])
        assert int(row["targets"]) == (3000 if where in SHARES else 900)
        assert all(0 <= float(row[f"others @{price}"]) <= float(row["own ceiling"]) for price in OTHERS)
