"""Beyond the paper: what it costs to explain everyone, at one total loss for one edge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

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
from privcfs.gate.sketching import covered_by, draw_sketch
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.sketches.knowing import with_sketch
from privcfs.public.sketches.sketch import PARTNERS, Sketch, SketchPlan
from privcfs_lab.baselines.baseline import Problem
from privcfs_lab.baselines.gap import GAP
from privcfs_lab.baselines.kept_pairs import CROSSING, believed_graph
from privcfs_lab.experiments.advice import flips_of, flips_under
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.experiments.confidence import RECORD as FORECAST
from privcfs_lab.experiments.confidence import calibration_error
from privcfs_lab.figures.page import Column, Estimate, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.measuring.targets import POPULATIONS

HALF, NOTHING = 0.5, 0.0
TOTALS = ("1", "2", "4", "8", "16")
FURTHER = ("pubmed", "coauthor-cs", "facebook")
# Everyone is asked about: so many questions share a total that counts for the whole graph.
POPULATION = 1000
# So many targets of each seed are explained by each graph-level method.
COMPARED = 100
# Graphs with more nodes get sketches of likeliest partners.
LARGE = 10_000
SIZE = 2
NONE = Fraction(0)
METHODS = (*CROSSING, "GAP")
FREE = np.dtype(
    [
        ("target", np.int64),
        ("zero", np.float64),  # the lowest margin on the snapshot: version 0.1's guess
        ("guess", np.float64),  # the best public guess
        ("ceiling", np.float64),  # some candidate of the public list without a sketch flips
        ("advice", np.float64),  # what the person is told without a sketch
        ("whole", np.float64, len(TOTALS)),  # a release for which every question of the population pays in full
        ("accounts", np.float64, len(TOTALS)),  # a release by own edges, paid at the nodes
    ]
)
SKETCHED = np.dtype(
    [
        ("target", np.int64),
        ("guess", np.float64),  # the free guess
        ("confidence", np.float64),  # of that guess
        ("advice", np.float64),  # what the person is told
        ("accounts", np.float64),  # a release by own edges at half of the sketch's price
    ]
)
PRIVATISED = np.dtype([("target", np.int64), *((name, np.float64) for name in METHODS)])


def targets_of(world: Simulation, population: str, most: int | None) -> list[int]:
    """Who is explained."""
    return POPULATIONS[population](world)[:most]


def rehearsal_of(disclosed: float) -> Rehearsal:
    """What the owner believes of hidden pairs."""
    return Rehearsal(Worlds(disclosed=disclosed))


@final
@dataclass(frozen=True, slots=True)
class Unsketched(Work):
    """What is free without a sketch, and what is paid question by question, at every total."""

    data: str
    population: str
    disclosed: float
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.disclosed:.0%} disclosed, without a sketch"

    def records(self, world: Simulation, most: int | None) -> Records:
        scene = Scene(world.graph, world.context(self.disclosed), rehearsal_of(self.disclosed))
        return np.concatenate([_without(scene, target) for target in targets_of(world, self.population, most)])


@final
@dataclass(frozen=True, slots=True)
class Sketched(Work):
    """What is free with a sketch at a price, and a release by own edges that costs as much again."""

    data: str
    population: str
    disclosed: float
    price: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.disclosed:.0%} disclosed, a sketch at {self.price}"

    def records(self, world: Simulation, most: int | None) -> Records:
        base, worlds = world.context(self.disclosed), Worlds(disclosed=self.disclosed)
        plan = plan_of(Fraction(self.price), base.number_of_nodes)
        context = with_sketch(base, sketch_of(world, base, plan, worlds))
        scene = Scene(world.graph, context, rehearsal_of(self.disclosed))
        targets = targets_of(world, self.population, most)
        return np.concatenate([_with_sketch(scene, target, Fraction(self.price) / 2) for target in targets])


@final
@dataclass(frozen=True, slots=True)
class Privatised(Work):
    """Graph-level methods at a total and at the same size cap; nan where a noisy graph has too many pairs."""

    data: str
    population: str
    disclosed: float
    total: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.disclosed:.0%} disclosed, graph-level methods at {self.total}"

    def records(self, world: Simulation, most: int | None) -> Records:
        every, total = targets_of(world, self.population, most), Fraction(self.total)
        targets = every[:: max(len(every) // COMPARED, 1)][:COMPARED]
        base = world.context(self.disclosed)
        found = np.zeros(len(targets), PRIVATISED)
        found["target"] = targets
        for name in CROSSING:
            noisy = believed_graph(world, base, name, total)
            if noisy is None:
                found[name] = np.nan
            else:
                found[name] = [_on_noisy(world.graph, base, noisy, target) for target in targets]
        problem = Problem(world.data, world.model, tuple(targets), world.seed, world.snapshot(self.disclosed))
        answers = GAP(most=SIZE, epsilon=float(total)).explain(problem)
        found["GAP"] = [
            flips_under(world.graph, base, SmallSets().propose(base, target).caps, target, one.intervention)
            for target, one in zip(targets, answers, strict=True)
        ]
        return found


@final
class Scene(NamedTuple):
    """The private graph, what is public, and what is believed."""

    graph: PrivateGraph
    context: PublicContext
    rehearsal: Rehearsal

    @property
    def whole(self) -> Method:
        """Releases that read the whole graph."""
        return Method(SmallSets(), guide=self.rehearsal)

    @property
    def own(self) -> Method:
        """Releases and advice that read own edges."""
        return Method(SmallSets(), guide=OwnEdgeRehearsal(self.rehearsal))

    def by_own_edges(self, target: int, prices: Sequence[Fraction]) -> list[float]:
        """The expectations of releases that read own edges alone."""
        method, context = self.own, self.context
        candidates = method.candidates.propose(context, target)
        reader = Reader(self.graph, context, UNLIMITED, (target,))
        scores = reader.own(candidates, self.rehearsal.far_graphs(context, candidates, method.utility)).scores()
        flips = evaluate(self.graph, context, candidates, UNLIMITED).flips()
        laws = (method.prepare(context, candidates, price).mechanism.probabilities(scores, price) for price in prices)
        return [float(law @ flips) for law in laws]

    def advice(self, target: int) -> bool:
        """Whether advice flips."""
        reader = Reader(self.graph, self.context, UNLIMITED, (target,))
        personal = Personal(PublicSide(self.context, self.own, Pure(), NONE), target, reader)
        return flips_of(self.graph, personal, personal.best(1)[0].intervention)


def _without(scene: Scene, target: int) -> Records:
    """One record, of exact expectations."""
    whole, context = scene.whole, scene.context
    record = np.zeros(1, FREE)
    row = record[0]
    candidates = whole.candidates.propose(context, target)
    outcomes = evaluate(scene.graph, context, candidates, UNLIMITED)
    flips, scores = outcomes.flips(), whole.utility.score(outcomes)
    row["target"], row["ceiling"] = target, flips.any()
    row["zero"] = flips[snapshot_guess(context, candidates)]
    row["guess"] = flips[public_guess(context, candidates, whole).position]
    for column, total in enumerate(map(Fraction, TOTALS)):
        each = total / POPULATION
        row["whole"][column] = whole.prepare(context, candidates, each).mechanism.probabilities(scores, each) @ flips
    row["accounts"] = scene.by_own_edges(target, [Fraction(total) / 2 for total in TOTALS])
    row["advice"] = scene.advice(target)
    return record


def _with_sketch(scene: Scene, target: int, price: Fraction) -> Records:
    """One record, of exact expectations."""
    whole, context = scene.whole, scene.context
    record = np.zeros(1, SKETCHED)
    row = record[0]
    candidates = whole.candidates.propose(context, target)
    guess = public_guess(context, candidates, whole)
    flips = evaluate(scene.graph, context, candidates, UNLIMITED).flips()
    row["target"], row["guess"], row["confidence"] = target, flips[guess.position], guess.confidence
    row["advice"] = scene.advice(target)
    (row["accounts"],) = scene.by_own_edges(target, [price])
    return record


def _on_noisy(graph: PrivateGraph, base: PublicContext, noisy: PublicContext, target: int) -> bool:
    """Whether the candidate of lowest margin on a noisy graph flips."""
    candidates = SmallSets().propose(noisy, target)
    position = snapshot_guess(noisy, candidates)
    return flips_under(graph, base, candidates.caps, target, candidates[position])


def plan_of(price: Fraction, nodes: int) -> SketchPlan:
    """The default sketch; of graphs that are not small, one of likeliest partners."""
    return SketchPlan.of(price, PARTNERS if nodes > LARGE else 0)


def sketch_of(world: Simulation, base: PublicContext, plan: SketchPlan, worlds: Worlds) -> Sketch:
    """A sketch of one seed of the study, drawn with a seed of the study, so that the page can be made again."""
    key = f"study {world.name} {world.seed}".encode()
    universe = covered_by(base, plan, worlds)
    parts = draw_sketch(world.graph, base, plan, lambda use: Coins(key, f"{plan.name} {use}"), universe)
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
WAYS = ("sketch", "accounts", "mixture")
COLUMNS = (
    Column("data"),
    Column("disclosed", ".0%"),
    Column("total"),
    Column("targets", "d"),
    *(Column(name) for name in ("old row zero", "row zero", "ceiling", "sketch", "whole", "accounts", "mixture")),
    *(Column(name) for name in METHODS),
    Column("compared targets", "d"),
    *(Column(name, ".0%") for name in ("share of sketch", "above row zero")),
    *(Column(name) for name in ("confidence", "calibration error", "advice without a sketch", "advice")),
    Column("share of advice", ".0%"),
    Column("best way"),
    Column("asked"),
)
BRIEF = (
    *("data", "disclosed", "total", "old row zero", "row zero", "whole", "accounts", "mixture", "sketch", "ceiling"),
    *("RR-LDP", "advice"),
)
ABOUT = (
    "At most two changes. All 1,000 test nodes a seed of Cora and CiteSeer, 300 by a public draw elsewhere, and "
    "there with half of the pairs public alone. Every test "
    "node is asked about once, and everything that is told together costs the `total` for two graphs that differ in "
    "one edge. `whole`: releases that count for the whole graph, each at a thousandth of the total. `accounts`: "
    "releases that read the target's own edges, each at half of the total, because an edge has two ends. `sketch`: "
    "noisy counts by class at up to 2, and randomised response at the rest of the total, once, and then the free "
    "public guess; responses are for all pairs of nodes on Cora and CiteSeer, and for the hundred likeliest partners "
    "of each node on the others. `mixture`: a sketch at half of the total, and releases by own edges at a quarter; "
    "there is none at a total of 1. Graph-level methods privatise the graph at the total, once; pairs of the snapshot "
    "are known, and other pairs are kept if their noisy value is at least one half, which is kinder than to take "
    "weights. The graph that they give is taken as it stands, and its candidate of lowest margin is the answer, at the "
    "same size cap; GAP searches on its own model, NaiveDP and GAP also have a delta of 1e-5, and there is no number "
    "where more than a million pairs would be kept. They were measured on a hundred of the targets of each seed. `old "
    "row zero` is the candidate of lowest margin on the snapshot, `row zero` the best public guess, `ceiling` the "
    "share of targets that some candidate of the public list without a sketch flips; with a sketch the list is another "
    "one, which may flip more. `share of sketch` is the part of the gap between old row zero and ceiling that the "
    "guess with a sketch closes, `above row zero` the part of the gap between row zero and ceiling. `advice` is for "
    "another audience, the person concerned, and costs nothing; it has the sketch as evidence, and stands beside "
    "advice without one. `calibration error` is that of the guess with a sketch, in ten bins of equal mass. `best way` "
    "is the best of sketch, accounts and mixture. `asked` says which bars were met, and by how much others were missed."
)


def page(study: Study) -> Page:
    """One row for each data set, disclosed share and total."""
    further = [name for name in FURTHER if study.has(name)]
    cells = [*((name, HALF) for name in (*NAMES, *further)), *((name, NOTHING) for name in NAMES)]
    found = study.measure(work for cell in cells for work in works_of(*cell))
    rows = [row for cell in cells for row in rows_of(found, *cell)]
    about = f"{seeds_of(study).capitalize()}. {ABOUT}"
    return Page("Explaining everyone at one total", about, COLUMNS, rows, brief=BRIEF)


def population_of(name: str) -> str:
    """Who is asked about."""
    return "everyone" if name in NAMES else "many"


def works_of(name: str, disclosed: float) -> list[Work]:
    """What is computed for one data set and disclosed share; each part is kept by itself."""
    who = population_of(name)
    sketched = [Sketched(name, who, disclosed, price) for price in TOTALS]
    noisy = [Privatised(name, who, disclosed, total) for total in TOTALS]
    return [Unsketched(name, who, disclosed), *sketched, *noisy]


def rows_of(found: Mapping[Work, Records], name: str, disclosed: float) -> list[list[Value]]:
    """One row for each total."""
    free, *others = (found[work] for work in works_of(name, disclosed))
    sketched = dict(zip(TOTALS, others, strict=False))
    noisy = dict(zip(TOTALS, others[len(TOTALS) :], strict=True))
    return [
        row_of(Cell(name, disclosed, total), free, sketched[total], sketched.get(halved(total)), noisy[total])
        for total in TOTALS
    ]


def halved(total: str) -> str:
    """Half of a total, as text."""
    return str(Fraction(total) / 2)


@final
class Cell(NamedTuple):
    """One row: data, disclosed share and total."""

    data: str
    disclosed: float
    total: str


def row_of(cell: Cell, free: Records, sketched: Records, half: Records | None, noisy: Records) -> list[Value]:
    """All columns of one row; `half` has the sketch at half of the total."""
    column = TOTALS.index(cell.total)
    ways = {"sketch": sketched["guess"], "accounts": free["accounts"][:, column]}
    ways |= {} if half is None else {"mixture": half["accounts"]}
    rates: dict[str, Estimate | None] = {name: estimate(values) for name, values in ways.items()}
    whole, advice = estimate(free["whole"][:, column]), estimate(sketched["advice"])
    methods = {name: None if np.isnan(noisy[name]).any() else estimate(noisy[name]) for name in METHODS}
    zero, guess, ceiling = (estimate(free[name]) for name in ("zero", "guess", "ceiling"))
    best = max(ways, key=lambda name: float(ways[name].mean()))
    shares = _share(zero, rates["sketch"], ceiling), _share(zero, advice, ceiling)
    error = _calibration_error(sketched)
    bars = (
        ("share of sketch", SHARES.get(cell), shares[0]),
        ("share of advice", ADVICE_SHARES.get(cell), shares[1]),
        ("gain of advice by the sketch", 0.0 if cell in ADVICE_SHARES else None, advice.mean - free["advice"].mean()),
        ("gain over whole-graph accounts", ABOVE_WHOLE.get(cell), float(ways[best].mean()) - whole.mean),
        ("calibration error", -MOST_ERROR, -error),
        *_above_methods(estimate(ways[best]), methods, asked=cell in ABOVE_WHOLE),
    )
    return [
        *(*cell, len(free), zero, guess, ceiling, rates["sketch"], whole, rates["accounts"], rates.get("mixture")),
        *methods.values(),
        *(len(noisy), shares[0], _share(guess, rates["sketch"], ceiling), float(sketched["confidence"].mean()), error),
        *(estimate(free["advice"]), advice, shares[1], best, _asked(bars)),
    ]


def _above_methods(
    best: Estimate, methods: Mapping[str, Estimate | None], *, asked: bool
) -> list[tuple[str, float | None, float]]:
    """At least every graph-level method, within one standard error."""
    return [
        (f"not below {name}", 0.0 if asked else None, best.mean + np.hypot(best.error, one.error) - one.mean)
        for name, one in methods.items()
        if one is not None
    ]


def _calibration_error(found: Records) -> float:
    forecasts = np.zeros(len(found), FORECAST)
    forecasts["confidence"], forecasts["valid"], forecasts["weight"] = found["confidence"], found["guess"], 1
    return calibration_error(forecasts)


def _share(low: Estimate, reached: Estimate | None, high: Estimate) -> float:
    """The part of a gap that is closed."""
    assert reached is not None
    return (reached.mean - low.mean) / max(high.mean - low.mean, 1e-9)


def _asked(bars: Sequence[tuple[str, float | None, float]]) -> str:
    """Which bars were met, and by how much the others were missed."""
    asked = [(name, bar, reached) for name, bar, reached in bars if bar is not None]
    missed = [f"{name} {abs(bar):g} missed by {bar - reached:.3f}" for name, bar, reached in asked if reached < bar]
    return "met" if not missed else "; ".join(missed)
