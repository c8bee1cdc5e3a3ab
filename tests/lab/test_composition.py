"""The adaptive analyst: within the books, better with more questions, as good as real answers of a vault allow."""

from math import tanh

import numpy as np
import pytest

from privcfs import Method
from privcfs_lab.audit.composition import Composed, Question, accounted, plans, play
from privcfs_lab.audit.distinguish import distinguish
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF
from privcfs_lab.audit.twins import Overconfident
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.simulate import Simulation

RULE = HALF_AGAINST_HALF.rule


def hostile(epsilon: str, method: Method) -> Question:
    world = HALF_AGAINST_HALF
    found = [inspect(world.graph(*missing), world.context, world.target, method) for missing in ((), (world.secret,))]
    return Question.of(*(one.probabilities(epsilon) for one in found))


def test_one_question_has_the_exact_advantage() -> None:
    question = hostile("1", Method(RULE))
    exact = distinguish(question.first, question.second).advantage
    measured, error, _ = play([question], 1, 20_000, np.random.default_rng(0))
    assert abs(measured - exact) < 4 * error


def test_more_questions_help_and_stay_within_the_books() -> None:
    gains = []
    for questions in (1, 10, 100):
        gain, error, _ = play([hostile("0.5", Method(RULE))], questions, 4000, np.random.default_rng(1))
        assert gain - 4 * error <= min(accounted(questions, 0.5).values())
        gains.append(gain)
    assert gains[0] < gains[1] < gains[2]


def test_an_overconfident_mechanism_breaks_the_books() -> None:
    gain, error, _ = play([hostile("1", Method(RULE, mechanism=Overconfident(4)))], 10, 4000, np.random.default_rng(2))
    assert gain - 4 * error > min(accounted(10, 1.0).values())


def test_the_analyst_prefers_the_better_question() -> None:
    same, telling = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    useless, useful = Question.of(same, same), Question.of(telling, telling[::-1])
    best, error, asked = play([useless, useful], 5, 4000, np.random.default_rng(3))
    alone, _, _ = play([useful], 5, 4000, np.random.default_rng(4))
    assert asked == 1
    assert abs(best - alone) < 5 * error


def test_a_vaults_real_answers_tell_as_much_as_the_laws_say() -> None:
    """Ten paid answers on each of two graphs, many times over: the same advantage as the simulated analyst."""
    world, question, rounds = HALF_AGAINST_HALF, hostile("1", Method(RULE)), 120
    up = {world.rule.propose(world.context, world.target)[position] for position in range(1, 1 + world.up)}
    down = {
        world.rule.propose(world.context, world.target)[position] for position in range(1 + world.up, 1 + world.leaves)
    }
    rates = []
    for missing in ((), (world.secret,)):
        vault = world.vault(*missing, build=lambda _: Method(RULE))
        said = 0.0
        for _ in range(rounds):
            drawn = [vault.release(world.target, "1").intervention for _ in range(10)]
            lead = sum(one in up for one in drawn) - sum(one in down for one in drawn)
            said += (lead > 0) + (lead == 0) / 2
        assert vault.balance().spent == 10 * rounds
        rates.append(said / rounds)
    gain, _, _ = play([question], 10, 4000, np.random.default_rng(5))
    assert abs(rates[0] - rates[1] - gain) < 4 * np.sqrt(0.5 / rounds)


def test_the_books() -> None:
    assert accounted(1, 8.0) == {"prices add up": tanh(4), "zCDP": 1.0}
    assert accounted(100, 0.08)["zCDP"] == pytest.approx(0.2)
    assert {questions for questions, _ in plans()} == {1, 10, 100}


def test_real_neighbours_stay_within_the_books() -> None:
    found = Composed("cora", "borderline").records(Simulation("cora", 0), 1)
    assert len(found) == len(plans())
    for row in found:
        assert row["advantage"] - 4 * row["error"] <= min(
            accounted(int(row["questions"]), float(row["price"])).values()
        )
