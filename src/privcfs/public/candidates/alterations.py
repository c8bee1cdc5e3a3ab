"""What masks and changes of a candidate list do to the feature row of the target."""

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.tables.neighbours import places

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A number that a change would move by less than this share of it, or of 1, is the present one: tables are in 32 bits.
SAME = np.float32(1e-6)


def taken_inputs(candidates: Candidates, row: tuple[NDArray[np.int32], Floats], first: Floats) -> Floats:
    """What each mask and each change takes from the target's first-layer input: (masks + changes, units).

    `row` has the target's column numbers, ascending, and their values; `first` holds the weights of the first layer.
    """
    features = np.array(candidates.features, np.int64)
    masked: Floats = _values(row, features)[:, None] * first[features]
    if not candidates.changes:
        return masked
    columns = np.array([column for one in candidates.changes for column in one.columns], np.int64)
    starts = np.cumsum([0, *(len(one.columns) for one in candidates.changes)])[:-1]
    before = _values(row, columns)
    after = np.array([value for one in candidates.changes for value in one.values], np.float32)
    taken = (before - settled(after, before))[:, None] * first[columns]
    return np.concatenate([masked, np.add.reduceat(taken, starts)])


def alter_rows(rows: Floats, candidates: Candidates, feature_sets: Numbers) -> None:
    """Carries out masks and changes on copies of the target's row, in place; each copy has a feature set."""
    chosen = membership(candidates.feature_sets, candidates.feature_operations)[feature_sets]
    masks = len(candidates.features)
    rows[:, list(candidates.features)] *= ~chosen[:, :masks]
    for position, one in enumerate(candidates.changes, masks):
        (copies,) = np.nonzero(chosen[:, position])
        cells = np.ix_(copies, np.array(one.columns))
        rows[cells] = settled(np.array(one.values, np.float32), rows[cells])


def settled(after: Floats, before: Floats) -> Floats:
    """New numbers, or the present ones where they are the same but for rounding, so that nothing changes at all."""
    is_same = np.abs(after - before) <= SAME * np.maximum(np.abs(before), 1)
    found: Floats = np.where(is_same, before, after)
    return found


def _values(row: tuple[NDArray[np.int32], Floats], columns: Numbers) -> Floats:
    """The row's numbers in some columns; 0 in those that it lacks."""
    numbers, values = row
    found: Floats = np.append(values, np.float32(0))[places(numbers, columns)]
    return found
