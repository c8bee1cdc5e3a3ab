from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch_geometric.nn import ChebConv, GATConv, GCNConv, GINConv, SAGEConv

from privcfs import GCN, PublicContext, TorchModel
from privcfs.embedded import load_dataset
from privcfs.errors import PrivcfsError
from privcfs.gate.questions.confirm import list_of_one
from privcfs.private.allowance import UNLIMITED, Allowance, Overrun
from privcfs.private.evaluators import (
    EVALUATORS,
    evaluate,
    gcn_first_layer,
    gcn_hidden_rows,
    gcn_readout,
    generic,
    generic_forward,
)
from privcfs.private.evaluators import gcn as fast
from privcfs.private.evaluators.generic import evaluate_module, evaluate_module_on_all
from privcfs.private.evaluators.generic_forward import class_scores, takes_matrix
from privcfs.private.evaluators.generic_rows import WORD, Sharing
from privcfs.private.evaluators.generic_sharing import sharing_of
from privcfs.public.candidates import RULES
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.models import gcn
from tests.worlds import (
    World,
    awkward_pairs,
    everything_near,
    private,
    random_gcn,
    random_pairs,
    random_world,
    slow_logits,
)

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
        one = list_of_one(candidates[int(position)], target, context)
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


class Layers(torch.nn.Module):
    """Layers with a relu between them; counts its forward passes."""

    def __init__(self, *layers: torch.nn.Module) -> None:
        super().__init__()
        self.layers, self.passes = torch.nn.ModuleList(layers), 0

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        for number, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if number else x, edge_index)
        return x


class Backwards(torch.nn.Module):
    """Multiplies with the adjacency matrix, so that messages run from edge_index[1] to edge_index[0]."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(before, after)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        adjacency = torch.sparse_coo_tensor(edge_index, torch.ones(edge_index.shape[1]), (len(x), len(x)))
        out: torch.Tensor = self.linear(x + torch.sparse.mm(adjacency, x))
        return out


class Undirected(Backwards):
    """Refuses a graph whose edges do not run in both directions."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        forth, back = ({tuple(pair) for pair in both.T.tolist()} for both in (edge_index, edge_index.flip(0)))
        if forth != back:
            raise ValueError("directed")
        return super().forward(x, edge_index)


class MatricesTwice(torch.nn.Module):
    """Adds up what neighbours send, and doubles the sum where they come as a matrix."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.linear = GINConv(torch.nn.Linear(before, after))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.linear(x, edge_index) * (2 if edge_index.layout is torch.sparse_csr else 1)
        return out


class Deaf(torch.nn.Module):
    """The same logits whatever it is given."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        return torch.ones(len(x), CLASSES)


def deep(kind: str, hops: int, features: int = FEATURES, classes: int = CLASSES) -> TorchModel:
    """A stack of `hops` layers of one kind."""
    torch.manual_seed(5)
    make = {
        "gcn": GCNConv,
        "sage": SAGEConv,
        "gat": GATConv,
        "gin": lambda before, after: GINConv(torch.nn.Linear(before, after)),
        "outgoing degrees": lambda before, after: ChebConv(before, after, K=2),
        "backwards": Backwards,
        "undirected": Undirected,
        "matrices twice": MatricesTwice,
        "deaf": lambda _before, _after: Deaf(),
    }[kind]
    widths = [features, *[HIDDEN] * (hops - 1), classes]
    layers = Layers(*(make(before, after) for before, after in pairwise(widths)))
    return TorchModel(layers, hops=hops, number_of_features=features, number_of_classes=classes)


def passes(model: TorchModel) -> int:
    """The number of forward passes so far."""
    assert isinstance(model.module, Layers)
    return model.module.passes


def long_world(model: TorchModel, nodes: int = 60) -> World:
    """A ring with shortcuts, so that most nodes are many steps apart; the snapshot has four fifths of its pairs."""
    rng = np.random.default_rng(8)
    around = [(node, (node + 1) % nodes) for node in range(nodes)]
    shortcuts = [(node, (node + 3) % nodes) for node in range(0, nodes, 4)]
    pairs = np.unique(np.sort(np.array(around + shortcuts), axis=1), axis=0)
    x = sp.csr_array((rng.random((nodes, FEATURES)) < 0.6).astype(np.float32))
    return World(PublicContext(x, pairs[rng.random(len(pairs)) < 0.8], model), pairs)


