"""Compared methods that add noise: the noise is what they say, and what they certify can be checked or is denied."""

from dataclasses import replace
from itertools import combinations
from math import erf, exp, log, sqrt

import dp_accounting
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from privcfs import Intervention, PrivateGraph
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.product import Product
from privcfs.public.models.gcn import normalised_adjacency
from privcfs_lab.baselines import BASELINES, ROBUST, dp_sgd, gap, naive_dp, privcf_out, rr_ldp
from privcfs_lab.baselines.baseline import (
    ANY_GRAPHS,
    NOTHING,
    ONE_EDGE,
    ONE_EXAMPLE,
    Operations,
    Problem,
    flips,
    prediction_after,
    predictions,
)
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.dp_sgd import DPSGD
from privcfs_lab.baselines.gap import GAP
from privcfs_lab.baselines.graph_level import GraphLevel
from privcfs_lab.baselines.lap_dp import LapDP
from privcfs_lab.baselines.naive_dp import AnalyticNaiveDP, NaiveDP
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods
from privcfs_lab.baselines.privcf_out import PrivCFOut
from privcfs_lab.baselines.privcf_sgd import PrivCFSGD, _Public
from privcfs_lab.baselines.restricted import RULES_OF_CHOICE, Restricted
from privcfs_lab.baselines.rr_ldp import RRLDP, randomised
from privcfs_lab.baselines.weighted import WeightedTargets, Weights, adjacency, evaluate_weighted
from privcfs_lab.datasets.dataset import Dataset, Split
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.targets import POPULATIONS
from tests.worlds import random_gcn, random_pairs

NODES = 14
GRAPH_LEVEL = [NaiveDP(), AnalyticNaiveDP(), LapDP(), RRLDP()]


def problem(seed: int, targets: tuple[int, ...] = (0, 3, 7), nodes: int = NODES) -> Problem:
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((nodes, 9)) < 0.6).astype(np.float32))
    pairs = random_pairs(rng, nodes, 0.25)
    split = Split(np.arange(nodes - 4), np.array([nodes - 4]), np.array([nodes - 3, nodes - 2]))
    data = Dataset("made", features, pairs, np.arange(nodes) % 3, split)
    return Problem(data, random_gcn(rng, 9), targets, seed, pairs[::2])


def weighted_logits(asked: Problem, weights: Weights, target: int, mask: tuple[int, ...]) -> NDArray[np.float64]:
    """The slow way: a dense forward pass."""
    model, features = asked.model, asked.data.features.toarray().astype(np.float64)
    features[target, list(mask)] = 0
    whole = weights.astype(np.float64) + np.eye(len(weights))
    root = 1 / np.sqrt(whole.sum(axis=1))
    spread = root[:, None] * whole * root
    hidden = np.maximum(spread @ features @ model.first + model.first_bias, 0)  # type: ignore[union-attr]
    scores: NDArray[np.float64] = spread @ hidden @ model.second + model.second_bias  # type: ignore[union-attr]
    row: NDArray[np.float64] = scores[target]
    return row


@pytest.mark.parametrize("method", GRAPH_LEVEL, ids=lambda one: type(one).__name__)
def test_masks_on_a_noisy_graph_equal_a_dense_forward_pass(method: GraphLevel) -> None:
    asked = problem(3)
    weights = method.privatise(asked)
    batch = WeightedTargets.of(asked, weights)
    rng = np.random.default_rng(0)
    edges, features = rng.random(len(batch.pairs)) < 0.6, rng.random(len(batch.features)) < 0.6
    scores = batch.logits(torch.tensor(edges).float(), torch.tensor(features).float())
    for number, target in enumerate(asked.targets):
        done = batch.explanations(edges, features)[number].intervention
        changed = weights.copy()
        for u, w in done.delete:
            changed[u, w] = changed[w, u] = 0
        assert np.allclose(scores[number].numpy(), weighted_logits(asked, changed, target, done.mask), atol=1e-4)


