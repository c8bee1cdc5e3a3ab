"""The post-mortem of the heuristic: neighbouring graphs are what they should be, and the committed page says so."""

import csv
from dataclasses import replace
from math import hypot
from pathlib import Path

import numpy as np
import pytest
import torch

from privcfs.embedded import NAMES
from privcfs_lab.audit.distinguish import gaussian_auc, laplace_auc
from privcfs_lab.audit.post_mortem import (
    JUMP,
    VARIANTS,
    PostMortem,
    Without,
    adjacent_graphs,
    consistency_penalty,
    gradient_penalty,
    movement,
)
from privcfs_lab.baselines.baseline import NOTHING, Operations, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer, Losses, Masks, Penalty
from privcfs_lab.baselines.neighbourhoods import Best, Maskable, Neighbourhoods, Numbers
from privcfs_lab.baselines.privcf_out import DEVIATION, EPSILON, PrivCFOut
from privcfs_lab.experiments import compare
from privcfs_lab.experiments.leakage import GRAPH_LEVEL_AUC, HEURISTIC, OURS, SCRATCH
from privcfs_lab.experiments.post_mortem import PENALTIES, ROW_ZERO, WARM
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.study import Study
from tests.lab.test_private_baselines import problem

RESULTS = Path(__file__).parent.parent.parent / "docs/results"


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], dict[str, str]]:
    with (RESULTS / "post-mortem.csv").open() as file:
        return {(row["data"], row["method"]): row for row in csv.DictReader(file)}


