"""A sequential test of an account: bets on which of two graphs a vault holds, each after a transcript of questions.

Claim: an account that is right is refuted with probability at most `error`, whenever the auditor stops, and whatever
    she asks and bets.
Why: a fair coin decides which graph is asked. If a transcript is epsilon-DP with the epsilon that the ledger states for
    it, then, given any transcript, either graph is the one with probability at most e^epsilon / (1 + e^epsilon). A bet
    at these odds gains nothing in expectation, so the wealth is a supermartingale that starts at 1, and it ever
    reaches 1 / error with probability at most error (Ville's inequality).
Check: tests/lab/test_transcripts.py::test_a_right_account_is_rarely_refuted
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, log
from typing import final

import numpy as np

from privcfs.gate.vault import Vault

ERROR = 0.05
LEARNING = 40  # rounds without a bet, in which everything is asked
LEAD = 0.8  # by how much what is learned must pass what is stated for a round to end early
CAUTION = 0.5  # of the stake that would be best if what was learned were exact
# Accounts that are tested, as multiples of what the ledger states: the largest refuted one is proven to be too small.
MULTIPLES = tuple(Fraction(number, 10) for number in range(1, 31))
Make = Callable[[bool], Vault]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked in a round: at most so many questions at this price, each with an id that is used `times` times."""

    target: int
    questions: int
    price: str
    times: int = 1

    def ask(self, vault: Vault, name: str) -> list[Hashable]:
        """The answers to one question; an id that gives the same answer again has said one thing."""
        answers = [vault.release(self.target, self.price, request_id=name).intervention for _ in range(self.times)]
        return list(dict.fromkeys(answers))


@final
@dataclass(slots=True)
class Learned:
    """How often each answer was given on either graph, and what a transcript says by that."""

    counts: tuple[Counter[Hashable], Counter[Hashable]] = field(default_factory=lambda: (Counter(), Counter()))

    def add(self, truth: bool, heard: Sequence[Hashable]) -> None:
        """After a round, when the coin is shown."""
        self.counts[truth].update(heard)

    def odds(self, heard: Sequence[Hashable]) -> float:
        """The logarithm of the odds for the second graph, answer by answer."""
        kinds = len(set(self.counts[0]) | set(self.counts[1])) + 1
        totals = [one.total() + kinds / 2 for one in self.counts]
        return sum(
            log((self.counts[1][answer] + 0.5) / totals[1]) - log((self.counts[0][answer] + 0.5) / totals[0])
            for answer in heard
        )


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What the bets came to."""

    rounds: int
    account: float  # what the ledger stated for one transcript, on average
    wealth: float  # the most that there ever was, against the account as it is stated
    refuted_after: int | None  # rounds
    proven: float  # with this confidence, more is lost than so many times what is stated

    @property
    def refuted(self) -> bool:
        """Whether the account is too small."""
        return self.refuted_after is not None


def bet(make: Make, plan: Plan, rounds: int, rng: np.random.Generator, error: float = ERROR) -> Verdict:
    """Plays so many rounds against two vaults, of which the coin decides which is asked.

    The auditor stops asking as soon as what she has heard says clearly more than the ledger states so far.
    """
    vaults, learned = (make(False), make(True)), Learned()
    wealth = dict.fromkeys(MULTIPLES, 1.0)
    highest, after, stated = dict(wealth), None, Fraction(0)
    for number in range(rounds):
        truth = bool(rng.random() < 1 / 2)
        vault = vaults[truth]
        before = vault.balance().spent
        heard: list[Hashable] = []
        account = Fraction(0)
        for question in range(plan.questions):
            heard += plan.ask(vault, f"round {number}, question {question}")
            account = vault.balance().spent - before
            if number >= LEARNING and abs(learned.odds(heard)) > float(account) + LEAD:
                break
        stated += account
        if number >= LEARNING:
            guess, right = _guess(learned.odds(heard))
            for multiple in MULTIPLES:
                wealth[multiple] *= _factor(right, float(multiple * account), guess == truth)
                highest[multiple] = max(highest[multiple], wealth[multiple])
            if after is None and highest[Fraction(1)] >= 1 / error:
                after = number + 1
        learned.add(truth, heard)
    mean = float(stated) / rounds
    proven = max((float(one) for one in MULTIPLES if highest[one] >= 1 / error), default=0.0)
    return Verdict(rounds, mean, highest[Fraction(1)], after, proven)


def _guess(odds: float) -> tuple[bool, float]:
    """The likelier graph, and how likely it seems to be."""
    return odds > 0, 1 / (1 + exp(-min(abs(odds), 30.0)))


def _factor(seems: float, account: float, won: bool) -> float:
    """By what a bet at the odds of this account changes the wealth; no bet where it promises nothing."""
    allowed = 1 / (1 + exp(-account))
    if seems <= allowed:
        return 1.0
    stake = CAUTION * (seems - allowed) / (allowed * (1 - allowed))
    return 1 + stake * (won - allowed)