@pytest.mark.parametrize("method", GRAPH_LEVEL, ids=lambda one: type(one).__name__)
def test_candidates_on_a_noisy_graph_are_evaluated_exactly(method: GraphLevel) -> None:
    asked = problem(5)
    weights, context = method.privatise(asked), asked.context()
    for target in asked.targets:
        candidates = Product(TwoHop(8)).propose(context, target)
        logits = evaluate_weighted(weights, context, candidates).logits
        for position in range(0, len(candidates), max(1, len(candidates) // 40)):
            chosen, changed = candidates[position], weights.copy()
            for u, w in chosen.delete:
                changed[u, w] = changed[w, u] = 0
            expected = weighted_logits(asked, changed, target, chosen.mask)
            assert np.allclose(logits[:, position], expected, atol=1e-4)


def test_without_noise_the_weighted_evaluator_is_the_private_one() -> None:
    asked = problem(2)
    context, graph = asked.context(), PrivateGraph.from_edges(asked.data.pairs, number_of_nodes=NODES)
    for target in asked.targets:
        candidates = Product().propose(context, target)
        slow = evaluate_weighted(adjacency(asked), context, candidates)
        fast = evaluate(graph, context, candidates, UNLIMITED)
        assert np.allclose(slow.logits, fast.logits, atol=1e-4)
        assert np.array_equal(slow.effective, fast.effective)


@pytest.mark.parametrize("method", GRAPH_LEVEL, ids=lambda one: type(one).__name__)
def test_a_noisy_graph_is_symmetric_clamped_and_the_same_for_every_population(method: GraphLevel) -> None:
    weights = method.privatise(problem(1, nodes=120))
    assert np.array_equal(weights, weights.T)
    assert (np.diag(weights) == 0).all()
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert np.array_equal(weights, method.privatise(problem(1, (5,), 120)))
    assert not np.array_equal(weights, method.privatise(replace(problem(1, nodes=120), seed=9)))


def test_deviations_and_prices_are_those_of_the_formulas() -> None:
    assert pytest.approx(0.9516, abs=1e-4) == naive_dp.PRINTED
    assert NaiveDP().certificate.proven == pytest.approx(4.64, abs=0.01)
    full_matrix = dp_accounting.get_epsilon_gaussian(naive_dp.PRINTED / sqrt(2), 1e-5)
    assert full_matrix < 7.2  # the printed formula is no theorem there, and happens to err on the safe side
    assert dp_accounting.get_epsilon_gaussian(naive_dp.ANALYTIC, 1e-5) == pytest.approx(7.2, abs=1e-3)
    assert pytest.approx(7.46e-4, abs=1e-6) == rr_ldp.WRONG
    assert log((1 - rr_ldp.WRONG) / rr_ldp.WRONG) == pytest.approx(7.2)
    assert pytest.approx(7.16, abs=0.005) == dp_sgd.EPSILON
    assert dp_sgd.epsilon_of(100, 3.5) == pytest.approx(16.7, abs=0.05)  # what half the noise would really cost
    assert pytest.approx(sqrt(2 * log(1.25e5)) / 7.2) == privcf_out.DEVIATION
    assert pytest.approx(sqrt(2) * naive_dp.ANALYTIC) == gap.DEVIATION


def test_randomised_response_lies_about_as_many_pairs_as_it_should() -> None:
    for name, expected in (("cora", 2734), ("citeseer", 4128)):
        world = Simulation(name, 0)
        asked = Problem(world.data, world.model, (0,), 0)
        reported = {tuple(pair) for pair in randomised(asked).tolist()}
        true = {tuple(pair) for pair in world.data.pairs.tolist()}
        assert abs(len(reported - true) - expected) < 5 * sqrt(expected)
        assert len(true - reported) < 20
        assert all(0 <= u < w < len(world.data.labels) for u, w in reported)


def test_every_pair_has_the_same_chance_of_a_wrong_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rr_ldp, "WRONG", 0.3)
    counts, asked = np.zeros((6, 6)), problem(0, (0,), 6)
    true = {tuple(pair) for pair in asked.data.pairs.tolist()}
    for seed in range(2000):
        for pair in {tuple(p) for p in randomised(replace(asked, seed=seed)).tolist()} ^ true:
            counts[pair] += 1
    shares = np.array([counts[pair] for pair in combinations(range(6), 2)]) / 2000
    assert np.abs(shares - 0.3).max() < 5 * sqrt(0.3 * 0.7 / 2000)


TAILS = {
    NaiveDP: 1 - erf(0.9 / naive_dp.PRINTED / sqrt(2)),
    AnalyticNaiveDP: 1 - erf(0.9 / naive_dp.ANALYTIC / sqrt(2)),
    LapDP: exp(-7.2 * 0.9),
}


@pytest.mark.parametrize("method", GRAPH_LEVEL[:3], ids=lambda one: type(one).__name__)
def test_noise_has_the_stated_spread(method: GraphLevel) -> None:
    """How often an absent pair gets a weight above 0.9 tells the deviation; a tenth more or less would show."""
    asked = problem(0, (0,), 700)
    asked = asked.on(asked.data.pairs[:0])
    above = (method.privatise(asked)[np.triu_indices(700, 1)] > 0.9).mean()
    expected = TAILS[type(method)] / 2
    assert abs(above - expected) < 4 * sqrt(expected / (700 * 699 / 2))


def test_sums_carry_the_noise_that_the_price_needs() -> None:
    asked = problem(0, (0,), 300)
    units = gap.train(asked, deviation=0.0).sums
    noise = gap.train(asked).sums - units
    assert noise.std() == pytest.approx(gap.DEVIATION, rel=0.1)


def test_every_step_on_masks_carries_the_noise_that_the_price_needs() -> None:
    """A public pair that does not exist has no gradient: its logit is a walk of 100 noisy steps from 1."""
    asked = problem(0, tuple(range(40)), 60)
    absent = np.array([pair for pair in combinations(range(60), 2) if list(pair) not in asked.data.pairs.tolist()])
    asked = replace(asked, snapshot=absent[::3])
    method = PrivCFSGD(Operations.EDGES, rate=0.05)
    spread = 0.05 * 14 * 0.1 * sqrt(100)
    kept = _Public.of(asked, Neighbourhoods.of(asked), Operations.EDGES)
    named = sum(len(one.intervention.delete) for one in method.explain(asked))
    expected = (1 - erf(1 / spread / sqrt(2))) / 2
    assert abs(named / len(kept.owner) - expected) < 4 * sqrt(expected / len(kept.owner))


def test_every_logit_of_the_heuristic_is_noised() -> None:
    """Untrained masks stand at 1; a share of them falls below 0 by noise alone."""
    asked = problem(0, tuple(range(30)), 60)
    method = PrivCFOut(explainer=CFGNNExplainer(epochs=0))
    batch = Neighbourhoods.of(asked)
    named = sum(one.intervention.size for one in method.explain(asked))
    expected = (1 - erf(1 / privcf_out.DEVIATION / sqrt(2))) / 2
    entries = len(batch.pairs) + len(batch.features)
    assert abs(named / entries - expected) < 4 * sqrt(expected / entries)


def test_training_steps_carry_the_noise_that_the_price_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With clipped gradients of no length left, weights move by noise alone."""
    moved = []

    def remember(self: torch.optim.Adam) -> None:
        moved.append(torch.cat([weight.grad.ravel() for weight in self.param_groups[0]["params"]]))

    monkeypatch.setattr(torch.optim.Adam, "step", remember)
    monkeypatch.setattr(dp_sgd._Examples, "clipped_sum", lambda _, weights, __: [0 * w.detach() for w in weights])
    asked = problem(0)
    DPSGD(clip=0.5).train(asked)
    noise = torch.stack(moved) * len(asked.data.split.train)
    assert len(moved) == 100
    assert float(noise.std()) == pytest.approx(7 * 0.5, rel=0.02)


@pytest.mark.parametrize("name", [*BASELINES, *ROBUST])
def test_every_row_answers_every_target_and_says_what_it_certifies(name: str) -> None:
    method, asked = {**BASELINES, **ROBUST}[name], problem(4)
    answers = method.explain(asked)
    assert len(answers) == len(asked.targets)
    assert method.certificate.covers in (NOTHING, ONE_EDGE, ONE_EXAMPLE, ANY_GRAPHS)
    assert (method.placement == "none") == (method.certificate.epsilon is None)
    before = predictions(asked)
    for target, answer in zip(asked.targets, answers, strict=True):
        if method.operations is Operations.EDGES:
            assert not answer.intervention.mask
        if method.placement in ("none", "explanation"):  # they look at the true graph
            assert answer.prediction == before[target]
            assert answer.flips == flips(asked, target, answer.intervention)


def test_a_release_names_public_elements_whether_or_not_they_exist() -> None:
    """Two graphs over one snapshot: what PrivCF-SGD may name is the same, and it names absent pairs too."""
    asked = problem(6, tuple(range(8)))
    asked = replace(asked, snapshot=random_pairs(np.random.default_rng(99), NODES, 0.4))
    other = asked.on(asked.data.pairs[::2])
    lists = [_Public.of(one, Neighbourhoods.of(one), Operations.BOTH) for one in (asked, other)]
    assert lists[0].elements == lists[1].elements
    assert torch.equal(lists[0].owner, lists[1].owner)
    public = {tuple(pair) for pair in asked.snapshot.tolist()}
    named = [pair for one in PrivCFSGD(rate=5.0).explain(asked) for pair in one.intervention.delete]
    assert set(named) <= public
    assert set(named) - {tuple(pair) for pair in asked.data.pairs.tolist()}


def test_a_clipped_gradient_is_never_longer_than_promised() -> None:
    asked = problem(6)
    public = _Public.of(asked, Neighbourhoods.of(asked), Operations.BOTH)
    for scale in (1e-3, 1.0, 1e6):
        gradient = scale * torch.randn(len(public.owner), generator=torch.Generator().manual_seed(0))
        clipped = public.clipped(gradient, 0.1)
        lengths = torch.zeros(len(asked.targets)).index_add(0, public.owner, clipped**2).sqrt()
        assert (lengths <= 0.1 + 1e-6).all()
        if scale < 1e-2:
            assert torch.equal(clipped, gradient)


def test_nothing_of_the_graph_but_a_clipped_gradient_enters_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every clipped gradient made nothing, two graphs give the same answers: all else is public or noise."""
    asked = problem(6, tuple(range(8)))
    other = replace(asked.on(asked.data.pairs[::2]), snapshot=asked.snapshot)
    monkeypatch.setattr(_Public, "clipped", lambda _, gradient, __: 0 * gradient)
    blind = [[one.intervention for one in PrivCFSGD(rate=1.0).explain(world)] for world in (asked, other)]
    assert blind[0] == blind[1]
    assert any(one.size for one in blind[0])


def test_gradients_of_single_nodes_are_those_of_autograd_and_are_clipped() -> None:
    asked = problem(7)
    examples = dp_sgd._Examples(asked)
    rng = torch.Generator().manual_seed(0)
    weights = [torch.randn(9, 4, generator=rng), torch.randn(4, 3, generator=rng)]
    spread = torch.from_numpy(normalised_adjacency(NODES, asked.data.pairs).toarray()).float()
    inputs = torch.from_numpy(asked.data.features.toarray())
    for clip in (1e9, 0.05):
        totals = [torch.zeros_like(weight) for weight in weights]
        for node in asked.data.split.train.tolist():
            first, second = (weight.clone().requires_grad_() for weight in weights)
            scores = (spread @ torch.relu(spread @ inputs @ first) @ second)[node]
            loss = torch.nn.functional.cross_entropy(scores[None], torch.tensor([asked.data.labels[node]]))
            gradients = torch.autograd.grad(loss, [first, second])
            length = torch.cat([part.ravel() for part in gradients]).norm()
            for total, part in zip(totals, gradients, strict=True):
                total += part * (clip / length.clamp(min=clip))
        for total, ours in zip(totals, examples.clipped_sum(weights, clip), strict=True):
            assert torch.allclose(total, ours, atol=1e-4)


def test_a_changed_label_would_cost_more_than_a_node_that_is_there_or_not() -> None:
    """Two clipped gradients can point away from each other: the certificate does not claim labels."""
    asked = problem(7)
    labels = asked.data.labels.copy()
    labels[0] = (labels[0] + 1) % 3
    other = replace(asked, data=replace(asked.data, labels=labels))
    weights = [torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 3)]
    sums = [dp_sgd._Examples(one).clipped_sum(weights, 1e-3) for one in (asked, other)]
    distance = torch.cat([(a - b).ravel() for a, b in zip(*sums, strict=True)]).norm()
    assert 1e-3 < distance <= 2e-3 + 1e-9


