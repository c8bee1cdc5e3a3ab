"""How deep an audit goes."""

from dataclasses import dataclass
from typing import final

from privcfs.embedded import NAMES


@final
@dataclass(frozen=True, slots=True)
class Depth:
    """How many graphs, questions, repetitions, seeds and targets."""

    name: str
    graphs: int  # random small graphs of the exact checks
    models: int  # random models whose every graph on five nodes is compared
    draws: int  # questions to each vault of the black-box audit
    most_draws: int  # a broken twin whose conviction by black box takes more is left to its other checker
    repeats: int  # trials of each broken twin
    claims: tuple[str, ...]  # prices at which shipped mechanisms are audited
    answers: int  # timed answers of each vault
    places: int  # targets of each data set at which laws are compared on graphs that agree at the target
    alike: int  # such graphs for each of them
    edges: int  # of each data set that are attacked after their ends have asked
    everyone: int | None = None  # nodes that ask before one edge is attacked; all of them if none is given
    data: tuple[str, ...] = NAMES  # graphs on which worst cases are searched for and attacks are run
    seeds: tuple[int, ...] = (0, 1, 2)
    targets: int | None = None  # of each population; all of them if none is given


QUICK = Depth(
    name="quick",
    graphs=4,
    models=1,
    draws=250,
    most_draws=200,
    repeats=1,
    claims=("1",),
    answers=24,
    places=3,
    alike=10,
    edges=4,
    everyone=20,
    data=NAMES[:1],
    seeds=(0,),
    targets=1,
)
FULL = Depth(
    name="full",
    graphs=40,
    models=10,
    draws=4000,
    most_draws=4000,
    repeats=60,
    claims=("1", "4"),
    answers=1000,
    places=60,
    alike=40,
    edges=60,
)
