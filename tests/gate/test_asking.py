"""A noisy yes or no, a private choice of whom to explain, and several suggestions: each paid, each within its price."""

from collections import Counter
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest

from privcfs import Intervention, Limit, Method, Vault
from privcfs.errors import BadEpsilon, BudgetExhausted, InputError, RequestConflict
from privcfs.gate.certificates import verify
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.method import going_beyond
from privcfs.gate.questions.confirm import YES_OR_NO, list_of_one, scores_of_verdict
from privcfs.gate.questions.question import Asker
from privcfs.gate.questions.release import Earlier, ReleaseQuestion
from privcfs.gate.questions.select import CLOSE_CALL
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from tests.laws import look
from tests.worlds import World, named_world, random_world

GUIDED = Method(SmallSets(), guide=Rehearsal(Worlds(4)))


def vault_of(world: World, method: Method = GUIDED) -> Vault:
    return Vault(world.graph, world.context, ledger=MemoryLedger(), method=method)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(8)], ids=str)
def test_a_verdict_is_randomised_response(epsilon: Fraction) -> None:
    yes, no = (YES_OR_NO.exact_probabilities(scores_of_verdict(flips), epsilon) for flips in (True, False))
    assert yes == no[::-1]
    assert below_bound(yes[0] / no[0], epsilon)
    assert abs(float(yes[0]) - 1 / (1 + exp(-epsilon))) < 1e-12


def test_a_verdict_is_mostly_true_at_a_high_price() -> None:
    world = random_world(5)
    found = look(world.graph, world.context, 0, GUIDED)
    assert found.flips.any()
    vault = vault_of(world)
    for flips in (True, False):
        one = found.candidates[int(np.flatnonzero(found.flips == flips)[-1])]
        answers = [vault.confirm(0, one, "12").flips for _ in range(20)]
        assert answers.count(flips) >= 19
    verdict = vault.confirm(0, one, "1", request_id="same")
    assert vault.confirm(0, one, "1", request_id="same") == verdict
    assert abs(verdict.reliability - 0.731) < 1e-3
    assert vault.balance().spent == 40 * 12 + 1
    with pytest.raises(RequestConflict):
        vault.confirm(0, Intervention(), "1", request_id="same")


def test_the_list_for_a_verdict_ends_with_the_intervention() -> None:
    context = random_world(4).context
    for one in (
        Intervention(),
        Intervention(delete=((0, 1),)),
        Intervention(mask=(2, 3)),
        Intervention(((0, 1),), ((0, 5), (2, 6)), (1,)),
    ):
        assert list(list_of_one(one, 0, context))[-1] == one
    for wrong in (Intervention(add=((0, 99),)), Intervention(mask=(77,))):
        with pytest.raises(InputError, match="names a node or a feature that does not exist"):
            list_of_one(wrong, 0, context)


def test_a_private_choice_prefers_close_calls() -> None:
    world = random_world(7, nodes=10)
    vault = vault_of(world)
    chosen = Counter(vault.select(range(10), "6").target for _ in range(200))
    logits = world.context.model.logits(world.context.features, world.pairs)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    best = np.sort(shares / shares.sum(axis=1, keepdims=True), axis=1)
    assert chosen.most_common(1)[0][0] in np.argsort(best[:, -1] - best[:, -2])[:3]
    assert vault.balance().spent == 1200
    with pytest.raises(InputError, match="list of different nodes"):
        vault.select([1, 1], "1")
    assert CLOSE_CALL.name == "matched-profile"


def test_suggestions_share_no_element_and_one_price() -> None:
    vault = vault_of(random_world(4))
    found = vault.suggest(0, "3", 3, request_id="three")
    assert [one.epsilon for one in found] == [1, 1, 1]
    assert vault.balance().spent == 3
    elements = [set(one.intervention.delete) | set(one.intervention.add) | set(one.intervention.mask) for one in found]
    assert not elements[0] & elements[1]
    assert not (elements[0] | elements[1]) & elements[2]
    assert vault.suggest(0, "3", 3, request_id="three") == found
    assert vault.balance().spent == 3


