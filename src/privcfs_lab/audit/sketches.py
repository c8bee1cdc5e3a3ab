"""An attack on one edge from a sketch, alone and together with paid answers; and broken twins of sketches.

The attacker knows the whole graph but one edge. What a sketch tells her about it are the answers for this pair and, of
the counts, those that the edge changes; everything else has the same law with the edge and without it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import combinations, islice
from math import log, prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import BudgetExhausted
from privcfs.gate.accounting import Limit
from privcfs.gate.coins import Coins
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.randomness import Randomness
from privcfs.gate.sketching import Parts, draw_sketch, falling, laplace, publish_sketch, turning
from privcfs.gate.snapshots import WORD
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.sketching import class_counts
from privcfs.public.beliefs.learning import assumed_beliefs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.knowing import with_sketch
from privcfs.public.sketches.likeliest import Likeliest
from privcfs.public.sketches.sketch import Sketch, SketchPlan
from privcfs.public.sketches.triangle import place_of
from privcfs_lab.audit.accounts import (
    Attack,
    Ratios,
    Scene,
    Turn,
    auc_of,
    hostile_confirmation,
    largest,
    lonely_scenes,
    release_turn,
    select_turn,
)
from privcfs_lab.audit.blackbox import Bound, lower_bound
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.own_edges import Pair, small_context
from privcfs_lab.audit.trial import Conviction

Numbers = NDArray[np.int64]
NODES, HALF = 6, Fraction(1, 2)
ONE = Fraction(1)
LIMIT = Limit.of("4", per_node="1")
Uses = Callable[[str], Randomness]
Draw = Callable[[PrivateGraph, PublicContext, SketchPlan, Uses], Sequence[Parts]]
Count = Callable[[PrivateGraph, PublicContext], Numbers]
ALONE = "attack on one edge from sketches that were drawn"


def shipped(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """What ships: everything once."""
    covers = plan.is_listed and plan.responses
    universe = Likeliest.of(context, assumed_beliefs(context, Worlds()), plan.partners) if covers else None
    return [draw_sketch(graph, context, plan, uses, universe)]


def counts_of(graph: PrivateGraph, context: PublicContext) -> Numbers:
    """Counts before noise."""
    return _counted(graph, context, snapshot_logits(context, np.arange(context.number_of_nodes)).argmax(axis=1))


def _counted(graph: PrivateGraph, context: PublicContext, classes: Numbers) -> Numbers:
    nodes = np.arange(context.number_of_nodes)
    return class_counts(graph, context.disclosed, nodes, classes, context.number_of_classes)


@final
@dataclass(frozen=True, eq=False)
class Maker:
    """How sketches are made: what ships, or a twin. An attacker knows it.

    Attributes:
        draw: Everything that is published.
        counts: What counts are before noise.
    """

    draw: Draw = shipped
    counts: Count = counts_of


@final
@dataclass(frozen=True, eq=False)
class Case:
    """A private graph over a public context, and the edge that is attacked: it is there, or it is not."""

    context: PublicContext
    pairs: Pairs
    edge: Pair

    def graph(self, has_edge: bool) -> PrivateGraph:
        """The graph with the edge, or without it."""
        rest = {(int(u), int(w)) for u, w in self.pairs} - {self.edge}
        pairs = as_pairs(rest | {self.edge} if has_edge else rest)
        return PrivateGraph.from_pairs(pairs, self.context.number_of_nodes)

    @cached_property
    def graphs(self) -> tuple[PrivateGraph, PrivateGraph]:
        """The graph with the edge and the one without it, for draws that charge nothing."""
        return self.graph(True), self.graph(False)


def small_case(seed: int = 0, *, public: bool = False) -> Case:
    """An edge of a small random graph, which the snapshot does not show, or does."""
    context, rng = small_context(seed, NODES), np.random.default_rng([seed, 2])
    pairs = {pair for pair in combinations(range(NODES), 2) if rng.random() < 0.4}
    shown = {(int(u), int(w)) for u, w in context.snapshot.pairs}
    edge = next(pair for pair in combinations(range(NODES), 2) if (pair in shown) == public)
    return Case(context, as_pairs(pairs), edge)


class Told(NamedTuple):
    """What one sketch tells about the edge.

    Attributes:
        shown: In how many answers for the pair it stands as an edge.
        nearer: By how much counts are nearer to those with the edge than to those without it, over all cells.
    """

    shown: int
    nearer: int


def told(case: Case, maker: Maker, plan: SketchPlan, has_edge: bool, key: bytes) -> Told:
    """Draws once."""
    graph = case.graphs[not has_edge]
    published = maker.draw(graph, case.context, plan, lambda use: Coins(key, use))
    return Told(
        sum(_shows(parts, case) for parts in published), sum(_nearer(parts, case, maker) for parts in published)
    )


def _shows(parts: Parts, case: Case) -> bool:
    if parts.listed is not None:
        one, other = case.edge
        return other in parts.listed.shown.neighbours(one)
    place = place_of(np.array([case.edge]), case.context.number_of_nodes)[0]
    return parts.shown is not None and bool((parts.shown == place).any())


def _nearer(parts: Parts, case: Case, maker: Maker) -> int:
    if parts.counts is None:
        return 0
    there, absent = _expected(case, maker)
    return int((np.abs(parts.counts - absent) - np.abs(parts.counts - there)).sum())


@lru_cache(maxsize=64)
def _expected(case: Case, maker: Maker) -> tuple[Numbers, Numbers]:
    """Counts before noise, with the edge and without it."""
    return maker.counts(case.graph(True), case.context), maker.counts(case.graph(False), case.context)


def drawn(case: Case, maker: Maker, plan: SketchPlan, draws: int) -> tuple[list[Told], list[Told]]:
    """What so many sketches tell, with the edge and without it."""
    there, absent = (
        [told(case, maker, plan, has, f"{has} {number}".encode()) for number in range(draws)] for has in (True, False)
    )
    return there, absent


def measured(case: Case, maker: Maker, plan: SketchPlan, draws: int) -> Bound:
    """What so many sketches of each graph prove that the edge loses, at least."""
    return lower_bound(*drawn(case, maker, plan, draws))


def laws(plan: SketchPlan, hidden: bool = True) -> list[Ratios]:
    """The exact law of each part that the edge changes; nothing where the snapshot shows the pair."""
    if not hidden:
        return []
    rates = [Fraction(turning(plan.responses), WORD)] if plan.responses else []
    if plan.counts:  # a count that the edge raises by one is at least that, or at most the former
        ratio = Fraction(falling(plan.counts / 2), WORD)
        rates += [ratio / (1 + ratio)] * 2
    return [((1 - rate, rate), (rate, 1 - rate)) for rate in rates]


def alone(case: Case, plan: SketchPlan, draws: int) -> tuple[Attack, Bound]:
    """One edge and one sketch: the exact loss, that of the sketches that were drawn, and what they prove."""
    hidden = not case.context.snapshot.has_pairs(np.array([case.edge]))[0]
    found = laws(plan, hidden)
    price = plan.epsilon if hidden else Fraction(0)
    sides = drawn(case, Maker(), plan, draws)
    ratio = prod((largest(law) for law in found), start=Fraction(1))
    seen = max(abs(_log_ratio(one, plan)) for side in sides for one in side) if hidden else 0.0
    return Attack(1, ratio, price, price, seen, auc_of(found), True), lower_bound(*sides)


def _log_ratio(one: Told, plan: SketchPlan) -> float:
    """The log-ratio of what one sketch that ships tells."""
    said = 0.0
    if plan.responses:
        rate = turning(plan.responses) / WORD
        said += (1 if one.shown else -1) * log((1 - rate) / rate)
    return said + (one.nearer * -log(falling(plan.counts / 2) / WORD) if plan.counts else 0.0)


def one_person(plan: SketchPlan, edges: int) -> Fraction:
    """The largest ratio for a person with so many hidden edges, all of which are there, or none.

    Each edge is a pair. Her own counts move by as much as she has edges, and one count of each other end moves by one.
    """
    answer = largest(laws(SketchPlan(plan.responses))[0]) if plan.responses else Fraction(1)
    cell = largest(laws(SketchPlan(Fraction(0), plan.counts))[0]) if plan.counts else Fraction(1)
    return (answer * cell**2) ** edges


def together(plan: SketchPlan, run: int) -> Attack:
    """A sketch is paid and drawn, and then everyone asks until accounts are empty, with the edge and without it.

    A transcript is the sketch and all answers; the laws of these follow from the sketch. Every run attacks another
    edge, because one about which answers tell much without a sketch may be one about which they tell nothing with it.
    """
    scene, worst = next(islice(lonely_scenes(), run, None)), Fraction(1)
    asked: list[Ratios] = []
    largest_drawn, balances, ledger, answers = 0.0, [], MemoryLedger(LIMIT), 0
    for has_edge in (True, False):
        ledger = MemoryLedger(LIMIT)
        graph = scene.graph(has_edge)
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{run}.bin"
            sketch = publish_sketch(graph, scene.context, ledger, plan, Worlds(), path)
            context = with_sketch(scene.context, path)
        said = _of_the_sketch(sketch, scene)
        found = Scene(context, scene.pairs, scene.edge, scene.method)
        vault = Vault(graph, context, ledger=ledger, method=scene.method, simulation=True)
        answers, loss, asked = _everyone_asks(found, vault)
        largest_drawn = max(largest_drawn, abs(log(said) + loss))
        worst = max(worst, max(said, 1 / said) * prod((largest(law) for law in asked), start=Fraction(1)))
        balances.append((ledger.balance(), ledger.losses(), ledger.spent_at(range(context.number_of_nodes))))
    losses = ledger.losses()
    full = losses.whole + losses.edge_level
    paid = sum(ledger.spent_at(scene.edge).values(), full)
    limits = 2 * (LIMIT.per_node or Fraction(0)) + full
    return Attack(
        answers, worst, paid, limits, largest_drawn, auc_of([*laws(plan), *asked]), balances[0] == balances[1]
    )


def _of_the_sketch(sketch: Sketch, scene: Scene) -> Fraction:
    """The exact ratio of the probabilities of a sketch with the edge and without it."""
    case, ratio = Case(scene.context, scene.pairs, scene.edge), Fraction(1)
    parts = Parts(sketch.shown, None if sketch.counts is None else np.asarray(sketch.counts, np.int64), sketch.listed)
    if sketch.plan.responses:
        rate = Fraction(turning(sketch.plan.responses), WORD)
        ratio *= (1 - rate) / rate if _shows(parts, case) else rate / (1 - rate)
    if sketch.plan.counts:
        ratio *= (1 / Fraction(falling(sketch.plan.counts / 2), WORD)) ** _nearer(parts, case, Maker())
    return ratio


def _turns(scene: Scene) -> list[Turn]:
    """A choice between each end and another node, a question about the whole graph, and a release about everyone."""
    ends, nodes = scene.edge, range(scene.context.number_of_nodes)
    others = [node for node in nodes if node not in ends][: len(ends)]
    choices = [select_turn(pair) for pair in zip(others, ends, strict=True)]
    return [*choices, hostile_confirmation(scene, ONE), *(release_turn(node) for node in nodes)]


def _everyone_asks(scene: Scene, vault: Vault) -> tuple[int, float, list[Ratios]]:
    """How many answers there are, their log-ratio, and the laws of those that the edge may change."""
    number, loss, asked = 0, 0.0, []
    for turn in _turns(scene):
        law = scene.laws(turn.question(scene.side))
        with suppress(BudgetExhausted):
            position = turn.ask(vault)
            number += 1
            if law:
                here, there = law[position]
                loss += log(here / there)
                asked.append(law)
    return number, loss, asked


# Broken twins.


def half_the_noise(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """Noise for twice the price."""
    return shipped(graph, context, SketchPlan(2 * plan.responses, 2 * plan.counts), uses)


def drawn_twice(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """A pair stands on the lists of both of its ends, and has an answer at each."""
    ends: Iterable[Uses] = (lambda use: uses(f"first end, {use}"), lambda use: uses(f"second end, {use}"))
    return [part for end in ends for part in shipped(graph, context, plan, end)]


def spares_zeros(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """Noise where a count is not zero, and nowhere else."""
    counts = counts_of(graph, context)
    noise = laplace(counts.size, plan.counts / 2, uses("counts")).reshape(counts.shape)
    return [Parts(None, counts + np.where(counts > 0, noise, 0))]


def privately_predicted(graph: PrivateGraph, context: PublicContext) -> Numbers:
    """Counts by the classes that the model gives nodes on the private graph."""
    _, others = graph.neighbours_of(np.arange(context.number_of_nodes))
    ends = np.repeat(np.arange(context.number_of_nodes), graph.degrees(np.arange(context.number_of_nodes)))
    pairs = np.column_stack([ends, others])[ends < others]
    return _counted(graph, context, context.model.logits(context.features, pairs).argmax(axis=1))


def predicts_privately(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """Counts whose classes depend on edges, so that one edge moves more than two of them."""
    counts = privately_predicted(graph, context)
    return [Parts(None, counts + laplace(counts.size, plan.counts / 2, uses("counts")).reshape(counts.shape))]


def covers_the_snapshot(graph: PrivateGraph, context: PublicContext, plan: SketchPlan, uses: Uses) -> Sequence[Parts]:
    """Answers for pairs of the snapshot, which the books of a sketch know nothing of."""
    nothing = PublicContext(context.features, np.empty((0, 2), np.int64), context.model)
    return shipped(graph, nothing, plan, uses)


def predicted_case() -> Case:
    """An edge that changes the predicted classes of its ends' other neighbours."""
    cases = (
        Case(case.context, case.pairs, edge)
        for seed in range(20)
        for case in [small_case(seed)]
        for edge in combinations(range(NODES), 2)
        if not case.context.snapshot.has_pairs(np.array([edge]))[0]
    )
    return max(cases, key=_moved_by_predictions)