def test_the_noisy_model_still_learns_something() -> None:
    world = Simulation("cora", 0)
    private = DPSGD().train(Problem(world.data, world.model, (0,), 0))
    right = private.logits(world.data.features, world.data.pairs).argmax(axis=1) == world.data.labels
    assert 0.45 < right[world.data.split.test].mean() < 0.75


def test_one_edge_moves_the_noisy_sums_by_no_more_than_the_root_of_two() -> None:
    """Same seed, same noise: what is left is the edge."""
    asked = problem(8)
    base = gap.train(asked).sums
    for number in range(len(asked.data.pairs)):
        other = gap.train(asked.on(np.delete(asked.data.pairs, number, axis=0))).sums
        assert np.linalg.norm(base - other) <= sqrt(2) + 1e-5


def test_gap_reads_no_edge_besides_its_noisy_sums() -> None:
    """With the sums held fixed, other edges change neither the answer nor the model."""
    asked = problem(8, (1, 2, 4))
    model = gap.train(asked)
    other = asked.on(asked.data.pairs[:2])
    for target in asked.targets:
        assert GAP()._search(model, asked, target) == GAP()._search(model, other, target)


def test_restricted_answers_stay_in_the_public_list() -> None:
    asked = problem(9)
    context = asked.context()
    for noise in (NaiveDP(), RRLDP()):
        for target, one in zip(asked.targets, Restricted(noise).explain(asked), strict=True):
            assert one.intervention in Product().propose(context, target)


def test_by_utility_nothing_is_named_where_nothing_flips_the_noisy_graph() -> None:
    """Why the paper's control reads 0.000."""
    world = Simulation("cora", 0)
    targets = tuple(POPULATIONS["borderline"](world))
    asked = Problem(world.data, world.model, targets, 0, world.snapshot(0.5))
    found = {rule: Restricted(rule=rule).explain(asked) for rule in RULES_OF_CHOICE}
    assert all(one.intervention == Intervention() for one in found["best utility"])
    before = predictions(asked)
    flipped = [
        prediction_after(asked, target, one.intervention) != before[target]
        for target, one in zip(targets, found["lowest margin"], strict=True)
    ]
    assert sum(flipped) >= 4
