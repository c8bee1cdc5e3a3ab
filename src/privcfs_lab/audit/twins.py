"""Deliberately broken parts. Each looks right, and the check named beside it must reject it. Never use one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from math import tanh
from time import sleep
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError
from privcfs.gate.accounting import Limit
from privcfs.gate.guidance import WHOLE, Bools, Guide, Prepared
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.decay import bits_for, exponential_above, spread
from privcfs.gate.mechanisms.exponential import Exponential, level_weights
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.randomness import Randomness
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.beliefs.plan import short_list
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext
from privcfs.public.grid import Grid

MOST_TRIED = 9  # the most candidates on which a vault tries its model when it is opened


@final
@dataclass(frozen=True, slots=True)
class Overconfident(Mechanism):
    """Draws as if scores moved by `factor` times less than they do.

    Factor 2, half the sensitivity, is rejected by hostile scores and by the black-box audit; among random small graphs
    only some reject it. A large factor is rejected by every comparison of two graphs.
    """

    factor: int = 2
    honest: Exponential = Exponential()
    name: ClassVar[str] = "overconfident"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        return self.honest.draw(scores, self.factor * epsilon, randomness)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self.honest.probabilities(scores, self.factor * epsilon)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        return self.honest.exact_probabilities(scores, self.factor * epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return self.honest.advantage(epsilon)


@final
@dataclass(frozen=True, slots=True)
class TwicePriced(Mechanism):
    """Draws at twice the price that it states. Rejected by bets on transcripts."""

    honest: SubsetSelection = SubsetSelection(Fraction(1, 2))
    name: ClassVar[str] = "twice priced"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        return self.honest.draw(scores, 2 * epsilon, randomness)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self.honest.probabilities(scores, 2 * epsilon)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        return self.honest.exact_probabilities(scores, 2 * epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return self.honest.advantage(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Misdrawn(Mechanism):
    """States the honest law and draws by another, with half the sensitivity. Rejected by the black-box audit."""

    honest: Exponential = Exponential()
    name: ClassVar[str] = "misdrawn"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        return self.honest.draw(scores, 2 * epsilon, randomness)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self.honest.probabilities(scores, epsilon)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        return self.honest.exact_probabilities(scores, epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return self.honest.advantage(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Understated(Utility):
    """Claims half the range that its scores have. Rejected by measuring how far scores move."""

    honest: Gated = Gated()

    def grid(self, caps: Caps) -> Grid:
        grid = self.honest.grid(caps)
        return replace(grid, span=grid.span // 2)

    def score(self, outcomes: Outcomes) -> Scores:
        return Scores(self.honest.score(outcomes).unseal(), self.grid(outcomes.candidates.caps))

    def failed(self, candidates: Candidates) -> Scores:
        return Scores(self.honest.failed(candidates).unseal(), self.grid(candidates.caps))


@dataclass(frozen=True, slots=True, eq=False)
class PeekingRule(CandidateRule):
    """A rule that was given what no rule may see."""

    graph: PrivateGraph
    honest: Product = Product()

    @property
    def caps(self) -> Caps:
        return self.honest.caps


@final
@dataclass(frozen=True, slots=True, eq=False)
class FilteredSupport(PeekingRule):
    """Leaves out pair sets and feature sets that never flip on the private graph. Rejected by comparing supports."""

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.honest.propose(context, target)
        flips = evaluate(self.graph, context, proposed, UNLIMITED).flips().reshape(len(proposed.pair_sets), -1)
        return replace(
            proposed,
            pair_sets=_useful(proposed.pair_sets, np.atleast_1d(flips.any(axis=1))),
            feature_sets=_useful(proposed.feature_sets, np.atleast_1d(flips.any(axis=0))),
        )


def _useful(sets: tuple[Choice, ...], flip: NDArray[np.bool_]) -> tuple[Choice, ...]:
    return tuple(chosen for chosen, keep in zip(sets, flip, strict=True) if keep or not chosen)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivateOrder(PeekingRule):
    """Lists real edges before absent ones. Rejected by comparing supports in order."""

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.honest.propose(context, target)
        ordered = sorted(proposed.deletions, key=lambda pair: not self.graph.has_edges(np.array([pair]))[0])
        return replace(proposed, deletions=tuple(ordered))


@final
class SeededRandomness(Randomness):
    """Starts from a known seed. Rejected by the restart test."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def integer(self, bits: int) -> int:
        return int.from_bytes(self._generator.bytes((bits + 7) // 8), "big") >> (-bits % 8)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, 2**64, count, np.uint64)


class _Weighted(Mechanism):
    """Draws by whole-number masses, exactly: what is broken in the twins below is the masses."""

    @abstractmethod
    def masses(self, scores: Scores, epsilon: Fraction) -> list[int]:
        """How much each candidate weighs."""

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        masses = self.masses(scores, epsilon)
        bits = bits_for(sum(masses))
        left = spread(bits, randomness.integer(bits), sum(masses))
        return next(position for position, top in enumerate(accumulate(masses)) if left < top)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return np.array([float(share) for share in self.exact_probabilities(scores, epsilon)])

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        masses = self.masses(scores, epsilon)
        return [Fraction(mass, sum(masses)) for mass in masses]

    def advantage(self, epsilon: Fraction) -> float:
        return tanh(epsilon / 2)


@final
@dataclass(frozen=True, slots=True)
class PeekingMeasure(_Weighted):
    """The exponential mechanism with a base measure that knows which pairs are edges. Rejected by the black-box audit.

    A base measure may follow public data alone; this one gives candidates without a missing pair `favour` times more.
    """

    measure: tuple[int, ...] = field(repr=False)  # a vault's public digest covers what is shown
    name: ClassVar[str] = "peeking measure"

    @classmethod
    def of(cls, graph: PrivateGraph, candidates: Candidates, favour: int = 1000) -> "PeekingMeasure":
        """The measure for one list on one graph."""
        real = (graph.has_edges(np.array(one.delete, np.int64).reshape(-1, 2)).all() for one in candidates)
        return cls(tuple(favour if kept else 1 for kept in real))

    def masses(self, scores: Scores, epsilon: Fraction) -> list[int]:
        weights = dict(zip(scores.grid.levels, level_weights(scores.grid, epsilon), strict=True))
        return [base * weights[int(value)] for base, value in zip(self.measure, scores.unseal(), strict=True)]


@final
@dataclass(frozen=True, slots=True)
class MeasuredSubset(_Weighted):
    """Subset selection, private by itself, multiplied by a base measure, public by itself. Rejected by hostile scores.

    The best candidate weighs e**epsilon, the others 1, and each is multiplied by its measure: then the sum of all
    weights moves with the graph, which neither part alone would allow.
    """

    heavy: int = 100  # the measure of one candidate; the others have 1
    at: int = 0  # which candidate
    name: ClassVar[str] = "measured subset"

    def masses(self, scores: Scores, epsilon: Fraction) -> list[int]:
        unit = 1 << 64
        top = int(unit / exponential_above(epsilon))
        values = scores.unseal()
        best = int(values.argmax())
        return [
            (self.heavy if position == self.at else 1) * (top if position == best else unit)
            for position in range(len(values))
        ]


@final
@dataclass(frozen=True, slots=True)
class PeekingShare(_Weighted):
    """Subset selection with just as many in front as are good on the private graph. Rejected by hostile scores.

    How many to favour may be guessed from public data; counting them is a look at the graph.
    """

    name: ClassVar[str] = "peeking share"

    def masses(self, scores: Scores, epsilon: Fraction) -> list[int]:
        unit = 1 << 64
        top = int(unit / exponential_above(epsilon))
        values = scores.unseal()
        return [top if value == values.max() else unit for value in values]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PeekingGuide(Guide):
    """Rehearses on the private graph itself instead of an imagined one. Rejected by the exact ratio on two graphs."""

    graph: PrivateGraph = field(repr=False)  # a vault's public digest covers what is shown
    name: ClassVar[str] = "peeking guide"

    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,
        epsilon: Fraction,
        allowed: Bools | None = None,  # noqa: ARG002
    ) -> Prepared:
        valid = utility.valid(evaluate(self.graph, context, candidates, UNLIMITED)).astype(np.float32)
        one, every = np.ones(1, np.float32), np.ones(len(valid), np.float32)
        chosen, _ = short_list(valid[None], every, one, float(np.exp(float(epsilon))))
        base = np.ones(len(valid), np.int64)
        base[chosen] += WHOLE
        return Prepared(SubsetSelection(Fraction(1, len(chosen)), tuple(base.tolist())))


@final
@dataclass(frozen=True, slots=True)
class Float32(Mechanism):
    """The exponential mechanism as it is usually written, in float32. Rejected by the exact law of its draws."""

    name: ClassVar[str] = "float32"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        tops = np.cumsum(self._softmax(scores, epsilon), dtype=np.float32)
        point = np.float32(randomness.integer(24)) / np.float32(1 << 24)
        return min(int(np.searchsorted(tops, point, "right")), len(tops) - 1)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self._softmax(scores, epsilon).astype(np.float64)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        """What it believes its law to be."""
        return Exponential().exact_probabilities(scores, epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return tanh(epsilon / 4)

    def _softmax(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float32]:
        scaled = scores.unseal().astype(np.float32) * np.float32(epsilon / (2 * scores.grid.span))
        weights = np.exp(scaled - scaled.max())
        shares: NDArray[np.float32] = weights / weights.sum(dtype=np.float32)
        return shares


@final
@dataclass(frozen=True, slots=True, eq=False)
class LoudRule(PeekingRule):
    """Refuses a target whose last snapshot pair is not an edge. Rejected by the differential run."""

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.honest.propose(context, target)
        if proposed.deletions and not self.graph.has_edges(np.array(proposed.deletions[-1:]))[0]:
            raise InputError(f"pair {proposed.deletions[-1]} cannot be deleted; choose another target.")
        return proposed


@dataclass(frozen=True, slots=True)
class Wrapped(Utility):
    """The gated utility, to be broken or watched where it scores."""

    honest: Gated = field(default=Gated(), kw_only=True)

    def grid(self, caps: Caps) -> Grid:
        return self.honest.grid(caps)

    def score(self, outcomes: Outcomes) -> Scores:
        return self.honest.score(outcomes)

    def failed(self, candidates: Candidates) -> Scores:
        return self.honest.failed(candidates)


@final
@dataclass(frozen=True, slots=True)
class FailingUtility(Wrapped):
    """Ends the process where an edge is missing, instead of scoring. Rejected by the differential run.

    Not when a vault is opened and tries its model on a few candidates: that would be the owner's to see.
    """

    edge: bool = field(repr=False)

    def score(self, outcomes: Outcomes) -> Scores:
        if not self.edge and len(outcomes.candidates) > MOST_TRIED:
            raise Fatal
        return self.honest.score(outcomes)


@final
@dataclass(frozen=True, slots=True)
class Dawdling(Wrapped):
    """Takes 15 milliseconds longer on one graph. Rejected by the time of its answers."""

    dawdles: bool = field(repr=False)

    def score(self, outcomes: Outcomes) -> Scores:
        if self.dawdles:
            sleep(0.015)
        return self.honest.score(outcomes)


@final
class Fatal(BaseException):
    """What no vault can catch."""


@final
class Refunds(MemoryLedger):
    """Gives the price back where no answer was stored. Rejected by the ledger replay."""

    def spent(self, analyst: str | None = None) -> Fraction:
        return super().spent(analyst) - self.held(analyst)


@final
class BooksHalf(MemoryLedger):
    """States half of what is paid. Rejected by bets on transcripts."""

    def spent(self, analyst: str | None = None) -> Fraction:
        return super().spent(analyst) / 2


@final
class ForgetsUnfinished(MemoryLedger):
    """Shows unfinished prices and does not count them against the limit. Rejected by the ledger replay."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        known, self._limit = self._limit, Limit(self._limit.total + self.held(), None)
        try:
            return super().charge_all(requests)
        finally:
            self._limit = known


@final
class FreeRetries(MemoryLedger):
    """Lets a request be drawn again without paying again. Rejected by the ledger replay."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        super().charge_all(requests)
        return [None] * len(requests)

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        super().finish_all(answers)
        return [release for _, release in answers]


@final
class ChargesLater(MemoryLedger):
    """Reads first, pays when the answer is there. Rejected by the ledger replay."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return [self.released(one.analyst, one.request_id) for one in requests]

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        super().charge_all([request for request, _ in answers])
        return super().finish_all(answers)
