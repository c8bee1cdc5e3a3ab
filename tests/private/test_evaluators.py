from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from privcfs import GCN, PublicContext, TorchModel
from privcfs.embedded import load_dataset
from privcfs.errors import PrivcfsError
from privcfs.gate.questions.confirm import alone
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import EVALUATORS, evaluate, gcn_first_layer, gcn_hidden_rows, gcn_readout
from privcfs.private.evaluators import gcn as fast
from privcfs.public.candidates import RULES
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.models import gcn
from tests.worlds import World, awkward_pairs, everything_near, random_gcn, random_pairs, random_world, slow_logits

FEATURES, HIDDEN, CLASSES = 7, 8, 4


class TwoLayers(torch.nn.Module):
    def __init__(self, first: torch.nn.Module, second: torch.nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(torch.relu(self.first(x, edge_index)), edge_index)
        return out


def module(kind: str, features: int = FEATURES, classes: int = CLASSES) -> TorchModel:
    torch.manual_seed(3)
    if kind == "gin":
        layers = [GINConv(torch.nn.Linear(a, b)) for a, b in ((features, HIDDEN), (HIDDEN, classes))]
    else:
        layer = {"gcn": GCNConv, "sage": SAGEConv, "gat": GATConv}[kind]
        layers = [layer(features, HIDDEN), layer(HIDDEN, classes)]
    return TorchModel(TwoLayers(*layers), hops=2, number_of_features=features, number_of_classes=classes)


def agree(world: World, candidates: Candidates, sample: NDArray[np.int64] | None = None) -> None:
    outcomes = evaluate(world.graph, world.context, candidates, UNLIMITED)
    fast = outcomes.logits.T
    for position in range(len(candidates)) if sample is None else sample:
        slow = slow_logits(world, candidates.target, candidates[int(position)])
        assert np.abs(fast[position] - slow).max() < 1e-5
        best = np.sort(slow)[-2:]
        if best[1] - best[0] > 2e-5:
            assert outcomes.predictions()[position] == slow.argmax()
    original = outcomes.predictions()[0]
    assert (outcomes.flips() == (outcomes.predictions() != original)).all()


def awkward_world(model: GCN | TorchModel) -> World:
    rng = np.random.default_rng(5)
    x = sp.csr_array(rng.random((30, FEATURES)).astype(np.float32) * (rng.random((30, FEATURES)) < 0.7))
    return World(PublicContext(x, random_pairs(rng, 30, 0.2), model), awkward_pairs(rng))


@pytest.mark.parametrize("target", [0, 1, 9, 20, 29], ids=["hub", "triangle", "both", "rest", "isolated"])
@pytest.mark.parametrize("kind", ["fast gcn", "gcn", "sage", "gin", "gat"])
def test_both_evaluators_equal_a_full_forward_pass(kind: str, target: int) -> None:
    model = random_gcn(np.random.default_rng(1), FEATURES, CLASSES) if kind == "fast gcn" else module(kind)
    world = awkward_world(model)
    agree(world, everything_near(target, world.pairs, 30, features=(0, 2, 3)))


@pytest.mark.parametrize("seed", range(12))
def test_the_fast_evaluator_is_exact_on_random_graphs(seed: int) -> None:
    world = random_world(seed, nodes=12)
    rng = np.random.default_rng(seed)
    for target in range(3):
        for candidates in (
            everything_near(target, world.pairs, 12, features=(0, 1, 2, 3)),
            RULES["two-hop"].propose(world.context, target),
        ):
            agree(world, candidates, rng.choice(len(candidates), 100))


@pytest.mark.parametrize("name", ["cora", "citeseer"])
@pytest.mark.parametrize("rule", ["one-hop", "two-hop"])
def test_the_fast_evaluator_is_exact_on_real_graphs(name: str, rule: str) -> None:
    data = load_dataset(name)
    context = data.paper_context()
    world = World(context, data.edges())
    rng = np.random.default_rng(0)
    degrees = [len(context.snapshot.neighbours(int(node))) for node in data.test]
    for target in (int(data.test[np.argmax(degrees)]), *rng.choice(data.test, 3)):
        candidates = RULES[rule].propose(context, int(target))
        agree(world, candidates, rng.choice(len(candidates), 40))


def test_units_that_are_dead_under_every_mask_add_exactly_nothing() -> None:
    world = random_world(2, nodes=12)
    rng = np.random.default_rng(0)
    dead = GCN(-rng.random((6, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    context = PublicContext(world.context.features, world.context.snapshot.pairs, dead)
    outcomes = evaluate(world.graph, context, RULES["two-hop"].propose(context, 0), UNLIMITED)
    assert not outcomes.logits.any()
    assert not outcomes.flips().any()


@pytest.mark.parametrize("name", ["cora", "citeseer"])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat"])
def test_the_generic_evaluator_is_exact_on_real_graphs(name: str, kind: str) -> None:
    data = load_dataset(name)
    model = module(kind, data.features.shape[1], len(data.classes))
    world = World(PublicContext(data.features, data.snapshot, model), data.edges())
    rng = np.random.default_rng(1)
    candidates = RULES["edges-only"].propose(world.context, int(rng.choice(data.test)))
    agree(world, candidates, rng.choice(len(candidates), min(4, len(candidates))))


def test_both_evaluators_agree_on_one_gcn() -> None:
    world = awkward_world(module("gcn"))
    weights = world.context.model
    assert isinstance(weights, TorchModel)
    state = {name: tensor.numpy() for name, tensor in weights.module.state_dict().items()}
    arrays = (state["first.lin.weight"].T, state["second.lin.weight"].T, state["first.bias"], state["second.bias"])
    fast = World(PublicContext(world.context.features, world.context.snapshot.pairs, GCN(*arrays)), world.pairs)
    candidates = everything_near(0, world.pairs, 30, features=(0, 1, 4))
    slow_outcomes = evaluate(world.graph, world.context, candidates, UNLIMITED)
    fast_outcomes = evaluate(fast.graph, fast.context, candidates, UNLIMITED)
    assert np.abs(slow_outcomes.logits - fast_outcomes.logits).max() < 1e-5
    assert (slow_outcomes.effective == fast_outcomes.effective).all()


def test_deleting_an_absent_edge_and_adding_a_present_one_change_nothing() -> None:
    world = random_world(3, nodes=10)
    candidates = everything_near(0, world.pairs, 10, features=())
    outcomes = evaluate(world.graph, world.context, candidates, UNLIMITED)
    idle = [row for row, count in enumerate(outcomes.effective) if count == 0]
    assert len(idle) > 1
    assert (outcomes.logits[:, candidates.starts[idle]] == outcomes.logits[:, :1]).all()


def test_every_shipped_model_has_an_evaluator() -> None:
    assert set(EVALUATORS) == {GCN, TorchModel}


def test_values_that_are_not_finite_end_the_evaluation() -> None:
    world = random_world(0)
    broken = GCN(np.full((6, 4), 3e38, np.float32), np.full((4, 3), 3e38, np.float32))
    context = PublicContext(world.context.features, world.context.snapshot.pairs, broken)
    candidates = RULES["one-hop"].propose(context, 0)
    with np.errstate(all="ignore"), pytest.raises(ArithmeticError, match="not finite"):
        evaluate(world.graph, context, candidates, UNLIMITED)


def test_a_model_needs_at_least_one_hop() -> None:
    with pytest.raises(PrivcfsError, match="hops is 0"):
        TorchModel(torch.nn.Linear(1, 1), hops=0, number_of_features=1, number_of_classes=1)


@pytest.mark.parametrize("rule", ["small-sets", "ladders"])
@pytest.mark.parametrize("seed", range(3))
def test_lists_with_additions_and_a_cap_on_all_elements_are_exact(rule: str, seed: int) -> None:
    world = random_world(seed, nodes=14)
    for target in (0, 3):
        candidates = RULES[rule].propose(world.context, target)
        assert candidates.additions
        assert len(set(candidates.feature_set_counts.tolist())) > 1
        agree(world, candidates)


def test_additions_between_neighbours_and_at_a_distance_are_exact() -> None:
    """Triangles, two-hop pairs, and pairs that touch no neighbour, with masks, under a cap."""
    world = awkward_world(random_gcn(np.random.default_rng(1), FEATURES))
    near = everything_near(0, world.pairs, 30, features=(0, 1, 4))
    capped = replace(near, caps=Caps(3, 2, 3), pair_sets=(*subsets(14, 2), (0, 4, 13)))
    assert len(capped) < len(near)
    agree(world, capped)


def test_a_long_list_is_evaluated_in_parts_as_a_short_one_is() -> None:
    data = load_dataset("cora")
    context, graph = data.context(), data.private_graph()
    degrees = np.bincount(data.snapshot.ravel(), minlength=len(data.labels))
    target = int(data.test[np.argsort(degrees[data.test])[-10]])
    candidates = SmallSets(4).propose(context, target)
    assert len(candidates.pair_sets) > 4096
    outcomes = evaluate(graph, context, candidates, UNLIMITED)
    rng = np.random.default_rng(0)
    for position in rng.choice(len(candidates), 12):
        one = alone(candidates[int(position)], target, context)
        assert (
            np.abs(evaluate(graph, context, one, UNLIMITED).logits[:, -1] - outcomes.logits[:, position]).max() < 1e-4
        )


TIGHT = {
    "BITS": (gcn_hidden_rows, 3),
    "CHUNK": (gcn_readout, 2),
    "LOOK": (gcn_readout, 0),
    "MOST_CELLS": (gcn_first_layer, 8),
    "MOST_STATES": (fast, 5),
    "MOST_WEIGHTS": (gcn_readout, 1),
}


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("kept", [True, False], ids=["kept inputs", "inputs from rows"])
def test_every_way_through_the_fast_evaluator_gives_the_same_scores(
    name: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that never fit, and a first layer that is never kept: what large graphs and long lists need."""
    module, value = TIGHT[name]
    monkeypatch.setattr(module, name, value)
    if not kept:
        monkeypatch.setattr(gcn, "MOST_KEPT", 0)
    world = awkward_world(random_gcn(np.random.default_rng(1), FEATURES, CLASSES))
    assert (world.context.inputs is not None) == kept
    for target in (0, 1, 29):
        agree(world, everything_near(target, world.pairs, 30, features=(0, 2, 3)))


def test_scores_do_not_depend_on_the_number_of_threads() -> None:
    data = load_dataset("cora")
    context, graph = data.paper_context(), data.private_graph()
    degrees = [len(context.snapshot.neighbours(int(node))) for node in data.test]
    for target in (int(data.test[np.argmax(degrees)]), *data.test[:10].tolist()):
        candidates = RULES["two-hop"].propose(context, target)
        found = []
        for threads in (1, 2, 4):
            with threadpool_limits(threads):
                found.append(evaluate(graph, context, candidates, UNLIMITED).logits)
        assert (found[0] == found[1]).all()
        assert (found[0] == found[2]).all()
