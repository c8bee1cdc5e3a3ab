"""Accounts as claims about many questions: every shipped mechanism and broken accounts before a sequential test."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import log
from statistics import median
from typing import final

import numpy as np

from privcfs.gate.ledger.memory import PLENTY, MemoryLedger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs_lab.audit import twins
from privcfs_lab.audit.blackbox import clopper_pearson
from privcfs_lab.audit.depth import FULL, QUICK, Depth
from privcfs_lab.audit.distinguish import distinguish
from privcfs_lab.audit.hostile import HostileWorld
from privcfs_lab.audit.transcripts import ERROR, Plan, Verdict, bet
from privcfs_lab.audit.trial import POWER, each
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.study import Study

WORLD = HostileWorld(4, 4)
QUESTIONS, PRICE = 8, "1"
ROUNDS = {QUICK.name: 150, FULL.name: 300}
TRIALS = {QUICK.name: 1, FULL.name: 10}
HALF_IN_FRONT = SubsetSelection(Fraction(1, 2))


@final
@dataclass(frozen=True, slots=True)
class Case:
    """One way to sell answers: how they are drawn, how they are booked, and how often one id is used."""

    kind: str
    mechanism: Mechanism
    ledger: Callable[..., MemoryLedger] = MemoryLedger
    times: int = 1
    draws: int = 1  # for each id
    books: Fraction = Fraction(1)  # the part of each price that is stated

    def vault(self, secret: bool) -> Vault:
        """A vault for the graph with the secret edge, or for the one without."""
        graph = WORLD.graph(*(() if secret else (WORLD.secret,)))
        return Vault(
            graph, WORLD.context, ledger=self.ledger(PLENTY), method=Method(WORLD.rule, mechanism=self.mechanism)
        )

    def exact(self) -> float:
        """The largest loss between the two graphs, as a multiple of what the ledger states: the same for each id."""
        method = Method(WORLD.rule, mechanism=self.mechanism)
        laws = [
            inspect(WORLD.graph(*missing), WORLD.context, WORLD.target, method).probabilities(PRICE)
            for missing in ((), (WORLD.secret,))
        ]
        return self.draws * log(distinguish(*laws).ratio) / float(Fraction(PRICE) * self.books)


CASES: Mapping[str, Case] = {
    **{name: Case("shipped", mechanism) for name, mechanism in MECHANISMS.items()},
    "subset-selection, half in front": Case("shipped", HALF_IN_FRONT),
    "subset-selection, half in front, every id used twice": Case("shipped", HALF_IN_FRONT, times=2),
    "books half of each price": Case("broken twin", HALF_IN_FRONT, twins.BooksHalf, books=Fraction(1, 2)),
    "draws at twice the price": Case("broken twin", twins.TwicePriced()),
    "draws an id again for nothing": Case("broken twin", HALF_IN_FRONT, twins.FreeRetries, times=2, draws=2),
}
COLUMNS = (
    Column("who"),
    Column("kind"),
    Column("questions, at most", "d"),
    Column("price of one"),
    Column("stated for a transcript", ".2f"),
    Column("rounds", "d"),
    Column("refuted"),
    Column("rounds until then", ".0f"),
    Column("proven, times stated", ".2f"),
    Column("exact, times stated", ".2f"),
    Column("largest wealth", ".2f"),
    Column("within"),
)


def page(study: Study, depth: Depth = FULL) -> Page:
    """Every case, as often as the depth says."""
    trials = TRIALS[depth.name]
    tasks = [(name, number, ROUNDS[depth.name]) for name in CASES for number in range(trials)]
    verdicts = each(_trial, tasks, study.progress, study.workers)
    rows = [_row(name, verdicts[at * trials : (at + 1) * trials]) for at, name in enumerate(CASES)]
    about = (
        "Each round a fair coin decides whether the vault with the secret edge or the one without is asked, at most "
        f"{QUESTIONS} questions at {PRICE}. The auditor sees the answers and what the ledger charged for them, learns "
        "from earlier rounds alone how often each answer is given on either graph, stops asking when what she heard "
        "says clearly more than is stated so far, and bets on the coin at the odds that the stated account allows: "
        "given any transcript, the likelier graph is the right one with probability at most e^epsilon / (1 + "
        f"e^epsilon). An account is refuted when the wealth has grown {1 / ERROR:.0f} times; an account that is right "
        f"is refuted with probability at most {ERROR:.0%}, at whatever moment one stops and whatever is asked. "
        "*Proven* is the largest multiple of the stated account that is refuted in the same way, in the middle of all "
        "trials; *exact* is the largest loss between the two graphs over what is stated. One edge moves every score. "
        "A shipped row holds if it is not refuted more often than the test may err; a twin must be refuted in at least "
        f"{POWER:.0%} of the trials. A public guess is the same on both graphs, so nobody can bet on it."
    )
    return Page("Sequential test of accounts", about, COLUMNS, rows)


def _trial(name: str, number: int, rounds: int) -> Verdict:
    """One run of bets; trials differ by coins and answers."""
    case = CASES[name]
    plan = Plan(WORLD.target, QUESTIONS, PRICE, case.times)
    return bet(partial(Case.vault, case), plan, rounds, np.random.default_rng([number, *name.encode()]))


def _row(name: str, verdicts: list[Verdict]) -> list[Value]:
    case, tried = CASES[name], len(verdicts)
    refuted = [one.refuted_after for one in verdicts if one.refuted_after is not None]
    if case.kind == "shipped":
        rate = float(clopper_pearson(np.array([len(refuted)]), tried, ERROR)[0][0])
        within = rate <= ERROR
    else:
        within = len(refuted) >= POWER * tried
    return [
        *(name, case.kind, QUESTIONS, PRICE, median(one.account for one in verdicts), verdicts[0].rounds),
        *(f"{len(refuted)} of {tried}", median(refuted) if refuted else None),
        *(median(one.proven for one in verdicts), case.exact(), median(one.wealth for one in verdicts)),
        "yes" if within else "no",
    ]