def furthest(asked: Problem, gone: Numbers, explainer: CFGNNExplainer) -> float:
    """The largest gap between the batch of neighbours and a search in graphs that really lack the pairs."""
    batch = Neighbourhoods.of(asked)
    less, gaps = Without(batch, gone), []
    _, edges, features = explainer.search(less)
    for number, target in enumerate(asked.targets):
        rest = asked.data.pairs[(asked.data.pairs != batch.pairs[gone[number]]).any(axis=1)]
        alone = Neighbourhoods.of(replace(asked.on(rest), targets=(target,)))
        _, expected, masks = explainer.search(alone)
        chosen = np.flatnonzero((batch.owner == number) & less.shared.numpy())
        here = {tuple(batch.pairs[entry]): float(edges[entry]) for entry in chosen}
        there = {tuple(pair): float(logit) for pair, logit in zip(alone.pairs, expected, strict=True)}
        assert set(here) == set(there)
        gaps += [abs(here[pair] - there[pair]) for pair in here]
        gaps += (features[batch.feature_owner == number] - masks).abs().tolist()
    return max(gaps)


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_without_pairs_is_explained_like_graphs_without_them(seed: int) -> None:
    """To 1e-4, by rounding. Each time another pair goes, some of them with pairs that lead nowhere afterwards."""
    lost = 0
    for target in (0, 3, 7):
        count = len(Neighbourhoods.of(problem(seed, (target,))).pairs)
        chosen = np.arange(count)[:: 1 + count // 6]
        asked = problem(seed, (target,) * len(chosen))
        gone = np.arange(len(chosen)) * count + chosen
        lost += int((~Without(Neighbourhoods.of(asked), gone).shared).sum()) - len(gone)
        assert furthest(asked, gone, CFGNNExplainer(epochs=40)) < 1e-4
    assert lost > 0


def test_neighbours_on_real_data_are_explained_like_graphs_without_the_pair() -> None:
    world = Simulation("citeseer", 0)
    for targets, less in adjacent_graphs(world, 8):
        asked = Problem(world.data, world.model, targets, 0)
        assert furthest(asked, less.gone.numpy(), PrivCFOut().explainer) < 1e-3


def test_targets_are_distinct_test_nodes_and_lose_one_pair_of_their_own() -> None:
    world = Simulation("cora", 0)
    seen: list[int] = []
    for targets, less in adjacent_graphs(world, 120):
        assert np.array_equal(less.owner[less.gone], np.arange(len(targets)))
        assert not less.shared[less.gone].any()
        seen += targets
    assert len(set(seen)) == len(seen) == 120
    assert set(seen) <= set(world.data.split.test.tolist())


def slowly(explainer: CFGNNExplainer, batch: Neighbourhoods) -> Masks:
    """The published search, written out again without start or penalty."""
    edges = torch.ones(len(batch.pairs), requires_grad=explainer.operations is not Operations.FEATURES)
    features = torch.ones(len(batch.features), requires_grad=explainer.operations is not Operations.EDGES)
    masks, original = [mask for mask in (edges, features) if mask.requires_grad], batch.original()
    kind = torch.optim.SGD if explainer.operations is Operations.EDGES else torch.optim.Adam
    optimiser, owner = kind(masks, lr=explainer.rate), torch.from_numpy(batch.owner)
    for _ in range(explainer.epochs):
        with torch.no_grad():
            kept = batch.logits((edges >= 0).float(), (features >= 0).float()).argmax(dim=1) == original
        soft = torch.sigmoid(edges), torch.sigmoid(features)
        scores = torch.log_softmax(batch.logits(*soft, batch.degrees_under(soft[0]).detach()), dim=1)
        loss = (scores.gather(1, original[:, None])[:, 0] * kept).sum()
        optimiser.zero_grad()
        loss = loss + explainer.size_weight * ((1 - soft[0]).sum() + (1 - soft[1]).sum())
        loss.backward()  # type: ignore[no-untyped-call]
        if edges.grad is not None:
            norm = torch.zeros(len(batch.targets)).index_add(0, owner, edges.grad**2).sqrt()
            edges.grad *= (2 / norm.clamp(min=2))[owner]
        optimiser.step()
    return edges.detach(), features.detach()


@pytest.mark.parametrize("operations", Operations)
@pytest.mark.parametrize("size_weight", [0.0, 0.05])
def test_without_start_or_penalty_the_search_is_the_published_one(operations: Operations, size_weight: float) -> None:
    """Bit for bit, also with a start of ones and a penalty of nothing."""

    def nothing(_: Losses, soft: Masks) -> torch.Tensor:
        return 0 * (soft[0].sum() + soft[1].sum())

    batch = Neighbourhoods.of(problem(2, tuple(range(8))))
    explainer = CFGNNExplainer(operations, 40, size_weight=size_weight)
    ones = torch.ones(len(batch.pairs)), torch.ones(len(batch.features))
    expected = slowly(explainer, batch)
    for more in ({}, {"start": ones}, {"penalty": nothing}):
        found = explainer.search(batch, **more)[1:]
        assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert all((mask == 1).all() for mask in ones)


@pytest.mark.parametrize("name", VARIANTS)
def test_identical_graphs_have_distance_nothing(name: str) -> None:
    """To rounding, which second derivatives add; but a warm start goes on searching where nothing flips."""
    less = Without(Neighbourhoods.of(problem(1, tuple(range(8)))), np.zeros(0, np.int64))
    records = movement(less, *VARIANTS[name](CFGNNExplainer(epochs=40), less))
    still = records["distance"] <= (0 if name in (SCRATCH, WARM) else 1e-4)
    assert still.all() or (name == WARM and still.any())
    assert not records["own"].any()


def test_moves_are_counted_over_the_entries_that_both_graphs_have() -> None:
    asked = problem(1, (0, 3))
    batch = Neighbourhoods.of(asked)
    gone = np.searchsorted(batch.owner, np.arange(2))
    less = Without(batch, gone)
    here = torch.ones(len(batch.pairs)), torch.ones(len(batch.features))
    there = here[0].clone(), here[1].clone()
    there[0][~less.shared] = 9.0  # these do not count, but for the own entry
    other = int(np.flatnonzero(less.shared & (torch.from_numpy(batch.owner) == 1))[0])
    there[0][other] = -2.0
    there[1][int(np.flatnonzero(batch.feature_owner == 1)[0])] = 1.5
    records = movement(less, here, there)
    assert records["distance"].tolist() == [0, pytest.approx(hypot(3, 0.5))]
    assert records["largest"].tolist() == [0, 3]
    assert records["own"].tolist() == [8, 8]
    assert [records[name].tolist() for name in ("same", "jumped", "same_answer")] == [
        [True, False],
        [False, True],
        [True, False],
    ]
    lengths = [int((batch.owner == n).sum() + (batch.feature_owner == n).sum()) for n in range(2)]
    assert records["entries"].tolist() == lengths


class Taking:
    """Stands for an explainer and keeps the penalties that it is asked to use."""

    def __init__(self) -> None:
        self.penalties: list[Penalty] = []

    def search(self, batch: Maskable, start: Masks | None, penalty: Penalty) -> tuple[Best, torch.Tensor, torch.Tensor]:
        self.penalties.append(penalty)
        return CFGNNExplainer(epochs=0).search(batch, start)


def test_penalties_are_what_they_say() -> None:
    """Taken out of a search of one step, and computed again target by target."""
    taken: list[tuple[Losses, Masks]] = []

    def take(losses: Losses, soft: Masks) -> torch.Tensor:
        taken.append((losses, soft))
        return torch.zeros(())

    taking = Taking()
    batch = Neighbourhoods.of(problem(4, tuple(range(5))))
    less = Without(batch, np.searchsorted(batch.owner, np.arange(5)))
    CFGNNExplainer(epochs=1).search(less, penalty=take)
    ((losses, soft),) = taken
    gradient_penalty(0.1, taking, less)  # type: ignore[arg-type]
    consistency_penalty(1.0, taking, less)  # type: ignore[arg-type]
    steep, _, steady, again = (float(penalty(losses, soft).detach()) for penalty in taking.penalties)
    length = 0.0
    for number in range(5):
        parts = torch.autograd.grad(losses(soft)[number], soft, retain_graph=True)
        length += sum(float((part**2).sum()) for part in parts)
    assert steep == pytest.approx(0.1 * length, rel=1e-4)

    def changed(entry: int) -> torch.Tensor:
        dropped = soft[0].index_fill(0, torch.tensor([entry]), 0.0), soft[1]
        return (losses(dropped) - losses(soft)).detach()

    changes = [
        [float(changed(n)[t]) for n in chosen.tolist()]
        for t in range(5)
        if len(chosen := np.flatnonzero(less.shared & (torch.from_numpy(batch.owner) == t)))
    ]
    low, high = (sum(worst(np.square(one)) for one in changes) for worst in (np.min, np.max))
    assert low <= steady == again <= high
    assert high > low


@pytest.mark.parametrize("distance", [0.0, 0.4, 2.0, 10.3])
@pytest.mark.parametrize("price", [EPSILON, 1.5])
def test_the_auc_is_that_of_simulated_gaussians(distance: float, price: float) -> None:
    deviation, rng = DEVIATION * EPSILON / price, np.random.default_rng(0)
    here, there = (deviation * rng.standard_normal(200_000) + shift for shift in (distance, 0.0))
    assert float(gaussian_auc(distance, deviation)) == pytest.approx((here > there).mean(), abs=0.004)


def test_the_auc_of_laplace_noise_is_that_of_clamped_draws() -> None:
    rng = np.random.default_rng(0)
    for epsilon in (0.5, 2.0, 7.2):
        here, there = (np.clip(shift + rng.laplace(0, 1 / epsilon, 400_000), 0, 1) for shift in (1, 0))
        sampled = (here > there).mean() + (here == there).mean() / 2
        assert laplace_auc(epsilon) == pytest.approx(sampled, abs=0.003)


def test_a_slice_is_computed_again_and_the_vector_moves_by_far_more_than_it_assumes() -> None:
    works = [PostMortem("citeseer", name) for name in (SCRATCH, WARM)]
    scratch, warm = Study((0,), most=30).measure(works).values()
    assert scratch["distance"].max() > 5 * JUMP
    assert scratch["own"].max() > JUMP
    assert warm["distance"].mean() < scratch["distance"].mean()
    assert PrivCFOut().certificate.covers == NOTHING


def test_the_committed_page_has_every_variant_on_1500_pairs_of_graphs(
    rows: dict[tuple[str, str], dict[str, str]],
) -> None:
    assert set(rows) == {(data, name) for data in NAMES for name in (ROW_ZERO, *VARIANTS)}
    assert all(int(row["pairs"]) == 1500 for row in rows.values())


def test_no_variant_keeps_what_the_noise_assumes(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    for (data, name), row in rows.items():
        numbers = {key: float(value) for key, value in row.items() if key.startswith(("largest", "mean", "vector"))}
        if name == ROW_ZERO:
            assert all(value == (0.5 if "AUC" in key else 0) for key, value in numbers.items())
            continue
        assert numbers["largest L2"] >= numbers["largest L-infinity"] > 1
        assert numbers["vector epsilon"] == pytest.approx(EPSILON * numbers["largest L2"], rel=1e-3)
        assert numbers["largest AUC, vector"] > 0.99
        assert numbers["mean AUC, vector"] >= numbers["mean AUC, own entry"]
        if name == WARM:
            assert numbers["mean L2"] < float(rows[data, SCRATCH]["mean L2"])


def test_the_papers_average_figures_are_not_those_of_the_deployed_search(
    rows: dict[tuple[str, str], dict[str, str]],
) -> None:
    """What the page says in words: nearly all stay with a warm start, nearly none from scratch."""
    for data in NAMES:
        assert float(rows[data, SCRATCH]["identical"]) < 0.01
        assert float(rows[data, WARM]["identical"]) > 0.9
        assert float(rows[data, SCRATCH]["jumps"]) > 0.2
        assert float(rows[data, WARM]["largest L-infinity"]) > 0.51
        assert float(rows[data, SCRATCH]["true epsilon"]) > float(rows[data, SCRATCH]["vector epsilon"])
        for penalty in PENALTIES:
            assert float(rows[data, penalty]["largest L2"]) > 0.9 * float(rows[data, SCRATCH]["largest L2"])


def test_the_spectrum_has_every_placement_within_its_ceiling() -> None:
    with (RESULTS / "leakage.csv").open() as file:
        found = list(csv.DictReader(file))
    for data in NAMES:
        for population in compare.POPULATIONS:
            chosen = {row["method"]: row for row in found if (row["data"], row["population"]) == (data, population)}
            assert set(chosen) == {*compare.ZERO.values(), *GRAPH_LEVEL_AUC, *OURS, HEURISTIC}
            assert all(
                float(row["largest AUC"]) <= float(row["ceiling of any attack"]) + 1e-6 for row in chosen.values()
            )
            assert all(float(chosen[title]["largest AUC"]) == 0.5 for title in compare.ZERO.values())
            assert float(chosen[HEURISTIC]["largest AUC"]) > 0.999