SECOND_HOP = SmallSets(deletions=TwoHop(), partners=Partners(beyond=12))
PERMITTED = {
    "gcn": Sharing.SAME_DEGREES,
    "sage": Sharing.SAME_EDGES,
    "gat": Sharing.SAME_EDGES,
    "gin": Sharing.SAME_EDGES,
    "outgoing degrees": Sharing.NEVER,
    "backwards": Sharing.NEVER,
    "undirected": Sharing.NEVER,
    "deaf": Sharing.NEVER,
}


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", PERMITTED)
def test_rows_are_shared_as_far_as_the_module_permits(kind: str, hops: int) -> None:
    model = deep(kind, hops)
    permitted = PERMITTED[kind]
    assert sharing_of(model, generic._logits) is permitted
    assert passes(model) > 0


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("kind", [*PERMITTED, "matrices twice"])
def test_a_module_gets_a_matrix_only_if_its_scores_stay_the_same(
    kind: str, hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rng = deep(kind, hops), np.random.default_rng(3)
    if kind != "gin":  # whose sums may be rounded otherwise
        assert takes_matrix(model) is (kind == "sage")
    x = rng.normal(size=(300, FEATURES)).astype(np.float32)
    edges = np.argwhere(np.triu(rng.random((300, 300)) < 0.05, 1)).T
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    found = class_scores(model, x, edges)
    monkeypatch.setattr(generic_forward, "takes_matrix", lambda _: False)
    assert (found == class_scores(model, x, edges)).all()


def test_a_matrix_for_a_module_that_reads_it_otherwise_changes_its_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    world = long_world(deep("matrices twice", 2))
    agree(world, SmallSets().propose(world.context, 0))
    monkeypatch.setattr(generic_forward, "takes_matrix", lambda _: True)
    with pytest.raises(AssertionError):
        agree(world, SmallSets().propose(world.context, 0))


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("kind", [kind for kind in PERMITTED if kind != "deaf"])
def test_deep_modules_are_exact_where_additions_join_far_regions(kind: str, hops: int) -> None:
    world = long_world(deep(kind, hops))
    for target in (0, 17):
        candidates = SECOND_HOP.propose(world.context, target)
        distant = [pair for pair in candidates.additions if 10 < abs(pair[0] - pair[1]) < 50]
        assert len(distant) > 4
        assert any(target not in pair for pair in candidates.additions)
        assert any(target not in pair for pair in candidates.deletions)
        agree(world, candidates, np.arange(target % 4, len(candidates), 4))


@pytest.mark.parametrize("kind", ["gat", "sage"])
def test_three_layers_are_exact_on_a_real_graph(kind: str) -> None:
    data = load_dataset("cora")
    model = deep(kind, 3, data.features.shape[1], len(data.classes))
    world = World(PublicContext(data.features, data.snapshot, model), data.edges())
    rng = np.random.default_rng(2)
    for target in rng.choice(data.test, 2):
        candidates = SECOND_HOP.propose(world.context, int(target))
        agree(world, candidates, rng.choice(len(candidates), 6))


@pytest.mark.parametrize("target", [0, 9, 29], ids=["hub", "both", "isolated"])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gat", "gin"])
def test_every_way_to_share_rows_gives_the_same_scores(kind: str, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = awkward_world(deep(kind, 3))
    lists = (
        everything_near(target, world.pairs, 30, features=(0, 2, 3)),
        SmallSets(deletions=TwoHop(most=40), partners=Partners(beyond=12)).propose(world.context, target),
    )
    ways = [Sharing.NEVER, Sharing.SAME_DEGREES] + [Sharing.SAME_EDGES] * (kind != "gcn")
    for candidates in lists:
        found = []
        for sharing in ways:
            monkeypatch.setattr(generic, "sharing_of", lambda *_, sharing=sharing: sharing)
            found.append(evaluate(world.graph, world.context, candidates, UNLIMITED).logits)
        agree(world, candidates, np.arange(0, len(candidates), 29))
        assert max(np.abs(found[0] - other).max() for other in found[1:]) < 1e-5
    assert len(lists[1].deletions + lists[1].additions) > WORD or target == 29


@pytest.mark.parametrize(
    ("kind", "too_far"),
    [
        ("gcn", Sharing.SAME_EDGES),
        ("outgoing degrees", Sharing.SAME_DEGREES),
        ("backwards", Sharing.SAME_DEGREES),
    ],
)
def test_rows_that_are_shared_further_than_the_module_permits_give_other_scores(
    kind: str, too_far: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = long_world(deep(kind, 2))
    monkeypatch.setattr(generic, "sharing_of", lambda *_: too_far)
    with pytest.raises(AssertionError):
        agree(world, SmallSets().propose(world.context, 0))


@pytest.mark.parametrize("kind", ["gat", "gcn", "backwards"])
def test_candidates_of_different_subgraphs_share_a_forward_pass(kind: str) -> None:
    world = long_world(deep(kind, 2))
    model = world.context.model
    assert isinstance(model, TorchModel)
    candidates = SmallSets().propose(world.context, 0)
    evaluate(world.graph, world.context, candidates, UNLIMITED)
    before = passes(model)
    evaluate(world.graph, world.context, candidates, UNLIMITED)
    assert len(candidates.pair_sets) > 50
    assert passes(model) == before + 1


@pytest.mark.parametrize("sharing", Sharing)
def test_many_small_forward_passes_give_the_same_scores_as_one(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = long_world(deep("sage", 3))
    model = world.context.model
    assert isinstance(model, TorchModel)
    candidates = SECOND_HOP.propose(world.context, 17)
    monkeypatch.setattr(generic, "sharing_of", lambda *_: sharing)
    takes_matrix(model)  # which runs the module, once
    found, counts = [], []
    for most_bytes, together in ((2**26, 2**20), (2**14, 1024), (2**14, 7), (1, 1024)):
        monkeypatch.setattr(generic, "BATCH_BYTES", most_bytes)
        monkeypatch.setattr(generic, "MOST_CANDIDATES", together)
        before = passes(model)
        found.append(evaluate(world.graph, world.context, candidates, UNLIMITED).logits)
        counts.append(passes(model) - before)
    assert counts[0] == 1
    assert min(counts[1:]) > 5
    assert max(np.abs(found[0] - other).max() for other in found[1:]) < 1e-5


@pytest.mark.parametrize("kind", ["sage", "gcn", "backwards"])
def test_several_graphs_are_evaluated_as_each_is_alone_in_fewer_passes(kind: str) -> None:
    world = long_world(deep(kind, 2))
    model = world.context.model
    assert isinstance(model, TorchModel)
    rng = np.random.default_rng(4)
    graphs = [private(world.pairs[rng.random(len(world.pairs)) < share], 60) for share in (1, 0.9, 0.5, 0)]
    candidates = SmallSets().propose(world.context, 3)
    alone = [evaluate_module(graph, world.context, candidates, UNLIMITED) for graph in graphs]
    before = passes(model)
    together = evaluate_module_on_all(graphs, world.context, candidates, UNLIMITED)
    assert passes(model) == before + 1
    for one, other in zip(alone, together, strict=True):
        assert np.abs(one.logits - other.logits).max() < 1e-5
        assert (one.effective == other.effective).all()
    assert evaluate_module_on_all([], world.context, candidates, UNLIMITED) == []


def test_an_overrunning_module_is_stopped_before_its_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = long_world(deep("sage", 2))
    model = world.context.model
    assert isinstance(model, TorchModel)
    candidates = SmallSets().propose(world.context, 3)
    evaluate(world.graph, world.context, candidates, UNLIMITED)
    before = passes(model)
    monkeypatch.setattr(generic, "BATCH_BYTES", 1)
    with pytest.raises(Overrun):
        evaluate(world.graph, world.context, candidates, Allowance(0))
    assert passes(model) == before
