"""The audit on neighbouring graphs: neighbours differ in one pair near the target, and a broken twin is convicted."""

import csv
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from privcfs import Method
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.private.utilities import UTILITIES
from privcfs_lab.audit.adjacent import EACH, Adjacent, neighbours
from privcfs_lab.audit.twins import Overconfident
from privcfs_lab.experiments import audit_pairs
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.study import Study
from privcfs_lab.measuring.targets import POPULATIONS

RESULTS = Path(__file__).parent.parent.parent / "docs/results"


def test_neighbours_differ_in_one_pair_within_two_steps() -> None:
    world = Simulation("citeseer", 0)
    here = {tuple(pair) for pair in world.data.pairs.tolist()}
    for target in POPULATIONS["general"](world)[:5]:
        near = {target} | {node for pair in here if target in pair for node in pair}
        within = near | {node for pair in here if near & set(pair) for node in pair}
        seen = list(neighbours(world.data.pairs, target, np.random.default_rng(0)))
        assert sum(deleted for deleted, _ in seen) <= EACH
        for deleted, pairs in seen:
            (changed,) = here ^ {tuple(pair) for pair in pairs.tolist()}
            assert (changed in here) == deleted
            assert set(changed) <= within


def test_an_isolated_target_has_no_neighbouring_graph_near_it() -> None:
    pairs = np.array([[0, 1], [1, 2]])
    assert list(neighbours(pairs, 5, np.random.default_rng(0))) == []


def test_half_of_the_audit_convicts_an_overconfident_mechanism() -> None:
    """The honest row is within its bounds; the twin draws as if scores moved eight times less."""
    honest = Adjacent("cora", "borderline", Method())
    twin = replace(honest, method=Method(mechanism=Overconfident(8)))
    found = Study((0,), most=4).measure([honest, twin])
    words = ("joint", "gated", "exponential")
    assert audit_pairs._row(honest, words, found[honest])[-1] == "yes"
    assert audit_pairs._row(twin, words, found[twin])[-1] == "no"


def test_every_shipped_mechanism_and_utility_is_audited_and_within_its_bounds() -> None:
    with (RESULTS / "audit-pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    shipped = {(utility, mechanism) for utility in UTILITIES for mechanism in MECHANISMS}
    assert {(row["utility"], row["mechanism"]) for row in rows} == shipped | {("gated", "as printed")}
    assert all(row["within"] == "yes" for row in rows)
    assert all(int(row["pairs"]) >= 80 for row in rows)
    for row in rows:
        assert float(row["largest change of a utility"]) <= float(Fraction(row["range"])) + 1e-6
        assert abs(float(row["largest AUC"]) - float(row["largest AUC, 400 draws"])) < 0.12