def test_suggestions_end_in_no_intervention_where_the_list_is_used_up() -> None:
    world = random_world(4, nodes=4)
    found = vault_of(world).suggest(0, "20", 20)
    assert found[-1].intervention == Intervention()


def test_what_cannot_be_asked_is_said() -> None:
    world = random_world(4)
    with pytest.raises(InputError, match="ask for 1 to 20 suggestions"):
        vault_of(world).suggest(0, "1", 0)
    with pytest.raises(BadEpsilon, match=r"epsilon 0\.02 leaves 0\.006 for each of 3 .* answer here is 0\.01\."):
        vault_of(world).suggest(0, "0.02", 3)
    blind = vault_of(world, Method(SmallSets(), mechanism=PermuteAndFlip()))
    with pytest.raises(InputError, match="permute-and-flip has none"):
        blind.release(0, "1", avoiding=[Intervention(mask=(1,))])
    with pytest.raises(InputError, match="suggestions need a base measure; permute-and-flip has none"):
        blind.suggest(0, "60", 3)
    with pytest.raises(InputError, match="request_id must be printable text"):
        vault_of(world).suggest(0, "10", 10, request_id="x" * 198)
    assert blind.balance().spent == 0


def test_suggestions_that_end_early_say_what_is_paid_and_where_it_is() -> None:
    world = random_world(4)
    vault = Vault(world.graph, world.context, ledger=MemoryLedger(Limit.of("1")), method=GUIDED)
    with pytest.raises(BudgetExhausted, match="2 of 3 suggestions are paid and kept under request id mine"):
        vault.suggest(0, "1.5", 3, request_id="mine")
    assert vault.balance().spent == 1


def test_numbers_of_other_libraries_are_whole_numbers_too() -> None:
    vault = vault_of(random_world(4))
    one = Intervention(delete=((np.int64(1), np.int64(0)),), mask=(np.int32(2),))  # type: ignore[arg-type]
    assert vault.confirm(0, one, "1").intervention == Intervention(((0, 1),), (), (2,))
    with pytest.raises(InputError, match="all whole"):
        Intervention(mask=(1.5,))  # type: ignore[arg-type]


def test_the_same_question_pays_once_whether_or_not_it_carries_names() -> None:
    world = named_world(5)
    vault = vault_of(world)
    plain = Intervention(delete=((0, 1),), mask=(2,))
    verdict = vault.confirm(0, plain, "1", request_id="same")
    assert vault.confirm(0, world.context.named(plain), "1", request_id="same") == verdict
    release = vault.release(0, "1", request_id="avoiding", avoiding=[plain])
    assert vault.release(0, "1", request_id="avoiding", avoiding=[world.context.named(plain)]) == release
    release = vault.release(0, "1", request_id="beyond", beyond=plain)
    assert vault.release(0, "1", request_id="beyond", beyond=world.context.named(plain)) == release
    assert vault.balance().spent == 3


def test_the_ledger_keeps_questions_in_the_words_of_version_0_1() -> None:
    ledger = MemoryLedger()
    world = named_world(5)
    vault = Vault(world.graph, world.context, ledger=ledger, method=GUIDED)
    plain = Intervention(delete=((0, 1),), mask=(2,))
    vault.confirm(0, plain, "1")
    vault.release(0, "1", avoiding=[plain])
    rows = [row["request"] for row in ledger.rows()]
    assert "question='does it flip: delete 0-1, mask feature 2'" in rows[0]
    assert "avoiding ['delete 0-1, mask feature 2']" in rows[1]


def test_a_failing_model_gives_verdicts_and_choices_as_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privcfs.private import reader as reader_module

    vault = Vault(
        random_world(4).graph,
        random_world(4).context,
        ledger=f"sqlite:///{tmp_path / 'budget.db'}",
        limit="9",
        method=GUIDED,
    )

    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(reader_module, "evaluate", broken)
    assert vault.confirm(0, Intervention(mask=(1,)), "1").flips in (True, False)
    assert vault.select([1, 2], "1").target in (1, 2)
    assert vault.failures.failed == 2


