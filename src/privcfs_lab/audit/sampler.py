"""The law of a draw itself, not of the formula beside it: how many of all random numbers lead to each candidate.

A sampler is run on chosen numbers, and the border between two answers is found by bisection: so the count of numbers
for each answer, and with it the probability, is a whole-number fact.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.decay import SCALE_BITS, SPARE_BITS, decay
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.permute_and_flip import WORD_BITS, PermuteAndFlip
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores

TOLERANCE = Fraction(1, 2 ** (SPARE_BITS - 1))  # relative: what mapping bits to a total that is no power of two costs
TAIL = np.uint64(2**64 - 1)  # a word that is no head


@final
class Scripted(Randomness):
    """Plays given numbers: by how many bits are asked for, otherwise `other`, -1 being the largest."""

    def __init__(
        self, other: int, numbers: Mapping[int, int] | None = None, words: Mapping[int, int] | None = None
    ) -> None:
        self._other, self._numbers, self._words = other, numbers or {}, words or {}
        self.asked: list[int] = []

    def integer(self, bits: int) -> int:
        self.asked.append(bits)
        return self._numbers.get(bits, self._other) % (1 << bits)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Tails, but for the words at given positions."""
        words: NDArray[np.uint64] = np.full(count, TAIL)
        for position, word in self._words.items():
            words[position] = word
        return words


def deviation(mechanism: Mechanism, scores: Scores, epsilon: Fraction) -> Fraction:
    """How far, relatively, real probabilities are from those that the mechanism states."""
    if isinstance(mechanism, PermuteAndFlip):
        return max(_coin_deviation(mechanism, scores, epsilon), _choice_deviation(mechanism, scores, epsilon))
    stated = mechanism.exact_probabilities(scores, epsilon)
    return max(abs(real / law - 1) for real, law in zip(drawn_law(mechanism, scores, epsilon), stated, strict=True))


def drawn_law(mechanism: Mechanism, scores: Scores, epsilon: Fraction) -> list[Fraction]:
    """The probability with which each candidate is really drawn, by a sampler that asks for one number."""

    def drawn(number: int) -> int:
        return mechanism.draw(scores, epsilon, Scripted(number))

    probe = Scripted(0)
    mechanism.draw(scores, epsilon, probe)
    (bits,) = probe.asked
    shares = _shares(drawn, bits)
    return [shares.get(position, Fraction(0)) for position in range(len(scores.unseal()))]


def _shares(drawn: Callable[[int], int], bits: int) -> dict[int, Fraction]:
    """The share of all numbers that lead to each answer; an answer's numbers are taken to follow one another."""
    shares: dict[int, Fraction] = {}
    start = 0
    while start < 1 << bits:
        here = drawn(start)
        end = _border(lambda number, here=here: drawn(number) == here, start, 1 << bits)  # type: ignore[misc]
        assert all(drawn(start + (end - 1 - start) * step // 7) == here for step in range(8))
        shares[here] = shares.get(here, Fraction(0)) + Fraction(end - start, 1 << bits)
        start = end
    return shares


def _coin_deviation(mechanism: PermuteAndFlip, scores: Scores, epsilon: Fraction) -> Fraction:
    """Permute-and-flip chooses evenly among the heads of coins: each coin's chance, where one candidate is best."""
    values, best = scores.unseal(), int(scores.unseal().max())
    step = Fraction(decay(epsilon, scores.grid.span), 1 << SCALE_BITS)
    worst = Fraction(0)
    for position in np.flatnonzero(values < best).tolist():
        power = best - int(values[position])
        chance = _coin(mechanism, scores, epsilon, position, SCALE_BITS * power)
        worst = max(worst, abs(chance / step**power - 1))
    return worst


def _choice_deviation(mechanism: Mechanism, scores: Scores, epsilon: Fraction) -> Fraction:
    """The choice among the heads, for every set of heads: each must have the same share."""
    values = scores.unseal()
    others = np.flatnonzero(values < values.max()).tolist()
    worst = Fraction(0)
    for count in range(len(others) + 1):
        for heads in combinations(others, count):
            law = _choice_law(mechanism, scores, epsilon, dict.fromkeys(heads, 0))
            even = Fraction(1, len(law))
            tops = int((values == values.max()).sum())
            worst = max([worst, Fraction(abs(len(law) - count - tops)), *(abs(one / even - 1) for one in law.values())])
    return worst


def _choice_law(
    mechanism: Mechanism, scores: Scores, epsilon: Fraction, words: Mapping[int, int]
) -> dict[int, Fraction]:
    """How the last number that is asked for decides among given heads."""

    def drawn(number: int) -> int:
        return mechanism.draw(scores, epsilon, Scripted(number, words=words))

    probe = Scripted(0, words=words)
    mechanism.draw(scores, epsilon, probe)
    return _shares(drawn, probe.asked[-1])


def _coin(mechanism: Mechanism, scores: Scores, epsilon: Fraction, position: int, bits: int) -> Fraction:
    """Whether the coin shows heads is read off the choice between it and the best candidate, both ways."""
    tie = bits - WORD_BITS

    def heads(word: int, rest: int) -> bool:
        scripts = (Scripted(choice, {tie: rest}, {position: word}) for choice in (0, -1))
        return position in {mechanism.draw(scores, epsilon, script) for script in scripts}

    lead = _border(lambda word: heads(word, 0), 0, 1 << WORD_BITS) - 1
    rest = _border(lambda number: heads(lead, number), 0, 1 << tie)
    return Fraction((lead << tie) + rest, 1 << bits)


def _border(same: Callable[[int], bool], start: int, end: int) -> int:
    """The first number after `start` for which `same` no longer holds, `end` if there is none."""
    low, high = start, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(middle) else (low, middle)
    return high
