"""Words and numbers that the experiments share: arms, estimates, verdicts."""

from math import sqrt

from privcfs.gate.method import Method
from privcfs.public.candidates import RULES
from privcfs_lab.figures.page import Estimate
from privcfs_lab.measuring.study import Cell, Study
from privcfs_lab.variants.inert_masks import InertMasks

SHARES = (0.3, 0.5, 0.7, 1.0)
EDGES, JOINT = "edge-only", "joint"
ARMS = {
    EDGES: Method(candidates=RULES["edges-only"]),
    JOINT: Method(candidates=RULES["one-hop"]),
}
MORE_ARMS = ARMS | {
    "feature-only": Method(candidates=RULES["features-only"]),
    "inert masks": Method(candidates=InertMasks()),
}
HOW = (
    "Exact expectations over the release distribution, mean over targets pooled over seeds, ± standard error. Rates "
    "are drawn with range 1, as printed in the paper (soft utility 4/5)."
)
ROW_ZERO = (
    "Public guess is row zero, epsilon 0: the candidate of the same list that leaves the lowest margin on the snapshot "
    "graph, at the mean size of a release (at least one element; guesses of two sizes are mixed to meet it)."
)
BOTH_ARMS = (
    "The paper's printed numbers correspond to the edge-only arm (README of this folder); with masks as they are "
    "defined, the joint arm reaches further."
)


def cell(data: str, population: str, disclosed: float, arm: str) -> Cell:
    """One of the arms, drawn by the exponential mechanism."""
    return Cell(data, population, disclosed, MORE_ARMS[arm])


def grid(names: tuple[str, ...], population: str, shares: tuple[float, ...] = SHARES) -> list[Cell]:
    """Both arms over data and shares."""
    return [cell(name, population, share, arm) for name in names for share in shares for arm in ARMS]


def verdict(ours: Estimate, printed: float | None, error: float = 0.0) -> str | None:
    """Whether the other number lies within two standard errors; `error` is its own, where it is known."""
    if printed is None:
        return None
    gap, spread = abs(ours.mean - printed), sqrt(ours.error**2 + error**2)
    if gap <= 2 * spread + 5e-4:  # printed numbers have three decimals
        return "agrees"
    return f"differs by {gap:.3f}"


def seeds_of(study: Study) -> str:
    """In words."""
    return f"seeds {study.seeds[0]} to {study.seeds[-1]}" if len(study.seeds) > 1 else f"seed {study.seeds[0]}"
