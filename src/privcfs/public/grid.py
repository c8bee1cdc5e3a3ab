"""The public grid that a utility's values lie on: whole numbers of one unit, so that a draw can be exact."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Grid:
    """`levels` are the attainable scores in units of 1/denominator, ascending.

    `span` is the largest difference, in units, between the scores of one candidate on any two private graphs.
    """

    denominator: int
    levels: tuple[int, ...]
    span: int

    @property
    def range(self) -> Fraction:
        """The span as a number: the paper's sensitivity, here a proven constant of the configuration."""
        return Fraction(self.span, self.denominator)
