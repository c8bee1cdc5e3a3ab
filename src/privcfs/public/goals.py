"""What an answer shall lead to: another class than the present one, one class, or one of several."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError

# None for any class other than the present one; a class; or several classes, of which every one will do. A change is
# valid only if the present class is none of these, because there is nothing to reach otherwise.
Goal = int | tuple[int, ...] | None


def one_of(classes: Iterable[int], count: int) -> Goal:
    """One of some classes, of which there are `count`."""
    found = tuple(sorted(set(classes)))
    if not found or len(found) == count or not all(0 <= one < count for one in found):
        raise SettingsError(f"desired names the classes {list(found)}; name some, but not all, of 0 to {count - 1}.")
    return found[0] if len(found) == 1 else found


def all_but(classes: Iterable[int], count: int) -> Goal:
    """Any class but some."""
    avoided = set(classes)
    if not all(0 <= one < count for one in avoided):
        raise SettingsError(f"desired names the classes {sorted(avoided)}; name some of 0 to {count - 1}.")
    return one_of(set(range(count)) - avoided, count)


def classes_of(goal: int | tuple[int, ...], count: int) -> NDArray[np.bool_]:
    """Which of `count` classes are wanted."""
    return np.isin(np.arange(count), goal)


def best_of(logits: NDArray[np.floating], classes: NDArray[np.bool_]) -> NDArray[np.floating]:
    """The highest logit among some classes, which are the first axis."""
    highest: NDArray[np.floating] = logits[classes].max(axis=0)
    return highest
