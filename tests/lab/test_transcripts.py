"""Bets against accounts: an account that is right is rarely refuted, one that states half of the loss is."""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from privcfs_lab.audit.transcripts import ERROR, LEARNING, Plan, Verdict, bet
from privcfs_lab.experiments.audit_transcripts import CASES, PRICE, QUESTIONS, WORLD, _row

HONEST = "subset-selection, half in front"


class Coin:
    """Stands for a vault: each answer is the secret bit with odds e^loss, and the account states another price."""

    def __init__(self, secret: bool, loss: float, stated: str, rng: np.random.Generator) -> None:
        self._secret, self._right, self._stated = secret, 1 / (1 + np.exp(-loss)), Fraction(stated)
        self._rng = rng
        self._spent = Fraction(0)

    def release(self, *_: object, **__: object) -> Any:
        self._spent += self._stated
        return SimpleNamespace(intervention=self._secret == bool(self._rng.random() < self._right))

    def balance(self) -> Any:
        return SimpleNamespace(spent=self._spent)


def played(loss: float, stated: str, questions: int, rounds: int, seed: int) -> Verdict:
    rng = np.random.default_rng(seed)
    return bet(lambda secret: Coin(secret, loss, stated, rng), Plan(0, questions, "1"), rounds, rng)  # type: ignore[arg-type, return-value]


def test_a_right_account_is_rarely_refuted() -> None:
    """The exact worst case: every answer loses all that is stated for it."""
    found = [played(0.7, "0.7", 3, 300, seed) for seed in range(60)]
    assert sum(one.refuted for one in found) <= 8  # at most 5 % are expected; more than 8 of 60 has a chance of 0.8 %
    assert np.mean([one.proven <= 1 for one in found]) >= 1 - ERROR - 0.09


def test_an_account_of_half_the_loss_is_refuted() -> None:
    found = [played(1.0, "0.5", 3, 600, seed) for seed in range(20)]
    assert sum(one.refuted for one in found) >= 19
    assert all(1 <= one.proven < 2 for one in found if one.refuted)


def test_nothing_is_bet_while_answers_are_learned_or_say_nothing() -> None:
    assert played(5.0, "0.1", 2, LEARNING, 0).wealth == 1
    silent = played(0.0, "3", 2, 300, 0)
    assert silent.wealth == 1
    assert silent.proven < 1
    assert silent.account == 6


@pytest.mark.parametrize("name", [HONEST, f"{HONEST}, every id used twice"])
def test_the_ledger_of_a_vault_stands(name: str) -> None:
    plan = Plan(WORLD.target, QUESTIONS, PRICE, CASES[name].times)
    found = bet(CASES[name].vault, plan, 160, np.random.default_rng(0))
    assert not found.refuted
    assert found.account <= QUESTIONS * float(PRICE)
    assert CASES[name].exact() == pytest.approx(1, abs=1e-6)
    assert _row(name, [found])[-1] == "yes"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.kind == "broken twin"])
def test_a_vault_that_states_half_of_what_it_loses_is_refuted(name: str) -> None:
    case = CASES[name]
    found = bet(case.vault, Plan(WORLD.target, QUESTIONS, PRICE, case.times), 1000, np.random.default_rng(1))
    assert found.refuted
    assert case.exact() == pytest.approx(2, abs=1e-6)
    assert _row(name, [found])[-1] == "yes"


def test_transcripts_count_an_answer_that_is_given_again_once() -> None:
    vault = CASES["exponential"].vault(True)
    heard: Sequence[Hashable] = Plan(WORLD.target, 3, PRICE, times=2).ask(vault, "one id")
    assert len(heard) == 1
    assert vault.balance().spent == 1
