"""The comparison: all contenders are judged alike, committed numbers meet the bars, work goes on where it stopped."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privcfs import Intervention
from privcfs.embedded import NAMES
from privcfs_lab.baselines import comparison
from privcfs_lab.baselines.baseline import ANY_GRAPHS, Explanation, Problem
from privcfs_lab.baselines.comparison import CONTENDERS, OUTCOME, Compared, Drawn, Explained
from privcfs_lab.datasets import load
from privcfs_lab.experiments import compare, ground_truth, readings
from privcfs_lab.experiments.paper import COMPARED
from privcfs_lab.measuring.measure import GRID, Scene, measure_with
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.study import Study
from privcfs_lab.measuring.targets import POPULATIONS

RESULTS = Path(__file__).parent.parent.parent / "docs/results"
DENSE = ("NaiveDP, as printed", "NaiveDP, calibrated", "LapDP")


def rows_of(name: str) -> list[dict[str, str]]:
    with (RESULTS / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def full() -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["data"], row["population"], row["method"]): row for row in rows_of("compare-full")}


def test_a_judgement_knows_the_true_graph_and_the_world_where_the_method_looked() -> None:
    world = Simulation("cora", 0)
    target = POPULATIONS["borderline"](world)[0]
    asked = Problem(world.data, world.model, (target,), 0)
    before = int(world.model.logits(world.data.features, world.data.pairs)[target].argmax())
    everything = Intervention(
        delete=tuple((int(u), int(w)) for u, w in world.data.pairs if target in (u, w)),
        mask=tuple(int(number) for number in world.data.features[[target]].indices),
    )
    nothing = Intervention()

    def judged(one: Intervention, prediction: int, flips: bool) -> dict[str, float]:
        row = comparison._judged(asked, before, target, Explanation(one, prediction, flips))
        return dict(zip(comparison.JUDGED, row, strict=True))

    honest = judged(nothing, before, False)
    assert not any(honest.values())
    spurious = judged(nothing, before + 1, True)
    assert (spurious["spurious"], spurious["polluted"], spurious["both"], spurious["idle"]) == (1, 1, 1, 0)
    real = judged(everything, before, True)
    assert real["size"] == everything.size
    assert real["valid"] + real["idle"] == 1
    assert real["small"] <= real["valid"]


def test_our_row_is_the_exact_expectation_of_the_frontier() -> None:
    world = Simulation("cora", 0)
    contender = CONTENDERS["ours, exponential"]
    assert isinstance(contender, Drawn)
    targets = POPULATIONS["borderline"](world)[:4]
    records = contender.outcomes(world, targets)
    scene = Scene.of(world.graph, world.context(0.5))
    for target, row in zip(targets, records, strict=True):
        expected = measure_with(None, scene, target, contender.method)[0]
        assert row["valid"] == pytest.approx(expected["ours"][GRID.index("8")])
        assert row["valid"] + row["idle"] <= 1 + 1e-9
        assert row["spurious"] == row["polluted"] == 0


def test_a_slice_of_the_comparison_is_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study((0,), 1, tmp_path, most=2)
    works = [Compared("cora", "borderline", name) for name in ("greedy search", "GAP backbone", "ours, exponential")]
    first = study.measure(works)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for kind in (Explained, Drawn):
        monkeypatch.setattr(kind, "outcomes", interrupted)
    again = study.measure(works)
    for work in works:
        assert first[work].dtype == OUTCOME
        assert np.array_equal(first[work], again[work])
    with pytest.raises(KeyboardInterrupt):
        study.measure([*works, Compared("cora", "borderline", "RR-LDP")])


def test_committed_rows_are_those_of_this_code(full: dict[tuple[str, str, str], dict[str, str]]) -> None:
    """Cheap rows are computed again, retraining included: two of 48 targets may change sides."""
    names = ("RCExplainer", "greedy search", "GAP backbone", "PrivCF-SGD, edges")
    works = {name: Compared("cora", "general", name) for name in names}
    found = Study((0, 1, 2)).measure(works.values())
    for name, work in works.items():
        row = full["cora", "general", name]
        assert abs(found[work]["valid"].mean() - float(row["CSR"])) < 0.05, name
        assert found[work]["size"].mean() == pytest.approx(float(row["size"]), rel=0.2), name


def test_every_contender_and_row_zero_stand_in_the_full_table(full: dict[tuple[str, str, str], dict[str, str]]) -> None:
    wanted = {*CONTENDERS, *compare.ZERO.values()}
    for data in NAMES:
        for population in compare.POPULATIONS:
            assert {method for d, p, method in full if (d, p) == (data, population)} == wanted
    assert {name for rows in COMPARED.values() for name in rows} <= set(CONTENDERS)
    assert set(compare.SHORT) <= set(CONTENDERS)


def test_the_bars_of_the_open_methods_are_met(full: dict[tuple[str, str, str], dict[str, str]]) -> None:
    """CF-GNNExplainer at least .95; the others at least what a second implementation measured, less two errors."""
    second = {
        "PNS": (0.792, 1.0, 0.875, 1.0),
        "RCExplainer": (0.521, 0.933, 0.792, 0.933),
        "COMBINEX": (0.521, 0.833, 0.562, 0.833),
    }
    cells = [(data, population) for data in NAMES for population in ("general", "borderline")]
    for number, cell in enumerate(cells):
        assert float(full[*cell, "CF-GNNExplainer"]["CSR"]) >= 0.95
        for name, values in second.items():
            row = full[*cell, name]
            assert float(row["CSR"]) >= values[number] - 2 * float(row["CSR ±"])


def test_graph_level_rows_pollute_and_their_spurious_flips_are_on_polluted_targets(
    full: dict[tuple[str, str, str], dict[str, str]],
) -> None:
    for data in NAMES:
        for population in compare.POPULATIONS:
            for name in DENSE:
                row = full[data, population, name]
                assert float(row["pollution"]) >= 0.6
                assert float(row["spurious"]) >= 0.2
                assert float(row["spurious that are polluted"]) >= 0.8
        assert float(full[data, "borderline", "RR-LDP"]["pollution"]) > 2 * float(
            full[data, "general", "RR-LDP"]["pollution"]
        )


def test_explanation_level_rows_cannot_be_spurious(full: dict[tuple[str, str, str], dict[str, str]]) -> None:
    rows = [row for row in full.values() if row["noise at"] == "explanation"]
    assert len(rows) >= 40
    assert all(float(row["spurious"]) == float(row["pollution"]) == 0 for row in rows)


def test_every_method_takes_less_than_a_second_a_target(full: dict[tuple[str, str, str], dict[str, str]]) -> None:
    for (_, _, method), row in full.items():
        if row["seconds"] and method not in DENSE:
            assert float(row["seconds"]) < 1, method


def test_only_what_covers_every_graph_is_called_so() -> None:
    league = {name for name, one in CONTENDERS.items() if one.certificate.covers == ANY_GRAPHS}
    assert {name.split(",")[0] for name in league} == {"PrivCF-SGD", "one coin a pair", "sequential", "ours"}


def test_citeseer_with_a_noisy_weight_on_every_pair_fits_in_two_gigabytes() -> None:
    code = (
        "import resource\n"
        "from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer\n"
        "from privcfs_lab.baselines.lap_dp import LapDP\n"
        "from privcfs_lab.baselines.comparison import Explained\n"
        "from privcfs_lab.measuring.simulate import Simulation\n"
        "from privcfs_lab.measuring.targets import POPULATIONS\n"
        "world = Simulation('citeseer', 0)\n"
        "Explained(LapDP(explainer=CFGNNExplainer(epochs=3))).outcomes(world, POPULATIONS['general'](world))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 2000


def test_readings_have_our_number_beside_the_papers() -> None:
    rows = rows_of("readings")
    for reading in (readings.FIRST, readings.SECOND, readings.THIRD):
        chosen = [row for row in rows if row["reading"] == reading]
        assert chosen
        assert any(row["paper"] for row in chosen)
    assert all(row["ours"] for row in rows)


def test_known_reasons_are_found() -> None:
    rows = {(row["data"], row["method"]): row for row in rows_of("ground-truth")}
    assert len(rows) == len(ground_truth.EXTRA) * (len(ground_truth.EXPLAINERS) + len(ground_truth.RELEASES))
    for data in ground_truth.EXTRA:
        row = rows[data, "CF-GNNExplainer"]
        assert float(row["accuracy"]) > 0.85
        assert float(row["sparsity"]) > 0.85
        free, paid = (float(rows[data, name]["fidelity"]) for name in ("row zero: public guess", "ours, epsilon 8"))
        assert paid < free


def test_an_answer_in_a_motif_is_right_and_one_outside_is_wrong() -> None:
    data, _, right = ground_truth._world("tree-cycles", 0)
    assert right[data.split.validation].mean() > ground_truth.GOOD
    laid = {tuple(pair) for pair in load("tree-cycles").pairs.tolist()}
    random = [(int(u), int(w)) for u, w in data.pairs if (int(u), int(w)) not in laid]
    assert ground_truth._inside(data, Intervention(delete=tuple(random))) == 0
    motif = [(u, w) for u, w in sorted(laid) if data.labels[u] > 0 and data.labels[w] > 0]
    base = [(int(u), int(w)) for u, w in data.pairs if data.labels[u] == 0 and data.labels[w] == 0]
    assert ground_truth._inside(data, Intervention(delete=tuple(motif[:2]))) == 1
    assert ground_truth._inside(data, Intervention(delete=(motif[0], base[0]))) == 0.5
    assert ground_truth._inside(data, Intervention()) == 0
    assert len(data.pairs) == pytest.approx(975, abs=2)
