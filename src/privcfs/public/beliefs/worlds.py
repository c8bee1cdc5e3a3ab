"""What an owner says about the hidden part of a graph, and how many graphs are imagined."""

from dataclasses import dataclass
from typing import final

from privcfs.errors import SettingsError


@final
@dataclass(frozen=True, slots=True)
class Worlds:
    """How graphs are imagined. Nothing here has to be true: a wrong belief costs usefulness, never privacy.

    Attributes:
        number: How many graphs are imagined for a target; fewer if it has very many neighbours.
        disclosed: The share of the private pairs that the snapshot is believed to hold.
        degree: The mean degree that is believed where the snapshot holds no pairs.
    """

    number: int = 128
    disclosed: float = 0.5
    degree: float = 4.0

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.disclosed <= 1 or self.degree < 0:
            raise SettingsError("worlds need a number of at least 1, a disclosed share from 0 to 1 and a degree.")

    def mean_hidden_degree(self, public: float) -> float:
        """The mean number of hidden pairs of a node, if the snapshot shows `public` pairs of a node on average."""
        if public == 0 or self.disclosed == 0:
            return self.degree
        return public * (1 - self.disclosed) / self.disclosed