def _moved_by_predictions(case: Case) -> int:
    there, absent = (privately_predicted(case.graph(has), case.context) for has in (True, False))
    return int(np.abs(there - absent).sum())


@final
@dataclass(frozen=True, eq=False)
class Twin:
    """A broken way to make sketches, and a case in which the attack must convict it.

    Attributes:
        maker: The twin.
        plan: What it draws.
        claim: The loss that the ledger would state for this edge.
        case: Where it is attacked.
    """

    maker: Maker
    plan: SketchPlan
    claim: Fraction
    case: Callable[[], Case] = small_case


RESPONSES, COUNTS, BOTH = SketchPlan(ONE), SketchPlan(Fraction(0), ONE), SketchPlan(Fraction(2), HALF)
TWINS: Mapping[str, Twin] = {
    "half the noise": Twin(Maker(half_the_noise), RESPONSES, ONE),
    "half the noise of counts": Twin(Maker(half_the_noise), COUNTS, ONE),
    "a pair that is drawn at both of its ends": Twin(Maker(drawn_twice), RESPONSES, ONE),
    "noise only where a count is not zero": Twin(Maker(spares_zeros), COUNTS, ONE),
    "classes from private predictions": Twin(
        Maker(predicts_privately, privately_predicted), COUNTS, ONE, predicted_case
    ),
    "a second draw after a failed write, which left the first one behind": Twin(Maker(drawn_twice), BOTH, BOTH.epsilon),
    "pairs of the snapshot covered": Twin(
        Maker(covers_the_snapshot), RESPONSES, Fraction(0), partial(small_case, public=True)
    ),
}


def convictions(draws: int, say: Callable[[str], None]) -> Iterator[Conviction]:
    """Each twin, and what ships beside it, before the same attack."""
    for name, twin in TWINS.items():
        say(f"{ALONE}: {name}")
        case = twin.case()
        found, honest = (measured(case, maker, twin.plan, draws) for maker in (twin.maker, Maker()))
        claim = float(twin.claim)
        seen = f"epsilon at least {found.epsilon:.2f}, {claim:g} claimed"
        yield Conviction(name, ALONE, 1, int(found.convicts(claim)), seen, not honest.convicts(claim))
