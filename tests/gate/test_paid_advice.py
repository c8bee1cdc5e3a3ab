"""Advice at a price: what is read for it, which account pays, and alternatives that share one price."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privcfs import Method, PublicContext, Secrets, Vault, hiding
from privcfs.errors import BudgetExhausted, InputError, NotAllowed
from privcfs.gate.accounting import Limit
from privcfs.gate.certificates import verify_advice
from privcfs.gate.contracts import Pure
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import GUIDED
from privcfs.gate.questions.advice import AdviceQuestion, Personal
from privcfs.gate.questions.question import Asker, PublicSide
from privcfs.private.allowance import UNLIMITED
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Advice
from privcfs.public.beliefs.worlds import Worlds
from tests.claims.test_own_edges import NODES, TARGET, differing_elsewhere
from tests.worlds import Pairs, World, private, random_gcn, random_world

METHOD = Method(guide=Rehearsal(Worlds(16)))
PRICE = Fraction(4)


def hidden_model(seed: int) -> tuple[World, PublicContext, list[Secrets]]:
    """A world whose public model only guides, and three secret models that decide."""
    world = random_world(seed)
    public = world.context
    context = PublicContext(public.features, public.snapshot.pairs, public.model, assumptions=hiding(model=True))
    rng = np.random.default_rng(seed)
    return world, context, [Secrets(context, model=random_gcn(rng, 6)) for _ in range(3)]


def vault_of(world: World, context: PublicContext, secrets: Secrets | None, limit: str = "20") -> Vault:
    return Vault(
        world.graph,
        context,
        ledger=MemoryLedger(Limit.of(limit)),
        method=METHOD,
        secrets=secrets,
        people_know_their_edges=True,
    )


def laws(question: AdviceQuestion, graph: PrivateGraph, secrets: Secrets) -> tuple[float, ...]:
    """The law of the planned draw, then that of one without a plan: a plan may leave little to choose."""
    scores = question.score(Reader(graph, secrets, UNLIMITED, question.nodes))
    draws = (question.mechanism, SubsetSelection(Fraction(1, 8)))
    return tuple(chance for one in draws for chance in one.probabilities(scores, PRICE).tolist())


def question_about(context: PublicContext, graph: PrivateGraph, read_others: bool = False) -> AdviceQuestion:
    side = PublicSide(context, GUIDED, Pure(), Fraction(1, 100))
    personal = Personal(side, TARGET, Reader(graph, context, UNLIMITED, (TARGET,)))
    return AdviceQuestion(Asker(), personal, PRICE, read_others)


def law_on(pairs: Pairs, context: PublicContext, secrets: Secrets) -> tuple[float, ...]:
    graph = private(pairs, NODES)
    return laws(question_about(context, graph), graph, secrets)


def test_a_price_for_the_model_reads_no_edge_of_others() -> None:
    for seed in range(4):
        world, context, secrets = hidden_model(seed)
        graphs = differing_elsewhere(world.pairs, (TARGET,), seed, 6)
        assert len({law_on(pairs, context, secrets[0]) for pairs in graphs}) == 1


def test_a_price_for_the_model_that_reads_the_whole_graph_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def peek(question: AdviceQuestion, reader: Reader) -> Scores:
        graph: PrivateGraph = reader._graph
        whole = Reader(graph, reader._readable, UNLIMITED)
        return question.side.method.utility.score(whole.whole(question._personal.candidates))

    monkeypatch.setattr(AdviceQuestion, "score", peek)
    with pytest.raises(AssertionError):
        test_a_price_for_the_model_reads_no_edge_of_others()


def test_the_secret_model_decides_within_the_price() -> None:
    largest = 1.0
    for seed in range(4):
        world, context, secrets = hidden_model(seed)
        found = np.array([law_on(world.pairs, context, one) for one in secrets])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(found[:, None] / found[None], nan=1.0)
        largest = max(largest, float(ratios.max()))
    assert 1.5 < largest <= np.exp(float(PRICE)) * (1 + 1e-9)


def test_her_plan_is_the_same_whatever_the_secret_model() -> None:
    world, context, secrets = hidden_model(3)
    plans = set()
    for one in secrets:
        vault = vault_of(world, context, one)
        advices = [vault.advise(target, epsilon="1") for target in range(NODES)]
        plans.add((*(str(advice.believed) for advice in advices), vault.digest))
    assert len(plans) == 1


def test_a_plan_made_with_the_secret_model_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Personal.__init__

    def peek(personal: Personal, side: PublicSide, node: int, reader: Reader, told: int | None = None) -> None:
        honest(personal, side, node, Reader(reader._graph, CHOSEN[-1], UNLIMITED, (node,)), told)

    CHOSEN: list[Secrets] = []
    make = Vault.__init__

    def remember(vault: Vault, *args: object, **settings: object) -> None:
        CHOSEN.append(settings["secrets"])  # type: ignore[arg-type]
        make(vault, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Vault, "__init__", remember)
    monkeypatch.setattr(Personal, "__init__", peek)
    with pytest.raises(AssertionError):
        test_her_plan_is_the_same_whatever_the_secret_model()


def test_what_a_price_is_for_stands_on_the_certificate() -> None:
    world, context, secrets = hidden_model(1)
    vault = vault_of(world, context, secrets[0])
    alone = vault.advise(TARGET, epsilon="1")
    assert alone.own_edges_alone
    assert "whatever connections other people have" in alone.promise
    assert vault.ledger.balance().spent == vault.ledger.losses().whole == 1
    others = vault.advise(TARGET, epsilon="2", read_others=True)
    assert not others.own_edges_alone
    assert "Other people's connections were read" in others.promise
    assert vault.ledger.balance().spent == 3
    for one in (alone, others):
        assert Advice.from_json(one.to_json()) == one
        assert all(verify_advice(one, vault).values())


def test_prices_that_buy_nothing_are_refused() -> None:
    world, context, secrets = hidden_model(1)
    vault, plain = vault_of(world, context, secrets[0]), vault_of(world, world.context, None)
    with pytest.raises(NotAllowed, match="give a price"):
        vault.advise(TARGET)
    with pytest.raises(InputError, match="at a price alone; give epsilon"):
        plain.advise(TARGET, read_others=True)
    with pytest.raises(InputError, match="leave out epsilon"):
        plain.advise(TARGET, epsilon="1", read_others=False)
    assert plain.ledger.balance().spent == vault.ledger.balance().spent == 0


def test_alternatives_share_a_price_and_no_element() -> None:
    world, context, secrets = hidden_model(2)
    for vault in (vault_of(world, context, secrets[0]), vault_of(world, world.context, None)):
        advice = vault.advise(TARGET, epsilon="9", alternatives=2, request_id="three")
        assert advice.epsilon == 9 == vault.ledger.balance().spent
        subjects = [one for change in advice.changes for one in change.intervention.subjects]
        assert len(subjects) == len(set(subjects))
        again = vault.advise(TARGET, epsilon="9", alternatives=2, request_id="three")
        assert again == advice
        assert vault.ledger.balance().spent == 9
        assert all(verify_advice(advice, vault).values())
        forged = Advice.from_json(advice.to_json().replace('"9"', '"8"'))
        assert not all(verify_advice(forged, vault).values())


def test_a_price_too_small_to_be_shared_is_refused() -> None:
    world = random_world(2)
    vault = vault_of(world, world.context, None)
    with pytest.raises(InputError, match="the least price"):
        vault.advise(TARGET, epsilon="0.02", alternatives=2)
    with pytest.raises(InputError, match="alternatives is 11"):
        vault.advise(TARGET, epsilon="1", alternatives=11)
    assert vault.ledger.balance().spent == 0


def test_shares_that_no_longer_fit_say_what_is_paid() -> None:
    world = random_world(2)
    vault = vault_of(world, world.context, None, "2")
    with pytest.raises(BudgetExhausted, match="2 of 3 suggestions are paid and kept under request id three"):
        vault.advise(TARGET, epsilon="3", alternatives=2, request_id="three")
    assert vault.ledger.balance().spent == 2


def rows_of(vault: Vault) -> str:
    return str(list(vault.ledger.rows()))


def test_no_row_tells_what_she_was_advised_before(tmp_path: Path) -> None:
    world = random_world(2)
    graph = private(world.pairs, NODES)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    vault = Vault(graph, world.context, ledger=url, limit="20", method=METHOD, people_know_their_edges=True)
    advice = vault.advise(TARGET, epsilon="9", alternatives=2, request_id="three")
    said = [str(list(pair)) for one in advice.changes for pair in (*one.intervention.delete, *one.intervention.add)]
    assert said
    assert not any(one in rows_of(vault) for one in said)
