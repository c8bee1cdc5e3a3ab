"""Other models and another task: GraphSAGE, GIN, GAT, a three-layer GCN, and the classification of whole graphs."""

from time import perf_counter

import numpy as np

from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import Method
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.pairs import OneHop, TwoHop
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.models.model import Model
from privcfs.public.models.training import Labelled
from privcfs_lab.datasets import two_motifs
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Scene, public_guesses
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.study import Study
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.models.modules import fitted

PRICES = ("1", "4", "8")
TARGETS, GRAPHS, TRAINED = 24, 40, 200
KINDS = {"GCN": 2, "three-layer GCN": 3, "GraphSAGE": 2, "GIN": 2, "GAT": 2}
NODE_RULE = SmallSets(deletions=OneHop(4), partners=Partners(3, 1), features=TopInfluence(4))
MEMBERS = Actionability(immutable_nodes=frozenset({two_motifs.READOUT}))
GRAPH_RULE = SmallSets(deletions=TwoHop(60), partners=Partners(0, 0), features=TopInfluence(0), allowed=MEMBERS)
FEW = Rehearsal(Worlds(number=8))
COLUMNS = (
    *(Column(name) for name in ("task", "model")),
    Column("accuracy"),
    Column("targets", "d"),
    Column("list", ",.0f"),
    *(Column(name) for name in ("row zero", "ceiling", *(f"@{price}" for price in PRICES))),
    Column("names the motif @8"),
    Column("names it by chance"),
    Column("seconds a target", ".2f"),
)


def page(study: Study) -> Page:
    """Guided releases through the generic evaluator."""
    rows = [_node_row(kind, depth, study.most or TARGETS) for kind, depth in KINDS.items()]
    rows.append(_graph_row(study.most or GRAPHS))
    about = (
        "The generic evaluator runs any torch module on each candidate, so lists are short here (4 deletions, 4 "
        "additions, 4 masks, at most two of them) and 8 graphs are imagined. Node classification: Cora, half of the "
        f"edges disclosed, {TARGETS} test nodes by a public draw, a model of each kind trained on all edges. Graph "
        "classification: trees of 20 nodes with a house or a cycle of five (lab/two_motifs.py), classified by a "
        "three-layer GraphSAGE at a public readout node; half of each graph's pairs are public, pairs may be deleted, "
        "at most two. `names the motif` is the share of releases at epsilon 8 that delete a pair of the motif, beside "
        "what a draw by chance from the list does. Row zero is the best deletion on the snapshot graph. ± standard "
        "error over targets; seed 0."
    )
    return Page("Other models, whole graphs", about, COLUMNS, rows)


def _node_row(kind: str, depth: int, targets: int) -> list[Value]:
    world = Simulation("cora", 0)
    data = Labelled(world.data.features, world.data.pairs, world.data.labels, world.data.split.train)
    model = fitted(kind.split()[-1], depth, data)
    test = world.data.split.test
    right = model.logits(data.features, data.pairs).argmax(axis=1)[test] == data.labels[test]
    context = PublicContext(data.features, world.snapshot(0.5), model, assumptions=SIMULATED)
    scene = Scene.of(world.graph, context)
    chosen = np.random.default_rng(24).choice(test, targets, replace=False)
    method = Method(NODE_RULE, guide=FEW)
    started = perf_counter()
    found = np.array([_asked(scene, int(target), method) for target in chosen])
    seconds = (perf_counter() - started) / len(found)
    rates = [estimate(found[:, column]) for column in range(1, 3 + len(PRICES))]
    return [
        "nodes, Cora",
        kind,
        float(right.mean()),
        len(found),
        float(found[:, 0].mean()),
        *rates,
        None,
        None,
        seconds,
    ]


def _asked(scene: Scene, target: int, method: Method) -> list[float]:
    """List length, row zero, ceiling, and the valid rate at each price."""
    found = inspect(scene.graph, scene.context, target, method)
    guess = public_guesses(evaluate(scene.snapshot, scene.context, found.candidates, UNLIMITED))[1]
    valid = [float(found.probabilities(price) @ found.flips) for price in PRICES]
    return [len(found.candidates), float(found.flips[guess]), float(found.flips.any()), *valid]


def graph_model(graphs: list[two_motifs.MotifGraph]) -> Model:
    """A three-layer GraphSAGE that reads each graph out at its last node."""
    size = two_motifs.NODES
    pairs = np.concatenate([graph.pairs + size * number for number, graph in enumerate(graphs)])
    features = np.tile(two_motifs.features().toarray(), (len(graphs), 1))
    labels = np.repeat([graph.label for graph in graphs], size)
    readouts = np.arange(len(graphs)) * size + two_motifs.READOUT
    from scipy.sparse import csr_array

    return fitted("GraphSAGE", 3, Labelled(csr_array(features), pairs, labels, readouts), steps=400)


def _graph_row(count: int) -> list[Value]:
    graphs = two_motifs.motif_graphs(TRAINED + 4 * count)
    model, table = graph_model(graphs[:TRAINED]), two_motifs.features()
    tested = graphs[TRAINED:]
    said = [int(model.logits(table, graph.pairs)[two_motifs.READOUT].argmax()) for graph in tested]
    right = [graph.label == one for graph, one in zip(tested, said, strict=True)]
    houses = [graph for graph, good in zip(tested, right, strict=True) if good and graph.label][:count]
    started = perf_counter()
    found = np.array([_whole(graph, model, number) for number, graph in enumerate(houses)])
    seconds = (perf_counter() - started) / len(found)
    rates = [estimate(found[:, column]) for column in range(1, 3 + len(PRICES))]
    named, chance = (estimate(found[:, 3 + len(PRICES) + column]) for column in range(2))
    row: list[Value] = [
        "graphs with a house",
        "three-layer GraphSAGE",
        float(np.mean(right)),
        len(found),
        float(found[:, 0].mean()),
    ]
    return [*row, *rates, named, chance, seconds]


def _whole(graph: two_motifs.MotifGraph, model: Model, number: int) -> list[float]:
    rng = np.random.default_rng(number)
    shown = graph.members[np.sort(rng.permutation(len(graph.members))[: len(graph.members) // 2])]
    readout = graph.pairs[len(graph.members) :]
    context = PublicContext(two_motifs.features(), np.concatenate([shown, readout]), model, assumptions=SIMULATED)
    private = PrivateGraph.from_edges(graph.pairs, number_of_nodes=two_motifs.NODES)
    scene, method = Scene.of(private, context), Method(GRAPH_RULE, guide=FEW)
    found = inspect(private, context, two_motifs.READOUT, method)
    motif = np.array([any(min(pair) >= two_motifs.TREE for pair in one.delete) for one in found.candidates])
    named = float(found.probabilities("8") @ motif)
    return [*_asked(scene, two_motifs.READOUT, method), named, float(motif[1:].mean())]
