"""Beyond the paper: what each belief about hidden pairs is worth, on held-out public pairs and in use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from privcfs.gate.guidance import Rehearsal
from privcfs.gate.learning import learn
from privcfs.gate.method import GUIDED
from privcfs.public.beliefs.hidden_degrees import SameForAll
from privcfs.public.beliefs.learned import Learned
from privcfs.public.beliefs.learning import LEAST_PAIRS, split_snapshot
from privcfs.public.beliefs.links import Anyone, Evidence, LinkModel, LogLinear, mean_log_likelihood
from privcfs.public.beliefs.pool import pool_of
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.tables.neighbours import places
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.measure import GRID, RECORD, Records, Scene, measure
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.measuring.targets import POPULATIONS

DATA = ("cora", "citeseer", "pubmed", "coauthor-cs", "facebook")
HALF, EXAMPLES, CAP = 0.5, 300, 2
WORLDS = Worlds(disclosed=HALF)
ABOUT = (
    "Seed 0, half of the edges disclosed, at most two changes, 200 publicly drawn test nodes; exact expectations, ± "
    "standard error. Each row is a belief about hidden pairs. `held-out log-likelihood` is the mean logarithm of the "
    "probability that the belief gives to the other end of a public pair that was hidden from it (300 of them, not "
    "those that the weights were fitted on); a uniform choice among the same nodes is beside it. Row zero is the "
    "public guess of that belief, at epsilon 0, and the snapshot guess is that of version 0.1. A wrong belief costs "
    "usefulness, never privacy."
)


def _learned(context: PublicContext) -> Learned:
    return learn(context, WORLDS)


def _with(links: LinkModel) -> Callable[[PublicContext], Learned]:
    def beliefs(context: PublicContext) -> Learned:
        lesson = learn(context, WORLDS)
        return replace(lesson, beliefs=replace(lesson.beliefs, links=links))

    return beliefs


def _same_degrees(context: PublicContext) -> Learned:
    lesson = learn(context, WORLDS)
    mean = len(context.snapshot.others) / context.number_of_nodes
    return replace(lesson, beliefs=replace(lesson.beliefs, hidden_degrees=SameForAll(WORLDS.mean_hidden_degree(mean))))


def _snapshot_alone(context: PublicContext) -> Learned:
    return replace(learn(context, WORLDS), trust=1.0)


BELIEFS: Mapping[str, Callable[[PublicContext], Learned]] = {
    "everything learned": _learned,
    "links: default weights": _with(LogLinear()),
    "links: classes alone": _with(LogLinear((0.0, 0.0, 1.0, 1.0, 0.0))),
    "links: anyone, by degree": _with(Anyone()),
    "hidden degrees: the same for all": _same_degrees,
    "the snapshot alone": _snapshot_alone,
}
RESULT = np.dtype([("likelihood", np.float64), ("uniform", np.float64), ("measured", RECORD)])


@final
@dataclass(frozen=True, slots=True)
class Believing(Work):
    """One belief on one data set."""

    data: str
    belief: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.belief}"

    def records(self, world: Simulation, most: int | None) -> Records:
        context = world.context(HALF)
        lesson = BELIEFS[self.belief](context)
        context.learned[WORLDS] = lesson
        likelihood, uniform = held_out(context, lesson.beliefs.links)
        scene, method = Scene.of(world.graph, context), replace(GUIDED, guide=Rehearsal(WORLDS))
        targets = POPULATIONS["sample"](world)[:most]
        found = np.zeros(len(targets), RESULT)
        found["likelihood"], found["uniform"] = likelihood, uniform
        found["measured"] = np.concatenate([measure(scene, target, method, seed=world.seed) for target in targets])
        return found


def held_out(context: PublicContext, links: LinkModel) -> tuple[float, float]:
    """The mean log-likelihood of hidden public pairs, and that of a uniform choice."""
    split = split_snapshot(context, HALF)
    pool = pool_of(split.shown)
    place = places(pool.nodes, split.hidden[:, 1])
    chosen = np.flatnonzero(place >= 0)[-EXAMPLES:]
    assert len(chosen) >= min(LEAST_PAIRS, EXAMPLES)
    evidence = [Evidence.of(split.shown, int(target)) for target in split.hidden[chosen, 0]]
    uniform = -float(np.mean([np.log(one.possible.sum()) for one in evidence]))
    return mean_log_likelihood(links, evidence, place[chosen]), uniform


def page(study: Study) -> Page:
    """One row for each data set and belief."""
    first = Study((0,), study.workers, study.folder, study.progress, study.most)
    works = [Believing(name, belief) for name in study.at_hand(DATA) for belief in BELIEFS]
    columns = (
        *(Column(name) for name in ("data", "belief")),
        *(Column(name, ".2f") for name in ("held-out log-likelihood", "uniform")),
        *(Column(name) for name in ("snapshot guess", "row zero", *(f"@{price}" for price in GRID), "ceiling")),
    )
    rows: list[list[Value]] = []
    for work, found in first.measure(works).items():
        records = found["measured"]
        row: list[Value] = [work.data, work.belief, float(found["likelihood"][0]), float(found["uniform"][0])]
        row += [estimate(records["guess"][:, CAP - 1]), estimate(records["best"][:, CAP - 1])]
        row += [estimate(records["valid"][:, column]) for column in range(len(GRID))]
        rows.append([*row, estimate(records["ceiling"])])
    brief = (
        "data",
        "belief",
        "held-out log-likelihood",
        "uniform",
        "snapshot guess",
        "row zero",
        "@1",
        "@4",
        "ceiling",
    )
    return Page("What beliefs are worth", ABOUT, columns, rows, brief=brief)
