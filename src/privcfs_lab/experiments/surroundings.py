"""What it costs to look at a part of a large graph: the same guided releases with the whole graph in sight, or not."""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.gate.method import GUIDED
from privcfs.public.beliefs.surroundings import MOST_WHOLE
from privcfs.public.candidates.partners import SAMPLED_NODES
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.experiments.recourse import HALF, row_zero
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.measure import GRID, Records, Scene, measure
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.summary import estimate, rate
from privcfs_lab.measuring.targets import POPULATIONS

DATA = ("cora", "citeseer", "pubmed", "facebook", "coauthor-physics")
PRICES = ("1", "4", "8")
NO_LIMIT = 1 << 62  # more nodes and neighbours than any graph has, so that every graph is read as a whole
ABOUT = (
    "Guided releases of at most two changes, half of the edges disclosed, publicly drawn test nodes, {seeds}; exact "
    "expectations, ± standard error. On a large graph (more than {most:,} nodes and neighbours), guidance looks at the "
    "surroundings of the target, at strangers who stand for the rest, and at partners who promise much by themselves. "
    "Here every graph is looked at both ways, whatever its size; as partners, all of its nodes are heard (of larger "
    "ones, {heard:,}). `gain` is what looking at a part adds, target by target; a loss shows as a negative number."
)


@final
@dataclass(frozen=True, slots=True)
class Looking(Work):
    """One way of looking at one graph."""

    data: str
    part: bool
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {_way(self.part)}"

    def records(self, world: Simulation, most: int | None) -> Records:
        targets = POPULATIONS["general"](world)[:most]
        context = world.context(HALF).with_whole_limit(0 if self.part else NO_LIMIT)
        scene = Scene.of(world.graph, context)
        return np.concatenate([measure(scene, target, GUIDED, seed=world.seed) for target in targets])


def _way(part: bool) -> str:
    return "a part" if part else "the whole"


def page(study: Study) -> Page:
    """Both ways beside each other, for the graphs that are at hand."""
    works = [Looking(name, part) for name in study.at_hand(DATA) for part in (False, True)]
    found = study.measure(works)
    rows: list[list[Value]] = []
    for work, records in found.items():
        whole = found[Looking(work.data, False)]
        row: list[Value] = [work.data, _way(work.part), len(records)]
        row += [row_zero(2, records), estimate(records["ceiling"]), *(rate(records, "valid", one) for one in PRICES)]
        gains = [records["valid"][:, GRID.index(one)] - whole["valid"][:, GRID.index(one)] for one in PRICES]
        rows.append([*row, *(estimate(gain) if work.part else None for gain in gains)])
    columns = (
        *(Column(name) for name in ("data", "looks at")),
        Column("targets", "d"),
        *(Column(name) for name in ("row zero", "ceiling", *(f"@{price}" for price in PRICES))),
        *(Column(f"gain @{price}") for price in PRICES),
    )
    about = ABOUT.format(seeds=seeds_of(study), most=MOST_WHOLE, heard=SAMPLED_NODES)
    return Page("Looking at a part of a large graph", about, columns, rows)
