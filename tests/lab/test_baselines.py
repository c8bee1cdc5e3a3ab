"""The compared methods on small graphs: exact masks, found flips, honest validity."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from privcfs import Intervention
from privcfs_lab.baselines.baseline import Certificate, Operations, Problem, flips
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.combinex import SCHEDULES, Combinex
from privcfs_lab.baselines.greedy import Greedy
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods
from privcfs_lab.baselines.pns import PNS
from privcfs_lab.baselines.rc_explainer import RCExplainer
from privcfs_lab.datasets.dataset import Dataset, Split
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.targets import POPULATIONS
from tests.worlds import random_gcn, random_pairs

NODES = 14
METHODS = [CFGNNExplainer(epochs=60), Combinex(epochs=60), PNS(epochs=60), RCExplainer(epochs=60), Greedy()]


def problem(seed: int, targets: tuple[int, ...] = (0, 3, 7)) -> Problem:
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((NODES, 9)) < 0.6).astype(np.float32))
    none = np.zeros(0, np.int64)
    data = Dataset("made", features, random_pairs(rng, NODES, 0.25), np.zeros(NODES, np.int64), Split(none, none, none))
    return Problem(data, random_gcn(rng, 9), targets, seed)


@pytest.mark.parametrize("seed", range(6))
def test_hard_masks_equal_a_full_forward_pass_on_the_changed_graph(seed: int) -> None:
    asked = problem(seed)
    batch = Neighbourhoods.of(asked)
    rng = np.random.default_rng(seed)
    edges, features = rng.random(len(batch.pairs)) < 0.7, rng.random(len(batch.features)) < 0.7
    scores = batch.logits(torch.tensor(edges).float(), torch.tensor(features).float())
    for number, target in enumerate(asked.targets):
        chosen = batch.explanations(edges, features)[number].intervention
        gone = set(chosen.delete)
        pairs = np.array([p for p in asked.data.pairs.tolist() if tuple(p) not in gone], np.int64).reshape(-1, 2)
        changed = asked.data.features.toarray()
        changed[target, list(chosen.mask)] = 0
        expected = asked.model.logits(sp.csr_array(changed), pairs)[target]
        assert np.allclose(scores[number].detach().numpy(), expected, atol=1e-4)


def test_gradients_reach_every_edge_that_matters() -> None:
    batch = Neighbourhoods.of(problem(0))
    edges = torch.full((len(batch.pairs),), 0.5, requires_grad=True)
    batch.logits(edges, torch.ones(len(batch.features)))[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert edges.grad is not None
    assert (edges.grad != 0).float().mean() > 0.5


@pytest.mark.parametrize("operations", Operations)
@pytest.mark.parametrize("method", [CFGNNExplainer, Combinex, RCExplainer, Greedy])
def test_what_a_search_finds_flips_the_true_graph(
    method: type[CFGNNExplainer] | type[Combinex] | type[RCExplainer] | type[Greedy], operations: Operations
) -> None:
    found = 0
    for seed in range(4):
        asked = problem(seed)
        for target, one in zip(asked.targets, method(operations).explain(asked), strict=True):
            assert one.flips == (one.intervention != Intervention())
            assert one.flips == flips(asked, target, one.intervention)
            found += one.flips
    assert found >= 3


@pytest.mark.parametrize("operations", Operations)
@pytest.mark.parametrize("method", METHODS, ids=lambda one: type(one).__name__)
def test_methods_keep_to_their_operations_and_to_the_graph(
    method: CFGNNExplainer | Combinex | PNS | RCExplainer | Greedy, operations: Operations
) -> None:
    asked = problem(1)
    edges = {tuple(pair) for pair in asked.data.pairs.tolist()}
    for target, one in zip(asked.targets, replace(method, operations=operations).explain(asked), strict=True):
        found = one.intervention
        assert operations is not Operations.EDGES or not found.mask
        assert operations is not Operations.FEATURES or not found.delete
        assert set(found.delete) <= edges
        assert not found.add
        assert (asked.data.features.toarray()[target, list(found.mask)] > 0).all()
    assert method.certificate == Certificate(covers="nothing")


def test_greedy_search_never_needs_more_than_the_smallest_flip_of_one_element() -> None:
    """Where one operation flips, the search stops after one."""
    for seed in range(6):
        asked = problem(seed)
        for target, found in zip(asked.targets, Greedy(Operations.EDGES).explain(asked), strict=True):
            edges = [tuple(pair) for pair in asked.data.pairs.tolist()]
            if any(flips(asked, target, Intervention(delete=((u, w),))) for u, w in edges):
                assert len(found.intervention.delete) == 1


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_weighs_features_first(schedule: str) -> None:
    start, end = (SCHEDULES[schedule](done) for done in (0.0, 1.0))
    assert 0 <= end <= start <= 1
    assert Combinex(epochs=20, schedule=schedule).explain(problem(0))


def test_pns_removes_what_the_prediction_needs() -> None:
    world = Simulation("cora", 0)
    targets = tuple(POPULATIONS["borderline"](world))
    asked = Problem(world.data, world.model, targets)
    found = PNS().explain(asked)
    assert sum(flips(asked, target, one.intervention) for target, one in zip(targets, found, strict=True)) >= 9


def test_a_target_alone_and_in_a_batch_has_the_same_explanation() -> None:
    asked = problem(2, (0, 3, 7))
    together = CFGNNExplainer(Operations.EDGES, 100).explain(asked)
    alone = [
        CFGNNExplainer(Operations.EDGES, 100).explain(Problem(asked.data, asked.model, (target,)))[0]
        for target in asked.targets
    ]
    assert together == alone


def test_with_features_it_explains_borderline_targets_of_cora() -> None:
    world = Simulation("cora", 0)
    targets = tuple(POPULATIONS["borderline"](world))
    asked = Problem(world.data, world.model, targets)
    found = CFGNNExplainer(Operations.BOTH, 300).explain(asked)
    assert sum(flips(asked, target, one.intervention) for target, one in zip(targets, found, strict=True)) >= 9
