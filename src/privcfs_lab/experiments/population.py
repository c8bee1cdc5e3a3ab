"""Beyond the paper: what it costs to explain everyone, at one total loss for one edge."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from privcfs.embedded import NAMES
from privcfs.gate.coins import Coins
from privcfs.gate.contracts import Pure
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import Method
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.gate.public_guess import public_guess, snapshot_guess
from privcfs.gate.questions.advice import Personal
from privcfs.gate.questions.question import PublicSide
from privcfs.gate.sketching import draw_sketch
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.sketches.knowing import with_sketch
from privcfs.public.sketches.sketch import Sketch, SketchPlan
from privcfs_lab.experiments.advice import flips_of
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.experiments.confidence import RECORD as FORECAST
from privcfs_lab.experiments.confidence import calibration_error
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.measuring.targets import POPULATIONS

HALF, NOTHING = 0.5, 0.0
TOTALS = ("4", "8")
# Everyone is asked about: so many questions share a total that counts for the whole graph.
POPULATION = 1000
NONE = Fraction(0)
RECORD = np.dtype(
    [
        ("target", np.int64),
        ("zero", np.float64),  # the lowest margin on the snapshot: version 0.1's guess
        ("guess", np.float64),  # the best public guess
        ("ceiling", np.float64),  # some candidate of the public list without a sketch flips
        ("whole", np.float64),  # a release for which every question of the population pays in full
        ("accounts", np.float64),  # a release by own edges, paid at the nodes
        ("sketch", np.float64),  # the free guess with the default sketch
        ("confidence", np.float64),  # of that guess
        ("mixture", np.float64),  # half for a sketch, half for accounts
        ("randomised graph", np.float64),  # the lowest margin on a randomised graph, taken as it stands
        ("advice", np.float64),  # what the person is told, with the sketch
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Sketched(Work):
    """Ways to answer everyone at one total loss for one edge: the free guess and advice, or every way."""

    data: str
    population: str
    disclosed: float
    total: str
    every_way: bool = True
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.disclosed:.0%} disclosed, total {self.total}"

    def records(self, world: Simulation, most: int | None) -> Records:
        scene = Scene.of(world, self.disclosed, Fraction(self.total), self.every_way)
        return np.concatenate([scene.measure(target) for target in POPULATIONS[self.population](world)[:most]])


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """One seed at one total: the graph, the context without a sketch, with one, and with one at half of the price."""

    graph: PrivateGraph
    context: PublicContext
    sketched: PublicContext
    half: PublicContext | None
    randomised: PublicContext | None
    rehearsal: Rehearsal
    total: Fraction

    @classmethod
    def of(cls, world: Simulation, disclosed: float, total: Fraction, every_way: bool) -> "Scene":
        """Sketches are drawn with a seed of the study, so that the page can be made again."""
        base, worlds = world.context(disclosed), Worlds(disclosed=disclosed)
        sketched = with_sketch(base, sketch_of(world, base, SketchPlan.of(total), worlds))
        if not every_way:
            return cls(world.graph, base, sketched, None, None, Rehearsal(worlds), total)
        half = with_sketch(base, sketch_of(world, base, SketchPlan.of(total / 2), worlds))
        shown = sketch_of(world, base, SketchPlan(total), worlds).shown_pairs.pairs
        every = np.unique(np.concatenate([base.snapshot.pairs, shown]), axis=0)
        randomised = PublicContext(base.features, every, base.model, assumptions=base.assumptions)
        return cls(world.graph, base, sketched, half, randomised, Rehearsal(worlds), total)

    def measure(self, target: int) -> Records:
        """One record, of exact expectations."""
        whole = Method(SmallSets(), guide=self.rehearsal)
        record = np.zeros(1, RECORD)
        row = record[0]
        candidates = whole.candidates.propose(self.context, target)
        outcomes = evaluate(self.graph, self.context, candidates, UNLIMITED)
        flips = outcomes.flips()
        row["target"], row["ceiling"] = target, flips.any()
        row["zero"] = flips[snapshot_guess(self.context, candidates)]
        row["guess"] = flips[public_guess(self.context, candidates, whole).position]
        row["sketch"], row["confidence"] = self._guess(self.sketched, target, whole)
        row["advice"] = self._advice(target)
        if self.half is None or self.randomised is None:
            return record
        each = self.total / POPULATION
        law = whole.prepare(self.context, candidates, each).mechanism
        row["whole"] = law.probabilities(whole.utility.score(outcomes), each) @ flips
        row["accounts"] = self._by_own_edges(self.context, target, self.total / 2)
        row["mixture"] = self._by_own_edges(self.half, target, self.total / 4)
        believed = whole.candidates.propose(self.randomised, target)
        position = snapshot_guess(self.randomised, believed)
        row["randomised graph"] = evaluate(self.graph, self.context, believed, UNLIMITED).flips()[position]
        return record

    def _guess(self, context: PublicContext, target: int, method: Method) -> tuple[bool, float]:
        """Whether the public guess flips, and its confidence."""
        candidates = method.candidates.propose(context, target)
        guess = public_guess(context, candidates, method)
        flips = evaluate(self.graph, context, candidates, UNLIMITED).flips()
        return bool(flips[guess.position]), guess.confidence

    def _by_own_edges(self, context: PublicContext, target: int, price: Fraction) -> float:
        """The expectation of a release that reads own edges alone."""
        method = Method(SmallSets(), guide=OwnEdgeRehearsal(self.rehearsal))
        candidates = method.candidates.propose(context, target)
        reader = Reader(self.graph, context, UNLIMITED, (target,))
        scores = reader.own(candidates, self.rehearsal.far_graphs(context, candidates, method.utility)).scores()
        law = method.prepare(context, candidates, price).mechanism.probabilities(scores, price)
        return float(law @ evaluate(self.graph, context, candidates, UNLIMITED).flips())

    def _advice(self, target: int) -> bool:
        """Whether advice with the sketch flips."""
        method = Method(SmallSets(), guide=OwnEdgeRehearsal(self.rehearsal))
        reader = Reader(self.graph, self.sketched, UNLIMITED, (target,))
        personal = Personal(PublicSide(self.sketched, method, Pure(), NONE), target, reader)
        return flips_of(self.graph, personal, personal.best(1)[0].intervention)


def sketch_of(world: Simulation, base: PublicContext, plan: SketchPlan, worlds: Worlds) -> Sketch:
    """A sketch of one seed of the study."""
    key = f"study {world.name} {world.seed}".encode()
    parts = draw_sketch(world.graph, base, plan, lambda use: Coins(key, f"{plan.name} {use}"))
    return Sketch(plan, base.digest, worlds, base.number_of_nodes, base.number_of_classes, *parts, plan.name)


# Asked for: the share of the gap between old row zero and ceiling that the free guess with a sketch closes.
SHARES: Mapping[tuple[str, float, str], float] = {
    ("cora", HALF, "4"): 0.60,
    ("cora", HALF, "8"): 0.80,
    ("citeseer", HALF, "4"): 0.30,
    ("citeseer", HALF, "8"): 0.70,
    ("cora", NOTHING, "4"): 0.45,
    ("cora", NOTHING, "8"): 0.80,
    ("citeseer", NOTHING, "4"): 0.45,
    ("citeseer", NOTHING, "8"): 0.65,
}
ADVICE_SHARES: Mapping[tuple[str, float, str], float] = {("cora", HALF, "4"): 0.75, ("citeseer", HALF, "4"): 0.60}
ABOVE_WHOLE: Mapping[tuple[str, float, str], float] = {
    ("cora", HALF, "4"): 0.02,
    ("cora", HALF, "8"): 0.04,
    ("citeseer", HALF, "4"): 0.015,
    ("citeseer", HALF, "8"): 0.04,
}
MOST_ERROR = 0.05
ARMS = ("whole", "accounts", "mixture", "randomised graph")
COLUMNS = (
    Column("data"),
    Column("disclosed", ".0%"),
    Column("total"),
    Column("targets", "d"),
    *(Column(name) for name in ("old row zero", "row zero", "ceiling", "sketch", *ARMS)),
    *(Column(name, ".0%") for name in ("share of sketch", "above row zero")),
    *(Column(name) for name in ("confidence", "calibration error", "advice")),
    Column("share of advice", ".0%"),
    Column("asked"),
)
BRIEF = ("data", "disclosed", "total", "old row zero", "row zero", "whole", "accounts", "sketch", "ceiling", "advice")
ABOUT = (
    "At most two changes. Two hundred test nodes a seed. Where nothing is disclosed, the free guess and advice alone "
    "were measured. Every test node is asked about once, and everything that is told together costs the `total` "
    "for two graphs that differ in one edge. `whole`: releases that count for the whole graph, each at a thousandth of "
    "the total. `accounts`: releases that read the target's own edges, each at half of the total, because an edge has "
    "two ends. `sketch`: noisy counts by class at 2 and randomised response for all pairs of nodes at the rest of the "
    "total, once, and then the free public guess. `mixture`: a sketch at half of the total, and releases by own edges "
    "at a quarter. `randomised graph`: randomised response at the total, taken for the graph as it stands, as "
    "graph-level methods do, and the candidate of lowest margin on it. `old row zero` is the candidate of lowest "
    "margin on the snapshot, `row zero` the best public guess, `ceiling` the share of targets that some candidate of "
    "the public list without a sketch flips; with a sketch the list is another one, which may flip more. `share of "
    "sketch` is the part of the gap between old row zero and ceiling that the guess with a sketch closes, `above row "
    "zero` the part of the gap between row zero and ceiling. `advice` is for another audience, the person concerned, "
    "and has the sketch as evidence. `calibration error` is that of the guess with a sketch, in ten bins of equal mass."
)


def works() -> list[Sketched]:
    """Every way with half of the edges disclosed, the free guess and advice alone with none."""
    return [
        Sketched(name, "sample", share, total, every_way=share == HALF)
        for share in (HALF, NOTHING)
        for name in NAMES
        for total in TOTALS
    ]


def page(study: Study) -> Page:
    """One row for each data set, disclosed share and total."""
    rows = [row_of(work, records) for work, records in study.measure(works()).items()]
    about = f"{seeds_of(study).capitalize()}. {ABOUT}"
    return Page("Explaining everyone at one total", about, COLUMNS, rows, brief=BRIEF)


def row_of(work: Sketched, found: Records) -> list[Value]:
    """All columns of one row."""
    zero, guess, ceiling, sketch, advice = (
        float(found[name].mean()) for name in ("zero", "guess", "ceiling", "sketch", "advice")
    )
    shares = _share(zero, sketch, ceiling), _share(zero, advice, ceiling)
    forecasts = np.zeros(len(found), FORECAST)
    forecasts["confidence"], forecasts["valid"], forecasts["weight"] = found["confidence"], found["sketch"], 1
    error = calibration_error(forecasts)
    row: list[Value] = [work.data, work.disclosed, work.total, len(found)]
    row += [estimate(found[name]) for name in ("zero", "guess", "ceiling", "sketch")]
    row += [estimate(found[name]) if work.every_way else None for name in ARMS]
    row += [shares[0], _share(guess, sketch, ceiling), float(found["confidence"].mean()), error]
    return [*row, estimate(found["advice"]), shares[1], _asked(work, found, shares, error)]


def _share(low: float, reached: float, high: float) -> float:
    """The part of a gap that is closed."""
    return (reached - low) / max(high - low, 1e-9)


def _asked(work: Sketched, found: Records, shares: tuple[float, float], error: float) -> str:
    """What was asked for and missed."""
    where = (work.data, work.disclosed, work.total)
    ways = [float(found[name].mean()) for name in ("sketch", "accounts", "mixture")]
    above = max(ways) - float(found["whole"].mean()) if work.every_way else np.inf
    bars = (
        ("share of sketch", SHARES.get(where), shares[0]),
        ("share of advice", ADVICE_SHARES.get(where), shares[1]),
        ("above whole-graph accounts", ABOVE_WHOLE.get(where), above),
    )
    missed = [f"{name} {bar:g}" for name, bar, reached in bars if bar is not None and reached < bar]
    if error > MOST_ERROR:
        missed.append(f"calibration error {MOST_ERROR}")
    return "met" if not missed else "missed: " + ", ".join(missed)
