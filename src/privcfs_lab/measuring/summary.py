"""Records of many targets as one number: means with standard errors, and row zero at equal size."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from privcfs_lab.figures.page import Estimate
from privcfs_lab.measuring.measure import GRID, LARGEST, Records

EIGHT = GRID.index("8")


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Mean and standard error, pooled over targets."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / sqrt(len(values))))


def rate(records: Records, name: str, price: str = "8") -> Estimate:
    """A quantity at one price."""
    return estimate(records[name][:, GRID.index(price)])


def guess(records: Records, name: str = "guess") -> Estimate:
    """Row zero at equal size, with its standard error."""
    return estimate(guesses(records, name))


def guesses(records: Records, name: str = "guess", price: str = "8") -> NDArray[np.float64]:
    """A guess for each target, of the mean size of a release at this price but at least one element.

    Names that begin with "best" are of the best public guess, others of the guess of lowest margin on the snapshot.
    Between two sizes, both guesses are mixed so that the mean size is the release's.
    """
    sizes = records["best_size" if name.startswith("best") else "guess_size"].mean(axis=0)
    wanted = float(np.clip(records["size"][:, GRID.index(price)].mean(), sizes[0], sizes[-1]))
    share = np.array([np.interp(wanted, sizes, row) for row in np.eye(LARGEST)])
    mixed: NDArray[np.float64] = records[name] @ share
    return mixed


def retention(records: Records) -> Estimate | None:
    """Valid rate at 8 over the ceiling: the mean over targets that can be flipped at all."""
    reachable = records["ceiling"] > 0
    return estimate(records["valid"][reachable, EIGHT]) if reachable.sum() > 1 else None


def valid_if_not_empty(records: Records) -> Estimate | None:
    """Of the releases at epsilon 8 that name something, the share that flips; error by linearisation."""
    named = 1 - records["empty"][:, EIGHT]
    if named.mean() < 1e-9:
        return None
    ratio = float(records["valid"][:, EIGHT].mean() / named.mean())
    return Estimate(ratio, estimate((records["valid"][:, EIGHT] - ratio * named) / named.mean()).error)
