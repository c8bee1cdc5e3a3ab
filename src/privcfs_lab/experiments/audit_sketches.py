"""The audit of sketches: an attack on one edge from a sketch alone and with everything else, and broken twins."""

from collections.abc import Iterator
from fractions import Fraction
from math import log

import numpy as np

from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.public.epsilon import show
from privcfs.public.sketches.sketch import SketchPlan
from privcfs_lab.audit.accounts import Attack
from privcfs_lab.audit.blackbox import Bound
from privcfs_lab.audit.depth import FULL, Depth
from privcfs_lab.audit.sketches import Case, alone, convictions, one_person, small_case, together
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.simulate import HALF
from privcfs_lab.measuring.study import Study

ONE, TWO = Fraction(1), Fraction(2)
NONE = Fraction(0)
PARTNERS = 6
PLANS = (
    SketchPlan(ONE),
    SketchPlan(NONE, ONE),
    SketchPlan(TWO, TWO),
    SketchPlan(TWO, TWO, PARTNERS),
)
DEFAULT = SketchPlan(TWO, TWO)
EDGES_OF_A_PERSON = 5
LEAST_DRAWS = 400  # with fewer, the attack convicts not every twin
COLUMNS = (
    *(Column(name) for name in ("what", "kind", "sketch")),
    Column("answers", "d"),
    *(Column(name, ".4f") for name in ("largest loss", "stated")),
    Column("share of what is stated", ".1%"),
    *(Column(name, ".4f") for name in ("largest measured", "proven by draws")),
    Column("AUC", ".3f"),
    Column("seen"),
    Column("within"),
)
ABOUT = (
    "An attacker knows a whole graph but one edge, and everything about how sketches are made. *Loss* is the exact "
    "logarithm of the largest ratio between the probabilities of what she sees with the edge and without it; it must "
    "never exceed what is *stated*: for the sketch alone its price, and for a sketch together with paid answers "
    "A(a) + A(b) + W + E, as the ledger has them. *Largest measured* is the log-ratio of what was really drawn. "
    "*Proven by draws*: a lower 95 % limit of the loss from many sketches of both graphs, by an auditor who looks at "
    "what they show alone. A pair of the snapshot loses nothing. *A person with edges*: all of her hidden edges are "
    "there, or none. *With paid answers*: the sketch is paid and published, and then the vault is asked for a choice "
    "between each end and another node, for a yes or no that reads the whole graph, and for releases about everyone, "
    "until accounts are empty; laws of answers follow from the sketch that was drawn, and every run attacks another "
    "edge of another small graph. Row zero is an attacker with public data "
    "alone. Every broken twin must be convicted by the same draws with which what ships is not."
)


def page(study: Study, depth: Depth = FULL) -> Page:
    """Row zero, the sketch alone, a person, everything together, twins."""
    rows: list[list[Value]] = [
        ["row zero: public data alone", "row zero", "-", 0, 0.0, 0.0, None, 0.0, None, 0.5, None, "yes"]
    ]
    for plan in PLANS:
        study.progress(f"attack: {plan.name}")
        rows.append(_alone("one edge, from the sketch alone", small_case(), plan, depth.draws))
    rows.append(_alone("a pair of the snapshot", small_case(public=True), DEFAULT, depth.draws))
    rows.append(_person())
    rows += _together(study, depth)
    for name in depth.data:
        rows.append(_real(study, name, depth))
    for twin in convictions(max(depth.draws, LEAST_DRAWS), study.progress):
        verdict = "yes" if twin.convicted and twin.honest_passes else "no"
        rows.append([twin.twin, "broken twin", twin.checker, *[None] * 7, twin.seen, verdict])
    return Page("Sketches", ABOUT, COLUMNS, rows)


def _alone(what: str, case: Case, plan: SketchPlan, draws: int) -> list[Value]:
    found, bound = alone(case, plan, draws)
    return _row(what, plan, found, bound)


def _person() -> list[Value]:
    """A law alone: nothing is drawn."""
    ratio, stated = one_person(DEFAULT, EDGES_OF_A_PERSON), EDGES_OF_A_PERSON * DEFAULT.epsilon
    loss = log(ratio.numerator) - log(ratio.denominator)
    within = "yes" if below_bound(ratio, stated) else "no"
    facts: list[Value] = [f"a person with {EDGES_OF_A_PERSON} edges", "attack", _name(DEFAULT), 1, loss, float(stated)]
    return [*facts, loss / float(stated), None, None, None, "the exact law", within]


def _row(
    what: str, plan: SketchPlan, found: Attack, bound: Bound | None = None, seen: str | None = None
) -> list[Value]:
    stated, proven = float(found.accounts), None if bound is None else bound.epsilon
    within = found.within and (proven is None or proven <= stated)
    return [
        *(what, "attack", _name(plan), found.answers, found.loss, stated, found.loss / stated if stated else None),
        *(found.measured, proven, found.auc, seen, "yes" if within else "no"),
    ]


def _name(plan: SketchPlan) -> str:
    covers = f" of {plan.partners} likeliest partners" if plan.partners else ""
    return f"responses{covers} at {show(plan.responses)}, counts at {show(plan.counts)}"


def _together(study: Study, depth: Depth) -> Iterator[list[Value]]:
    """The worst of several sketches with everything that is asked afterwards."""
    for plan in (SketchPlan(ONE), SketchPlan(ONE, ONE)):
        study.progress(f"attack: {plan.name}, and everyone asks")
        runs = [together(plan, run) for run in range(max(depth.repeats // 3, 1))]
        worst = max(runs, key=lambda one: one.ratio)
        seen = f"{len(runs)} sketches, all within" if all(one.within for one in runs) else "a transcript beyond"
        yield _row("one edge, from the sketch and paid answers", plan, worst, seen=seen)


def _real(study: Study, name: str, depth: Depth) -> list[Value]:
    """Edges of a real graph that the snapshot does not show, each attacked from sketches of its own."""
    world = study.simulation(name, 0)
    context, rng = world.context(HALF), np.random.default_rng([world.seed, 10])
    hidden = world.data.pairs[~context.snapshot.has_pairs(world.data.pairs)]
    edges = rng.permutation(hidden)[: max(depth.edges // 10, 1)].tolist()
    found = []
    for number, (one, other) in enumerate(edges, 1):
        study.progress(f"attack: edge {number} of {len(edges)}, {name}")
        found.append(alone(Case(context, world.data.pairs, (one, other)), DEFAULT, 4)[0])
    return _row(f"{name}: {len(found)} edges, from a sketch alone", DEFAULT, max(found, key=lambda one: one.ratio))
