"""An auditor that knows nothing of the inside: it asks two vaults the same question many times.

Claim: if the release is epsilon-DP, the bound exceeds epsilon in at most 1 - confidence of all audits.
Why: an event is chosen on the first half of the draws. The second half is independent of that choice, so each count is
    binomial; both Clopper-Pearson limits hold together with the stated confidence, and then so does their ratio.
Check: tests/lab/test_blackbox.py::test_the_bound_is_rarely_above_the_truth
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from privcfs.gate.vault import Vault
from privcfs.public.epsilon import Price

CONFIDENCE = 0.95
Seen = Sequence[Hashable]
Ask = Callable[[], Hashable]
Counts = NDArray[np.int64] | NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """What the draws prove: epsilon is at least this, or it was an unlucky audit."""

    epsilon: float
    hits: int  # of the event on the side where it is likelier, out of `draws`
    misses: int  # of the event on the other side
    draws: int

    def convicts(self, claim: float) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > claim


def question(vault: Vault, target: int, epsilon: Price) -> Ask:
    """Everything that an analyst sees of it: the free list, in its order, and the release without its random id."""
    listed = hash(vault.propose(target))
    return lambda: (listed, replace(vault.release(target, epsilon), request_id=""))


def audit(first: Ask, second: Ask, draws: int, confidence: float = CONFIDENCE) -> Bound:
    """The lower bound from so many questions to each side."""
    return lower_bound([first() for _ in range(draws)], [second() for _ in range(draws)], confidence)


def lower_bound(first: Seen, second: Seen, confidence: float = CONFIDENCE) -> Bound:
    """The best event of the first halves, judged on the second halves; in whichever direction it leans."""
    half = min(len(first), len(second)) // 2
    found = [_best_event(a[:half], b[:half], confidence) for a, b in ((first, second), (second, first))]
    backward = found[1][0] > found[0][0]
    event = found[backward][1]
    one, other = (second, first) if backward else (first, second)
    hits, misses = (sum(item in event for item in side[half : 2 * half]) for side in (one, other))
    bound = float(_log_ratio(np.array([hits]), np.array([misses]), half, confidence)[0])
    return Bound(max(bound, 0.0), hits, misses, half)


def clopper_pearson(hits: Counts, draws: int, error: float) -> tuple[NDArray[np.float64], ...]:
    """Lower and upper limits, each wrong with probability `error` at most."""
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, beta.ppf(error, hits, draws - hits + 1), 0.0)
        high = np.where(hits < draws, beta.ppf(1 - error, hits + 1, draws - hits), 1.0)
    return low, high


def _best_event(first: Seen, second: Seen, confidence: float) -> tuple[float, frozenset[Hashable]]:
    """Answers in the order in which they speak for the first side; the best of the events "one of the first k".

    An answer that the second side did not give yet is counted there by half, or rare answers would join by luck.
    """
    here, there = Counter(first), Counter(second)
    order = sorted(here, key=lambda item: (here[item] + 0.5) / (there[item] + 0.5), reverse=True)
    hits = np.cumsum([here[item] for item in order])
    misses = np.minimum(np.cumsum([there[item] + 0.5 for item in order]), len(second))
    bounds = _log_ratio(hits, misses, len(first), confidence)
    best = int(bounds.argmax())
    return float(bounds[best]), frozenset(order[: best + 1])


def _log_ratio(hits: Counts, misses: Counts, draws: int, confidence: float) -> NDArray[np.float64]:
    error = (1 - confidence) / 2
    low, high = clopper_pearson(hits, draws, error)[0], clopper_pearson(misses, draws, error)[1]
    with np.errstate(divide="ignore"):
        bounds: NDArray[np.float64] = np.log(low) - np.log(high)
    return bounds


def most_provable(draws: int, confidence: float = CONFIDENCE) -> float:
    """What so many draws could prove at best: the event always on one side, never on the other."""
    return float(_log_ratio(np.array([draws // 2]), np.array([0]), draws // 2, confidence)[0])


def second_opinion(bound: Bound, confidence: float = CONFIDENCE) -> float:
    """The same counts judged by the package privacy-estimates (its Clopper-Pearson method)."""
    from privacy_estimates import AttackResults, compute_eps_lo

    counts = AttackResults(TP=bound.hits, FN=bound.draws - bound.hits, FP=bound.misses, TN=bound.draws - bound.misses)
    return float(compute_eps_lo(counts, 0.0, 1 - confidence, "beta"))