def test_a_second_stage_goes_beyond_the_first_and_pays_for_itself() -> None:
    world = random_world(5)
    ledger = MemoryLedger()
    vault = Vault(world.graph, world.context, ledger=ledger, method=GUIDED)
    first = vault.release(0, "1", request_id="first")
    start = first.intervention
    second = vault.release(0, "2", request_id="second", beyond=start)
    assert vault.balance().spent == 3
    assert second.intervention in going_beyond(start, GUIDED).candidates.propose(world.context, 0)
    assert all(verify(second, ledger, world.context, going_beyond(start, GUIDED)).values())
    assert second.context_digest != first.context_digest
    assert vault.release(0, "2", request_id="second", beyond=start) == second
    with pytest.raises(RequestConflict):
        vault.release(0, "2", request_id="second")
    with pytest.raises(InputError, match="does not exist"):
        vault.release(0, "2", beyond=Intervention(mask=(77,)))
    assert vault.balance().spent == 3


def test_two_stages_together_stay_within_the_sum_of_their_prices() -> None:
    world = random_world(5)
    other = World(world.context, random_world(8).pairs)
    method = Method(SmallSets(1), mechanism=SubsetSelection(Fraction(1, 10)))

    def law(one: World, stage: Method, price: int) -> list[Fraction]:
        found = look(one.graph, one.context, 0, stage)
        return found.exact_probabilities(str(price))

    ratios = []
    starts = list(method.candidates.propose(world.context, 0))
    for start, here, there in zip(starts, law(world, method, 1), law(other, method, 1), strict=True):
        stage = going_beyond(start, method)
        second = zip(law(world, stage, 2), law(other, stage, 2), strict=True)
        ratios += [max(here * a / (there * b), there * b / (here * a)) for a, b in second if here and a]
    assert all(below_bound(ratio, Fraction(3)) for ratio in ratios)
    assert not below_bound(max(ratios), Fraction(2))  # neither stage is free


MIXED = Intervention(add=((0, 5),), mask=(1,))


@pytest.mark.parametrize("method", [GUIDED, Method()], ids=["guided", "paper"])
def test_what_goes_beyond_an_answer_contains_it_or_is_empty(method: Method) -> None:
    world = random_world(4)
    vault = vault_of(world, method)
    question = ReleaseQuestion(vault._side, Asker(), 0, "1", Earlier(beyond=MIXED))
    assert question.priced.room
    candidates = question.candidates
    chances = question.mechanism.probabilities(question.fallback, Fraction(1))
    inside = [
        not one.size or (set(MIXED.add) <= set(one.add) and set(MIXED.mask) <= set(one.mask)) for one in candidates
    ]
    assert not all(inside), "the rule also lists candidates that lack a part of the answer"
    assert (chances[~np.array(inside)] == 0).all()
    assert chances[np.array(inside)].sum() == pytest.approx(1)


@pytest.mark.parametrize("method", [GUIDED, Method()], ids=["guided", "paper"])
def test_what_is_drawn_beyond_an_answer_contains_it_or_is_empty(method: Method) -> None:
    vault = vault_of(random_world(4), method)
    drawn = [vault.release(0, "0.1", beyond=MIXED).intervention for _ in range(60)]
    assert all(not one.size or (set(MIXED.add) <= set(one.add) and set(MIXED.mask) <= set(one.mask)) for one in drawn)


def test_going_beyond_needs_a_base_measure() -> None:
    vault = vault_of(random_world(4), Method(SmallSets(), mechanism=PermuteAndFlip()))
    with pytest.raises(InputError, match="avoiding and beyond need a mechanism with a base measure; permute-and-flip"):
        vault.release(0, "1", beyond=MIXED)
    assert vault.balance().spent == 0


def test_a_stage_that_could_not_be_answered_is_refused_before_it_is_paid() -> None:
    """Eight pairs more raise the number of levels beyond what is drawn in reasonable time."""
    vault = vault_of(random_world(4, nodes=20), Method())
    many = Intervention(add=tuple((0, other) for other in range(1, 15)))
    with pytest.raises(InputError, match=r"scores would have \d+ levels, of at most 20000"):
        vault.release(0, "1", beyond=many)
    assert vault.balance().spent == 0
