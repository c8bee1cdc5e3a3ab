"""The audit of own-edge reading, accounts of nodes and advice: exact laws, an attack on one edge, a replay, twins."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.method import OWN_EDGES
from privcfs.gate.vault import Vault
from privcfs.public.context import PublicContext
from privcfs_lab.audit import own_trial
from privcfs_lab.audit.accounts import (
    ONE,
    Attack,
    Plan,
    Scene,
    attack,
    conduct_of_accounts,
    hostile_choice,
    hostile_confirmation,
    hostile_scene,
    population,
    release_turn,
    select_turn,
)
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.depth import FULL, Depth
from privcfs_lab.audit.own_edges import (
    HONEST,
    PRICE,
    SHIPPED,
    Place,
    Practice,
    advice_differences,
    alike_at,
    around,
    compare_alike,
    every_graph,
    holds_for_any,
    own_variants,
    small_context,
    worst_of_any,
)
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.simulate import HALF, Simulation
from privcfs_lab.measuring.study import Study
from privcfs_lab.models.modules import untrained

Audited = tuple[Iterator[Place], Practice]
MODULES = (("GraphSAGE", 2), ("GAT", 2), ("GCN", 3))
MODULE_NODES = 12
COALITIONS = (1, 3, 10)
ONCE = Limit.of("1", per_node="1")  # every node may be asked about once, at epsilon 1
COLUMNS = (
    *(Column(name) for name in ("what", "kind", "graphs")),
    Column("pairs of graphs", "d"),
    Column("answers", "d"),
    Column("largest loss", ".4f"),
    Column("accounts", ".4f"),
    Column("limits", ".4f"),
    Column("share of the limits", ".1%"),
    Column("largest measured", ".4f"),
    Column("AUC", ".3f"),
    Column("seen"),
    Column("within"),
)
ABOUT = (
    "Releases that read the target's own edges alone, accounts of nodes, and advice. Real graphs are audited with the "
    "plan that is shipped. On small graphs that plan often leaves a single candidate, whose law depends on nothing, "
    "so that small graphs and twins also have one that imagines a single graph for each sample of own "
    "pairs, and chooses among more. *The same law*: list, price, scores, exact probabilities and counted work of a "
    "release at epsilon 4, compared between graphs that have the same pairs at the target; they must be identical, "
    "not close. *Any two graphs*: the largest exact ratio of probabilities, of at most e^4. *Coalitions*: everything "
    "that people see of their advice, byte for byte, on graphs that agree at all of them. *Attack*: every node is "
    "asked about at epsilon 1 until its account is empty; the attacker knows everything but one edge (a, b). *Loss* "
    "is the exact logarithm of the largest ratio of probabilities of a whole transcript, *largest measured* that of "
    "the transcripts that were really drawn. It must never exceed *accounts*, A(a) + A(b) + W + E as the ledger has "
    "them, nor these the *limits*, 2 L + W + E: L is the limit of a node, W what reads the whole graph, E what is "
    "private for one edge. The hostile edge is searched for among small random graphs and models, and uses up all of "
    "it: the sum cannot be improved. *Replay*: random questions of every kind, with accounts summed again from the "
    "ledger's rows by other code. Every broken twin must be rejected by the check named for it, while the honest part "
    "beside it passes. Row zero is an attacker with public data alone: the free guess is the same on both graphs, "
    "however many ask for it."
)


def page(study: Study, depth: Depth = FULL) -> Page:
    """Row zero, exact comparisons, attacks, replays, twins."""
    rows: list[list[Value]] = [_row_zero()]
    for name, (places, practice) in _places(study, depth).items():
        study.progress(f"the same law: {name}")
        found = compare_alike(places, practice)
        seen = "identical" if not found.different else "another law: " + ", ".join(found.different)
        rows.append(_row("the same law", "check", name, pairs=found.pairs, seen=seen, within=not found.different))
    for name, (places, practice) in _any_two(study, depth).items():
        study.progress(f"any two graphs: {name}")
        number, ratio = worst_of_any(places, practice)
        told = None if ratio is None else log(ratio)
        row = _row("any two graphs", "check", name, pairs=number, loss=told, within=holds_for_any(ratio))
        rows.append(row)
    rows += _coalitions(study, depth)
    rows += _attacks(study, depth)
    rows += _replays(study, depth)
    for twin in own_trial.convictions(study.progress):
        rows.append(_row(twin.twin, "broken twin", twin.checker, seen=twin.seen, within=twin.within))
    return Page("Accounts of nodes and advice", ABOUT, COLUMNS, rows)


def _row(
    what: str,
    kind: str,
    graphs: str,
    *,
    pairs: int | None = None,
    loss: float | None = None,
    found: Attack | None = None,
    seen: str | None = None,
    within: bool,
) -> list[Value]:
    verdict = "yes" if within else "no"
    if found is None:
        limits = None if loss is None else float(PRICE)
        share = None if loss is None else loss / float(PRICE)
        return [what, kind, graphs, pairs, None, loss, None, limits, share, None, None, seen, verdict]
    told: list[Value] = [found.answers, found.loss, float(found.accounts), float(found.limits)]
    share = found.loss / float(found.limits)
    return [what, kind, graphs, pairs, *told, share, found.measured, found.auc, seen, verdict]


def _row_zero() -> list[Value]:
    """The free guesses about both ends, with the edge and without it."""
    scene = hostile_scene()
    guesses = [
        [repr(Vault(scene.graph(has), scene.context, ledger=MemoryLedger()).guess(node)) for node in scene.edge]
        for has in (True, False)
    ]
    same = guesses[0] == guesses[1]
    numbers: list[Value] = [1, 0, 0.0, 0.0, 0.0, None, 0.0, 0.5]
    return ["row zero: public data alone", "row zero", "the hostile edge", *numbers, "the same guess", _yes(same)]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _places(study: Study, depth: Depth) -> dict[str, Audited]:
    """Small graphs exhaustively, real graphs rewired elsewhere, unusual targets, torch modules."""
    groups = 16 if depth is FULL else 4
    found = _small(depth, groups)
    for name in depth.data:
        world = study.simulation(name, 0)
        found[f"{name}, rewired elsewhere"] = _rewired(world, depth), SHIPPED
        for kind in own_variants(_context(world), 0, world.data.pairs, np.random.default_rng(0)):
            if kind != "as it is":
                found[f"{name}, {kind}"] = _unusual(world, kind, depth), SHIPPED
    for kind, layers in MODULES:
        found[f"torch module: {kind}, {layers} layers"] = _module_places(kind, layers, depth), SHIPPED
    return found


def _small(depth: Depth, groups: int) -> dict[str, Audited]:
    """Every graph on five nodes, with the plan that is shipped and with one that chooses among more."""
    name = f"every graph on five nodes, {depth.models} models"
    return {
        name: (every_graph(depth.models, groups), HONEST),
        f"{name}, shipped plan": (every_graph(depth.models, groups), SHIPPED),
    }


@lru_cache(maxsize=4)
def _context(world: Simulation) -> PublicContext:
    """Half of the edges disclosed; one context, so that beliefs are learned once."""
    return world.context(HALF)


def _targets(world: Simulation, number: int) -> list[int]:
    rng = np.random.default_rng([world.seed, 17])
    return sorted(rng.choice(world.data.split.test, number, replace=False).tolist())


def _rewired(world: Simulation, depth: Depth) -> Iterator[Place]:
    context = _context(world)
    for target in _targets(world, depth.places):
        rng = np.random.default_rng([world.seed, target, 3])
        yield around(f"node {target}", context, target, world.data.pairs, depth.alike, rng)


def _unusual(world: Simulation, kind: str, depth: Depth) -> Iterator[Place]:
    context = _context(world)
    for target in _targets(world, max(depth.places // 10, 1)):
        rng = np.random.default_rng([world.seed, target, 4])
        pairs = own_variants(context, target, world.data.pairs, rng)[kind]
        elsewhere = around(f"node {target}", context, target, pairs, depth.alike, rng)
        if len(pairs):
            yield elsewhere
            continue
        others = around("", context, target, world.data.pairs, depth.alike, rng).alike  # none of the target's pairs
        alike = tuple(one[(one != target).all(axis=1)] for one in others)
        yield Place(elsewhere.name, context, target, pairs, alike)


def _module_places(kind: str, layers: int, depth: Depth) -> Iterator[Place]:
    for seed in range(depth.models):
        context = _module_context(kind, layers, seed)
        rng = np.random.default_rng([seed, 5])
        pairs = _random_pairs(MODULE_NODES, rng)
        yield around(f"model {seed}", context, 0, pairs, max(depth.alike // 2, 5), rng)


def _module_context(kind: str, layers: int, seed: int) -> PublicContext:
    return small_context(seed, MODULE_NODES, untrained(kind, layers, features=6, classes=3, seed=seed))


def _random_pairs(nodes: int, rng: np.random.Generator) -> Pairs:
    return as_pairs({pair for pair in combinations(range(nodes), 2) if rng.random() < 0.3})


def _any_two(study: Study, depth: Depth) -> dict[str, Audited]:
    """Graphs that differ at the target: laws depend on nothing else, as the rows before show."""
    found = _small(depth, 16)
    for name in depth.data:
        world = study.simulation(name, 0)
        selves = _selves(_context(world), world.data.pairs, _targets(world, depth.places))
        found[f"{name}, another self of the target"] = selves, SHIPPED
    for kind, layers in MODULES:
        pairs = _random_pairs(MODULE_NODES, np.random.default_rng(5))
        selves = _selves(_module_context(kind, layers, 0), pairs, range(MODULE_NODES))
        found[f"torch module: {kind}, {layers} layers"] = selves, HONEST
    return found


def _selves(context: PublicContext, pairs: Pairs, targets: Sequence[int]) -> Iterator[Place]:
    for target in targets:
        rng = np.random.default_rng([target, 6])
        for kind, graph in own_variants(context, target, pairs, rng).items():
            yield Place(kind, context, target, graph, ())


def _coalitions(study: Study, depth: Depth) -> Iterator[list[Value]]:
    """Advice to coalitions, on small graphs and on real ones."""
    number = 8 if depth is FULL else 3
    for seed in range(depth.models):
        study.progress(f"coalitions on small graphs, model {seed}")
    found = [_small_coalition(seed, number) for seed in range(depth.models)]
    yield _coalition_row("two of eight people", found)
    for name in depth.data:
        world = study.simulation(name, 0)
        context, nodes = _context(world), len(world.data.labels)
        for size in COALITIONS:
            study.progress(f"coalitions of {size}: {name}")
            members = _targets(world, size)
            rng = np.random.default_rng([world.seed, size, 7])
            graphs = [world.data.pairs, *alike_at(world.data.pairs, members, nodes, number, rng)]
            found = [(number, advice_differences(context, members, graphs))]
            yield _coalition_row(f"{name}, {size} of {nodes} people", found)


def _small_coalition(seed: int, number: int) -> tuple[int, list[str]]:
    rng = np.random.default_rng([seed, 8])
    pairs = _random_pairs(8, rng)
    graphs = [pairs, *alike_at(pairs, (0, 3), 8, number, rng)]
    return number, advice_differences(small_context(seed, 8), (0, 3), graphs)


def _coalition_row(graphs: str, found: Sequence[tuple[int, list[str]]]) -> list[Value]:
    different = sorted({name for _, names in found for name in names})
    seen = "the same bytes" if not different else "differ: " + ", ".join(different)
    number = sum(one for one, _ in found)
    return _row("advice to a coalition", "check", graphs, pairs=number, seen=seen, within=not different)


def _attacks(study: Study, depth: Depth) -> Iterator[list[Value]]:
    """The hostile edge under every kind of question, then edges of real graphs."""
    scene, runs = hostile_scene(), 20 if depth is FULL else 3
    everyone = [release_turn(node) for node in range(scene.context.number_of_nodes)]
    choice, nodes = hostile_choice()
    whole = hostile_confirmation(scene, ONE)
    plans: dict[str, tuple[Scene, Plan]] = {
        "hostile edge: releases about everyone": (scene, Plan(everyone, runs=runs)),
        "hostile edge: and whole-graph questions, and a sketch": (
            scene,
            Plan([*everyone, whole], runs=runs, sketch=ONE),
        ),
        "hostile edge: choices between two nodes": (choice, Plan([select_turn(nodes)], runs=runs)),
    }
    for name, (where, plan) in plans.items():
        study.progress(f"attack: {name}")
        found = attack(where, plan)
        yield _row("attack on one edge", "attack", name, pairs=1, found=found, within=found.within)
    for data in depth.data:
        yield from _real_attacks(study, data, depth)


def _real_attacks(study: Study, data: str, depth: Depth) -> Iterator[list[Value]]:
    """Edges whose ends have asked, and one edge after everyone has: only the laws of its ends may differ."""
    world = study.simulation(data, 0)
    context, rng = _context(world), np.random.default_rng([world.seed, 9])
    edges = rng.permutation(world.data.pairs)[: depth.edges].tolist()
    scenes = [Scene(context, world.data.pairs, (one, other), OWN_EDGES) for one, other in edges]
    found = []
    for number, scene in enumerate(scenes, 1):
        study.progress(f"attack: edge {number} of {len(scenes)}, {data}")
        found.append(attack(scene, Plan([release_turn(node) for node in scene.edge], ONCE)))
    worst = max(found, key=lambda one: one.ratio)
    mean, told = float(np.mean([one.loss for one in found])), sum(one.ratio > 1 for one in found)
    seen = f"mean loss {mean:.2f}; {told} of {len(found)} edges change a law"
    name = f"{data}: the worst of {len(found)} edges, both ends asked"
    within = all(one.within for one in found)
    yield _row("attack on one edge", "attack", name, pairs=len(found), found=worst, seen=seen, within=within)
    scene = scenes[found.index(worst)]
    study.progress(f"attack: everyone asks, {data}")
    others = [node for node in range(context.number_of_nodes) if node not in scene.edge][: depth.everyone]
    everyone = attack(scene, Plan([release_turn(node) for node in (*scene.edge, *others)], ONCE))
    alike = everyone.ratio == worst.ratio
    seen = "laws of all others are the same" if alike else "a law changes that is not of an end"
    name = f"{data}: the same edge after {len(others) + 2:,} nodes were asked about"
    yield _row(
        "attack on one edge", "attack", name, pairs=1, found=everyone, seen=seen, within=everyone.within and alike
    )


def _replays(study: Study, depth: Depth) -> Iterator[list[Value]]:
    """Random questions of every kind on each ledger, and the rules of accounts."""
    seeds = 20 if depth is FULL else 2
    with TemporaryDirectory() as folder:
        names = iter(range(10**6))

        def sqlite(limit: Limit) -> Ledger:
            return SqliteLedger(Path(folder) / f"{next(names)}.db", limit)

        ledgers: dict[str, Callable[[Limit], Ledger]] = {"ledger in memory": MemoryLedger, "SQLite": sqlite}
        for name, open_ledger in ledgers.items():
            study.progress(f"replay: {name}")
            broken = sorted({rule for seed in range(seeds) for rule in population(open_ledger, seed)})
            seen = f"{seeds} populations of 60 questions, {len(broken)} rules broken: {'; '.join(broken) or 'none'}"
            yield _row("replay of the ledger's rows", "check", name, seen=seen, within=not broken)
            rules = conduct_of_accounts(open_ledger)
            seen = f"{len(rules)} rules broken: {'; '.join(rules) or 'none'}"
            yield _row("conduct of accounts", "check", name, seen=seen, within=not rules)
    paid = own_trial.advice_paid_alike()
    yield _row("paid advice in the ledger", "check", "another self of the person", seen=_same(paid), within=paid)
    loaded = own_trial.same_under_load(HONEST)
    yield _row("law under load", "check", "other questions before it", seen=_same(loaded), within=loaded)


def _same(holds: bool) -> str:
    return "the same" if holds else "different"
