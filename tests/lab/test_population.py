"""The population page: noisy graphs have the law that is stated, every way costs the total, bars are judged by code."""

from fractions import Fraction

import numpy as np
import pytest

from privcfs.public.sketches.sketch import PARTNERS, SketchPlan
from privcfs_lab.baselines.gap import DEVIATION, deviation_of
from privcfs_lab.baselines.graph_level import EPSILON
from privcfs_lab.baselines.kept_pairs import CROSSING, believed_graph
from privcfs_lab.experiments.population import (
    COLUMNS,
    FREE,
    HALF,
    METHODS,
    PRIVATISED,
    SKETCHED,
    TOTALS,
    Cell,
    Privatised,
    halved,
    plan_of,
    row_of,
)
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import Simulation


@pytest.fixture(scope="module")
def world() -> Simulation:
    return Simulation("cora", 0)


@pytest.mark.parametrize("method", CROSSING)
def test_a_noisy_graph_keeps_and_brings_as_many_pairs_as_its_law_says(method: str, world: Simulation) -> None:
    total, base = Fraction(16), world.context(HALF)
    crossing = CROSSING[method](16.0)
    noisy = believed_graph(world, base, method, total)
    assert noisy is not None
    pairs = world.data.pairs
    hidden = pairs[~base.snapshot.has_pairs(pairs)]
    kept = int(noisy.snapshot.has_pairs(hidden).sum())
    assert kept == pytest.approx(len(hidden) * (1 - crossing), abs=5 * np.sqrt(len(hidden) * crossing) + 5)
    assert noisy.snapshot.has_pairs(base.snapshot.pairs).all(), "what is public is known"
    brought = len(noisy.snapshot.pairs) - kept - len(base.snapshot.pairs)
    expected = crossing * 2708 * 2707 / 2
    assert brought == pytest.approx(expected, rel=0.06, abs=5 * np.sqrt(expected) + 5)  # some places are drawn twice
    assert believed_graph(world, base, method, Fraction(1, 2)) is None, "too many pairs"


def test_graph_level_methods_are_measured_at_the_same_size_cap(world: Simulation) -> None:
    found = Privatised("cora", "sample", HALF, "8").records(world, 3)
    assert found.dtype == PRIVATISED
    assert len(found) == 3
    assert np.isin(found["RR-LDP"], (0, 1)).all()
    assert np.isin(found["GAP"], (0, 1)).all()
    assert deviation_of(EPSILON) == DEVIATION


def test_every_way_costs_the_total() -> None:
    assert [halved(total) for total in TOTALS] == ["1/2", *TOTALS[:-1]]
    assert plan_of(Fraction(4), 3000) == SketchPlan.of(Fraction(4))
    assert plan_of(Fraction(4), 20_000) == SketchPlan.of(Fraction(4), PARTNERS)


def records(kind: np.dtype[np.void], **rates: float) -> Records:
    """Four hundred targets of which so many are answered rightly."""
    found = np.zeros(400, kind)
    for name, rate in rates.items():
        found[name] = (np.arange(400) < 400 * rate).reshape((400, *[1] * (found[name].ndim - 1)))
    return found


def test_bars_are_met_or_missed_by_what_code_says() -> None:
    free = records(FREE, zero=0.6, guess=0.65, ceiling=0.8, advice=0.7, whole=0.66, accounts=0.68)
    sketched = records(SKETCHED, guess=0.7, advice=0.76, accounts=0.69)
    sketched["confidence"] = sketched["guess"]
    noisy = records(PRIVATISED, **dict.fromkeys(METHODS, 0.3))
    noisy["NaiveDP"] = np.nan
    row = dict(
        zip([column.name for column in COLUMNS], row_of(cell("4"), free, sketched, sketched, noisy), strict=True)
    )
    assert row["asked"] == "share of sketch 0.6 missed by 0.100"
    assert row["share of sketch"] == pytest.approx(0.5)
    assert row["best way"] == "sketch"
    assert row["NaiveDP"] is None
    noisy["LapDP"] = 1.0
    sketched["confidence"] = 0.0
    row = dict(zip([column.name for column in COLUMNS], row_of(cell("4"), free, sketched, None, noisy), strict=True))
    assert row["mixture"] is None
    said = str(row["asked"])
    assert "calibration error 0.05 missed by 0.65" in said
    assert "not below LapDP 0 missed by 0.27" in said
    assert str(row_of(cell("2"), free, sketched, sketched, noisy)[-1]).startswith(
        "calibration error 0.05 missed by 0.65"
    )


def cell(total: str) -> Cell:
    return Cell("cora", HALF, total)
