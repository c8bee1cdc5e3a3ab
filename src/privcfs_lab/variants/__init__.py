"""Variants of the method that the ablations compare: other draws and other candidate lists, one file each.

A law maps (inspection, epsilon, printed range) to the probability of each candidate.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

from privcfs.public.epsilon import Price
from privcfs_lab.measuring.inspection import Inspection
from privcfs_lab.measuring.quality import Law, release_law
from privcfs_lab.variants import per_edge, sequential

LAWS: Mapping[str, Callable[[Inspection, Price, Fraction | None], Law]] = {
    "one draw": release_law,
    "sequential": sequential.law,
    "per edge": per_edge.law,
}
