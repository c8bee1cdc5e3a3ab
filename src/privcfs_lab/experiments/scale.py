"""What one release costs as the number of nodes grows and the degree does not."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.datasets import load
from privcfs_lab.figures.page import Column, Page, Picture, Value
from privcfs_lab.figures.scale import Timed, draw_scale
from privcfs_lab.measuring.measure import nodes_within_two_steps
from privcfs_lab.measuring.study import Study

SIZES = (1_000, 10_000, 100_000, 1_000_000)
REAL = ("cora", "citeseer", "coauthor-cs", "pubmed", "facebook", "coauthor-physics", "arxiv")
DEGREE, FEATURES, WORDS = 8, 1433, 20
TARGETS = 40
COLUMNS = (
    Column("graph"),
    Column("nodes", ",d"),
    Column("edges", ",d"),
    Column("candidates", ",.0f"),
    Column("near", ",.0f"),
    Column("propose and evaluate, ms", ".2f"),
    Column("whole release, ms", ".2f"),
    Column("over the smallest", ".2f"),
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A graph with its public side and targets whose degree is bounded."""

    name: str
    pairs: NDArray[np.int64]
    context: PublicContext
    targets: list[int]


def cost(study: Study) -> Page:
    """Made graphs of one degree and four sizes, then real graphs at targets of few neighbours."""
    makers: list[Callable[[], World]] = [partial(made_graph, nodes) for nodes in SIZES]
    makers += [partial(_real, study, name) for name in REAL if study.has(name)]
    rows: list[list[Value]] = []
    drawn: list[Timed] = []
    for make in makers:
        world = make()
        nodes = world.context.number_of_nodes
        study.progress(f"{world.name}, {nodes:,} nodes")
        candidates, near, local, whole = _timed(world)
        drawn.append(Timed(world.name, nodes, local, whole))
        over = local / drawn[0].local if world.name == "made" else None
        rows.append([world.name, nodes, len(world.pairs), candidates, near, local, whole, over])
    captions = " ".join(f"{name}: {load(name).caption}" for name in REAL if name == "arxiv" and study.has(name))
    about = (
        f"Medians over {TARGETS} targets, paper's support, one process. Made graphs: every node has {DEGREE} "
        f"neighbours (a ring of random order with chords), {WORDS} of {FEATURES} features, half of the edges "
        "disclosed, so that only the number of nodes differs. Real graphs: test nodes with 4 to 8 neighbours; what "
        f"their neighbours have differs, and so does the cost. {captions} Times are of the machine that wrote this "
        "page; ratios travel better. The paper: 2.1 s and 4.1 s a target on an RTX 4090, independent of the number of "
        "nodes if degrees are bounded. The public guess costs one more evaluation, on the snapshot graph."
    )
    words = "Milliseconds of one release against the number of nodes: flat for made graphs of one degree"
    return Page("Cost of a release", about, COLUMNS, rows, (Picture(words, partial(draw_scale, drawn)),))


def made_graph(nodes: int) -> World:
    """A circulant graph under a random numbering: the same neighbourhood everywhere, whatever the size."""
    rng = np.random.default_rng(nodes)
    number = rng.permutation(nodes)
    steps = [(place, (place + step) % nodes) for step in (1, 2, 5, 11) for place in (np.arange(nodes),)]
    pairs = np.sort(np.concatenate([np.column_stack([number[a], number[b]]) for a, b in steps]), axis=1)
    columns = rng.integers(0, FEATURES, (nodes, WORDS))
    starts = np.arange(nodes + 1) * WORDS
    features = sp.csr_array((np.ones(nodes * WORDS, np.float32), columns.ravel(), starts), shape=(nodes, FEATURES))
    features.sum_duplicates()
    features.data[:] = 1
    model = GCN(rng.normal(size=(FEATURES, 32)).astype(np.float32), rng.normal(size=(32, 7)).astype(np.float32))
    shown = pairs[np.sort(rng.permutation(len(pairs))[: len(pairs) // 2])]
    context = PublicContext(features, shown, model, assumptions=SIMULATED)
    return World("made", pairs, context, [int(node) for node in rng.choice(nodes, TARGETS, replace=False)])


def _real(study: Study, name: str) -> World:
    world = study.simulation(name, 0)
    data = world.data
    degrees = np.bincount(data.pairs.ravel(), minlength=len(data.labels))
    few = data.split.test[(degrees[data.split.test] >= 4) & (degrees[data.split.test] <= DEGREE)]
    targets = [int(node) for node in np.random.default_rng(0).permutation(few)[:TARGETS]]
    return World(name, data.pairs, world.context(0.5), targets)


def _timed(world: World) -> tuple[float, float, float, float]:
    """Mean candidates and nodes within two steps; median milliseconds of the two parts."""
    graph = PrivateGraph.from_edges(world.pairs, number_of_nodes=world.context.number_of_nodes)
    rule = Method().candidates
    counts, near, local, whole = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"sqlite:///{Path(folder) / 'scale.db'}"
        vault = Vault(graph, world.context, ledger=ledger, limit="100000", simulation=True, method=Method())
        vault.release(world.targets[0], "1")
        for target in world.targets:
            start = time.perf_counter()
            candidates = rule.propose(world.context, target)
            evaluate(graph, world.context, candidates, UNLIMITED)
            middle = time.perf_counter()
            vault.release(target, "1")
            local.append(middle - start)
            whole.append(time.perf_counter() - middle)
            counts.append(len(candidates))
            near.append(nodes_within_two_steps(graph, target))
    return float(np.mean(counts)), float(np.mean(near)), 1e3 * float(np.median(local)), 1e3 * float(np.median(whole))
