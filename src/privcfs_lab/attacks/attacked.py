"""Every attack on every victim, as work that a study keeps."""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs_lab.attacks import ATTACKS
from privcfs_lab.attacks.attack import Guesses
from privcfs_lab.attacks.victims import VICTIMS
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Work

GUESSED = np.dtype(
    [
        ("seed", np.int64),
        ("score", np.float64),
        ("edge", np.bool_),
        ("group", np.int64),  # guesses about one target
        ("exact", np.float64),  # the advantage, where it is known; otherwise not a number
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Attacked(Work):
    """One attack on one victim."""

    data: str
    attack: str
    victim: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.attack} on {self.victim}, {self.data}"

    def records(self, world: Simulation, most: int | None) -> Records:
        found = ATTACKS[self.attack].guesses(VICTIMS[self.victim], world, most)
        records = np.zeros(len(found.scores), GUESSED)
        records["seed"], records["score"] = world.seed, found.scores
        records["edge"], records["group"] = found.truth, found.group
        records["exact"] = np.nan if found.exact is None else found.exact
        return records


def guesses_of(records: Records) -> Guesses:
    """All seeds together."""
    apart = int(records["group"].max()) + 2 - int(records["group"].max()) % 2
    exact = None if np.isnan(records["exact"]).any() else records["exact"]
    return Guesses(records["score"], records["edge"], records["seed"] * apart + records["group"], exact)
