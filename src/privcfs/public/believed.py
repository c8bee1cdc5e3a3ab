"""Which decision is believed, before and after a change. The true decision is private, so this says what it is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from privcfs.public.confidence import said

MEANING = (
    "Believed, from public data alone: the share of imagined graphs on which the model decides so. The true decision "
    "is private and was not read."
)


@final
@dataclass(frozen=True, slots=True)
class Believed:
    """Probabilities of classes, the likeliest first; classes that are very unlikely are left out.

    Attributes:
        before: The present decision.
        after: The decision after a change; None, the default, where no change was named.
    """

    before: Mapping[int, float]
    after: Mapping[int, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        after = None if self.after is None else {str(label): said(chance) for label, chance in self.after.items()}
        return {
            "before": {str(label): said(chance) for label, chance in self.before.items()},
            "after": after,
            "meaning": MEANING,
        }


def likely(chances: Mapping[int, float], least: float = 0.005) -> dict[int, float]:
    """Classes whose probability is at least `least`, the likeliest first; ties by number."""
    ranked = sorted(chances.items(), key=lambda one: (-one[1], one[0]))
    return {label: chance for label, chance in ranked if chance >= least}
