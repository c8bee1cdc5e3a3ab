import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privcfs import Method
from privcfs.lab.experiments import EXPERIMENTS
from privcfs.lab.experiments.frontier import cell, simulation, verdict
from privcfs.lab.inspection import inspect
from privcfs.lab.metrics import candidate_sizes, quality, release_law
from privcfs.lab.simulate import Simulation
from privcfs.lab.targets import POPULATIONS
from privcfs.public.candidates import RULES

RESULTS = Path(__file__).parent.parent.parent / "docs/results"


@pytest.fixture(scope="module")
def cora() -> Simulation:
    return simulation("cora", 0)


def test_snapshots_are_nested_and_seed_0_is_the_embedded_one(cora: Simulation) -> None:
    sets = [{tuple(pair) for pair in cora.snapshot(share).tolist()} for share in (0.3, 0.5, 0.7, 1.0)]
    assert sets[0] < sets[1] < sets[2] < sets[3]
    assert np.array_equal(cora.snapshot(0.5), cora.data.snapshot)
    assert len(sets[3]) == 5278


def test_margins_are_those_of_the_papers_backbone(cora: Simulation) -> None:
    test = cora.margins[cora.data.test]
    assert 0.69 < test.mean() < 0.76
    assert np.sort(test)[:10].mean() < 0.02


def test_target_protocols(cora: Simulation) -> None:
    chosen = {name: rule(cora) for name, rule in POPULATIONS.items()}
    assert {name: len(set(nodes)) for name, nodes in chosen.items()} == {
        "general": 16,
        "stratified": 16,
        "borderline": 10,
    }
    assert all(set(nodes) <= set(cora.data.test.tolist()) for nodes in chosen.values())
    assert cora.margins[chosen["borderline"]].max() < 0.05
    assert chosen["general"] != POPULATIONS["general"](Simulation("cora", 1))


def test_expectations_agree_with_draws(cora: Simulation) -> None:
    found = inspect(cora.graph, cora.context(0.5), POPULATIONS["borderline"](cora)[0])
    law = release_law(found, "4")
    drawn = np.random.default_rng(0).choice(len(law), 40_000, p=law)
    exact = quality(found, "4")
    assert abs(found.flips[drawn].mean() - exact.valid) < 0.015
    assert abs(candidate_sizes(found)[drawn].mean() - exact.size) < 0.03
    assert abs((drawn == 0).mean() - exact.empty) < 0.01
    assert abs(found.utilities.max() - found.utilities[drawn].mean() - exact.regret) < 0.015
    assert exact.valid <= exact.valid_if_not_empty


def test_the_printed_range_is_a_little_worse_and_a_small_price_is_uniform(cora: Simulation) -> None:
    found = inspect(cora.graph, cora.context(0.5), POPULATIONS["borderline"](cora)[0])
    assert quality(found, "8", Fraction(1)).valid < quality(found, "8").valid
    assert abs(quality(found, "0.000000001").valid - found.flips.mean()) < 1e-6


def test_the_frontier_page_has_not_rotted() -> None:
    with (RESULTS / "frontier-borderline.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == "cora" and row["disclosed"] == "0.5"]
    for row, arm in zip(rows, ("edges-only", "one-hop"), strict=True):
        found = cell("cora", "borderline", 0.5, Method(candidates=RULES[arm]))
        assert abs(float(row["ceiling"].split()[0]) - found.ceiling.mean()) < 0.035, (
            "retrained weights may differ a little"
        )
        assert abs(float(row["@8"]) - found.valid[:, -1].mean()) < 0.035
        assert abs(float(row["public guess"]) - found.guess.mean()) < 0.07


def test_the_papers_ceilings_are_reproduced_by_the_edge_only_arm() -> None:
    agreeing = 0
    for name in ("general", "borderline"):
        with (RESULTS / f"frontier-{name}.csv").open() as file:
            agreeing += sum(row["verdict"] == "agrees" for row in csv.DictReader(file))
    assert agreeing >= 10


def test_a_verdict_names_the_gap() -> None:
    values = np.array([0.0, 1.0] * 50)
    assert verdict(values, 0.55) == "agrees"
    assert verdict(values, 0.9) == "differs by 0.400"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_result_is_committed_with_its_public_guess(name: str) -> None:
    page = (RESULTS / f"{name}.md").read_text()
    assert f"Written by `privcfs-lab reproduce {name}`" in page
    assert "public guess" in page
