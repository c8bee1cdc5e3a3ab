"""What every question must keep to: public but for its scores, and answers that fit the room that was paid for.

Every class of question in `privcfs.gate.questions` is tried. It is made by the names of its parameters; one that takes
something that no question took before needs a line in `ARGUMENTS`.
"""

import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, final

import numpy as np
import pytest

from privcfs import Method
from privcfs.gate import questions
from privcfs.gate.contracts import Pure
from privcfs.gate.method import keeping_schema
from privcfs.gate.questions.advice import AdviceQuestion, Personal
from privcfs.gate.questions.confirm import ConfirmQuestion
from privcfs.gate.questions.question import Asker, PublicSide, Question
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.private.allowance import UNLIMITED
from privcfs.private.reader import Reader
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.interventions import Intervention
from tests.schemas import schema_world
from tests.worlds import World, random_world


def personal(side: PublicSide) -> Personal:
    """One person's own edges, which her advice is planned with, whatever graph it is then scored on."""
    graph = random_world(4).graph
    return Personal(side, 3, Reader(graph, side.context, UNLIMITED, (3,)))


Make = Callable[[PublicSide, Asker], Question]
ARGUMENTS: Mapping[str, Callable[[PublicSide], object]] = {
    "side": lambda side: side,
    "target": lambda _: 3,
    "targets": lambda _: [3, 5, 6],
    "intervention": lambda _: Intervention(add=((0, 3),), mask=(1,)),
    "epsilon": lambda _: "1",
    "personal": personal,
}


def make_of(question: type[Question]) -> Make:
    """How a question is asked: with an argument for each parameter that has no default."""
    parameters = list(inspect.signature(question).parameters.values())
    needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    unknown = set(needed) - {"asker", *ARGUMENTS}
    assert not unknown, f"{question.__name__} takes {unknown}; say in ARGUMENTS with what it is tried."

    def make(side: PublicSide, asker: Asker) -> Question:
        made: dict[str, Any] = {name: asker if name == "asker" else ARGUMENTS[name](side) for name in needed}
        return question(**made)

    return make


def all_questions() -> list[type[Question]]:
    """Every class of question, found in the folder itself."""
    modules = [import_module(f"{questions.__name__}.{one.name}") for one in iter_modules(questions.__path__)]
    found = {one for module in modules for one in vars(module).values() if inspect.isclass(one)}
    subclasses = [one for one in found if issubclass(one, Question) and not inspect.isabstract(one)]
    return sorted(subclasses, key=lambda one: one.__name__)


each_question = pytest.mark.parametrize(
    "make", [make_of(one) for one in all_questions()], ids=[one.__name__ for one in all_questions()]
)


def side_of(world: World) -> PublicSide:
    return PublicSide(world.context, Method(), Pure(), Fraction(1, 100))


def reading(world: World, question: Question) -> Reader:
    return Reader(world.graph, world.context, UNLIMITED, question.nodes)


def test_the_questions_of_the_vault_are_tried_here() -> None:
    names = [one.__name__ for one in all_questions()]
    assert set(names) >= {"AdviceQuestion", "ConfirmQuestion", "ReleaseQuestion", "SelectQuestion"}


def test_a_question_that_nobody_knows_how_to_ask_is_noticed() -> None:
    @final
    class Strange(ReleaseQuestion):  # type: ignore[misc]  # a twin: it cannot be asked with what is known here
        def __init__(self, side: PublicSide, asker: Asker, moon: int) -> None:
            super().__init__(side, asker, moon, "1")

    with pytest.raises(AssertionError, match=r"Strange takes \{'moon'\}; say in ARGUMENTS with what it is tried"):
        make_of(Strange)


@each_question
def test_scores_of_every_graph_and_of_a_failure_have_one_shape(make: Make) -> None:
    world = random_world(4)
    question = make(side_of(world), Asker())
    shape = question.fallback.unseal().shape
    for other in (world, World(world.context, random_world(9).pairs), World(world.context, world.pairs[:0])):
        scores = question.score(reading(other, question))
        assert scores.unseal().shape == shape
        assert scores.grid == question.fallback.grid


@each_question
def test_every_position_has_an_answer_that_fits_the_room(make: Make) -> None:
    question = make(side_of(random_world(4)), Asker("ann", "an id"))
    answers = [question.answer(position) for position in range(len(question.fallback.unseal()))]
    assert len(set(answers)) == len(answers)
    assert max(map(len, answers)) <= question.priced.room
    assert all('"an id"' in answer for answer in answers)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [ReleaseQuestion, AdviceQuestion, ConfirmQuestion])
def test_answers_that_change_features_fit_the_room_too(kind: type[Question], seed: int) -> None:
    world = schema_world(seed)
    method = keeping_schema(None if kind is AdviceQuestion else Method(Recourse()), world.context)
    side = PublicSide(world.context, method, Pure(), Fraction(1, 100))
    changed = next((one for one in Recourse().propose(world.context, 3) if one.change), Intervention())
    question: Question
    if kind is AdviceQuestion:
        own = Reader(world.graph, world.context, UNLIMITED, (3,))
        question = AdviceQuestion(Asker("ann", "an id"), Personal(side, 3, own), "1")
    elif kind is ConfirmQuestion:
        question = ConfirmQuestion(side, Asker("ann", "an id"), 3, changed, "1")
    else:
        question = ReleaseQuestion(side, Asker("ann", "an id"), 3, "1")
    answers = [question.answer(position) for position in range(len(question.fallback.unseal()))]
    assert len(set(answers)) == len(answers)
    assert max(map(len, answers)) <= question.priced.room
    assert any('"change":[' in answer for answer in answers)


def test_a_question_that_reserves_too_little_room_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcfs.gate.questions.release.longest_addition", lambda *_: 0)
    with pytest.raises(AssertionError):
        test_every_position_has_an_answer_that_fits_the_room(make_of(ReleaseQuestion))


@each_question
def test_the_price_is_known_before_anything_is_prepared_and_never_rises(make: Make) -> None:
    question = make(side_of(random_world(4)), Asker())
    assert question.request.counted >= question.priced.counted > 0
    assert question.request.terms == question.priced.terms
    assert question.request.room == 0


@each_question
def test_which_answers_are_possible_does_not_depend_on_the_scores(make: Make) -> None:
    world = random_world(4)
    question = make(side_of(world), Asker())
    laws = [
        np.asarray(question.mechanism.probabilities(scores, Fraction(1)))
        for scores in (question.fallback, question.score(reading(world, question)))
    ]
    for law in laws:
        assert law.shape == question.fallback.unseal().shape
        assert law.sum() == pytest.approx(1)
    assert ((laws[0] > 0) == (laws[1] > 0)).all()
