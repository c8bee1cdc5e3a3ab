import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from privcfs import Assumption, Intervention, Limit, Method, PrivateGraph, PublicContext, Release, Vault, open_ledger
from privcfs.errors import (
    BadEpsilon,
    BudgetExhausted,
    GraphError,
    InputError,
    PrivcfsError,
    RequestConflict,
    SettingsError,
    SimulatedSnapshot,
    UnknownNode,
)
from privcfs.gate import opening
from privcfs.gate import vault as vault_module
from privcfs.gate.certificates import verify
from privcfs.gate.failures import MOST_MESSAGES, FailureLog, Failures
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.questions.question import Asker
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.private import reader as reader_module
from privcfs.private.allowance import Overrun
from privcfs.private.evaluators import evaluate
from privcfs.private.reader import Reader
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.utility import Scores
from privcfs.public.assumptions import SIMULATED
from privcfs.public.candidates import RULES
from privcfs.public.candidates.small_sets import SmallSets
from tests.clock import Clock
from tests.laws import look
from tests.worlds import World, named_world, random_pairs, random_world

NODES = 8


@pytest.fixture
def world() -> World:
    return random_world(4)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'budget.db'}"


def test_a_release_is_drawn_from_the_public_list_and_paid(world: World, url: str) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="3", method=Method())
    release = vault.release(target=0, epsilon="1")
    assert release.intervention in set(vault.propose(0))
    assert release.epsilon == 1
    assert release.guarantee.range == Fraction(24, 25)
    assert release.mechanism == "exponential"
    assert release.assumptions == tuple(sorted(item.name for item in world.context.assumptions))
    assert vault.balance().left == 2
    assert Release.from_json(release.to_json()) == release


def test_a_release_has_no_private_field(world: World, url: str) -> None:
    release = Vault(world.graph, world.context, ledger=url, limit="3").release(0, "1")
    assert set(json.loads(release.to_json())) == {
        "format",
        "target",
        "intervention",
        "epsilon",
        "mechanism",
        "guarantee",
        "context_digest",
        "assumptions",
        "analyst",
        "request_id",
        "confidence",
    }


def certificates(vault: Vault) -> list[str]:
    """What every draw about a node would leave after a release about it, whichever candidate is drawn."""
    found = []
    for target in range(NODES):
        vault.release(target, "1")
        question = ReleaseQuestion(vault._side, Asker("a", "r"), target, "1")
        found += [question.answer(position) for position in range(len(question.candidates))]
    return found


def test_the_confidence_of_an_answer_is_the_same_whatever_the_private_graph(world: World, tmp_path: Path) -> None:
    texts = []
    dense = random_pairs(np.random.default_rng(3), NODES, 0.8)
    for number, pairs in enumerate((dense[:0], dense[:2], dense)):
        graph = PrivateGraph.from_edges(pairs, number_of_nodes=world.context.number_of_nodes)
        vault = Vault(graph, world.context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="9")
        texts.append(certificates(vault))
    assert texts[0] == texts[1] == texts[2]
    assert len({json.loads(text)["confidence"] for text in texts[0]}) > 1


def test_a_release_that_prints_its_own_score_is_found_out(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Scores] = []
    score = ReleaseQuestion.score

    def remember(question: ReleaseQuestion, reader: Reader) -> Scores:
        seen.append(score(question, reader))
        return seen[-1]

    def peek(_: ReleaseQuestion, position: int) -> float:
        return float(seen[-1].unseal()[position] / seen[-1].grid.denominator) if seen else 0.0

    monkeypatch.setattr(ReleaseQuestion, "score", remember)
    monkeypatch.setattr(ReleaseQuestion, "confidence", peek)
    with pytest.raises(AssertionError):
        test_the_confidence_of_an_answer_is_the_same_whatever_the_private_graph(world, tmp_path)


def test_the_same_request_returns_the_same_release_and_pays_once(world: World, url: str) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="2")
    first = vault.release(0, "1", request_id="r")
    assert all(vault.release(0, "1", request_id="r") == first for _ in range(20))
    assert vault.balance().spent == 1
    with pytest.raises(RequestConflict, match="other parameters"):
        vault.release(1, "1", request_id="r")


def test_a_crash_after_the_charge_resumes_without_paying_again(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="2")
    with monkeypatch.context() as patch:
        patch.setattr(reader_module, "evaluate", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            vault.release(0, "1", request_id="r")
    assert vault.balance().held == 1
    release = vault.release(0, "1", request_id="r")
    assert vault.balance().spent == 1
    assert vault.balance().held == 0
    assert vault.release(0, "1", request_id="r") == release


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [MemoryError("boom"), ArithmeticError("boom"), RuntimeError("boom"), SystemExit("boom")], ids=repr
)
def test_a_failed_evaluation_is_drawn_from_as_usual(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="100", method=Method())
    monkeypatch.setattr(reader_module, "evaluate", raising(error))
    drawn = {vault.release(0, "1").intervention for _ in range(30)}
    assert len(drawn) > 5, "an even draw over the support"
    assert vault.balance().spent == 30
    assert (vault.failures.given_up, vault.failures.failed, vault.failures.late) == (0, 30, 0)
    assert len(vault.failures.latest) == MOST_MESSAGES
    assert "boom" in vault.failures.latest[0]


@pytest.mark.parametrize("settings", [{"evaluation_seconds": 1e-9}, {"answer_seconds": 1e-6}], ids=str)
def test_an_overrunning_evaluation_is_drawn_from_as_usual(world: World, url: str, settings: dict[str, float]) -> None:
    method = Method(evaluation_seconds=settings.get("evaluation_seconds", 60))
    answer_seconds = settings.get("answer_seconds")
    vault = Vault(world.graph, world.context, ledger=url, limit="100", method=method, answer_seconds=answer_seconds)
    drawn = {vault.release(0, "1").intervention for _ in range(30)}
    assert drawn <= set(vault.propose(0))
    assert len(drawn) > 5, "an even draw over the support"
    assert (vault.failures.given_up, vault.failures.failed) == (30, 0)
    assert "Overrun" in vault.failures.latest[0]
    assert "30 evaluations were given up for work" in str(vault.failures)


def scores_of_a_delayed_answer(world: World, patch: pytest.MonkeyPatch) -> tuple[list[int], Failures]:
    """The scores that an answer is drawn from when the machine is busy for longer than its public time."""
    answer_seconds, found = 0.05, []
    vault = Vault(world.graph, world.context, ledger=MemoryLedger(), method=Method(), answer_seconds=answer_seconds)
    honest = Vault._scores

    def delayed(*arguments: Any) -> Any:
        time.sleep(2 * answer_seconds)
        return evaluate(*arguments)

    def noting(*arguments: Any) -> Any:
        scores = honest(*arguments)
        found.append(scores.unseal().tolist())
        return scores

    patch.setattr(reader_module, "evaluate", delayed)
    patch.setattr(Vault, "_scores", noting)
    vault.release(0, "1")
    return found[0], vault.failures


def test_an_answer_that_a_busy_machine_delays_has_the_same_law(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves late, and the owner is told."""
    scores, failures = scores_of_a_delayed_answer(world, monkeypatch)
    assert scores == look(world.graph, world.context, 0, Method()).scores.unseal().tolist()
    assert (failures.given_up, failures.failed, failures.late) == (0, 0, 1)
    assert "1 answer was later than answer_seconds" in str(failures)


def test_the_check_rejects_a_clock_that_changes_the_law(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_module, "Allowance", Clock)
    scores, failures = scores_of_a_delayed_answer(world, monkeypatch)
    assert scores != look(world.graph, world.context, 0, Method()).scores.unseal().tolist()
    assert failures.given_up == 1


def test_failures_are_counted_from_many_threads() -> None:
    log = FailureLog()

    def fail() -> None:
        for _ in range(200):
            log.add_evaluation("0", Overrun("too much"))
            log.add_evaluation("0", MemoryError("two\nlines"))
            log.add_late(0.5)

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = log.read()
    assert (found.given_up, found.failed, found.late, found.evaluations) == (800, 800, 800, 1600)
    assert not any("\n" in message for message in found.latest)
    assert str(Failures()) == ""


@pytest.mark.parametrize("seconds", [0, -5, "x", None, float("nan")], ids=str)
def test_a_time_limit_must_be_a_number_above_0(seconds: Any) -> None:
    with pytest.raises(SettingsError, match="evaluation_seconds is"):
        Method(evaluation_seconds=seconds)


def test_nothing_private_is_read_before_the_charge_is_durable(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="9")
    seen: list[Fraction] = []
    honest = evaluate

    def watching(*arguments: Any) -> Any:
        seen.append(open_ledger(url).balance().held)
        return honest(*arguments)

    monkeypatch.setattr(reader_module, "evaluate", watching)
    vault.release(0, "1")
    assert seen == [1]


def test_a_fork_beside_an_evaluation_leaves_a_child_that_can_release(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="9")
    started = threading.Event()

    def slow(*arguments: Any) -> Any:
        started.set()
        time.sleep(0.2)
        return evaluate(*arguments)

    monkeypatch.setattr(reader_module, "evaluate", slow)
    busy = threading.Thread(target=vault.release, args=(0, "1"))
    busy.start()
    started.wait()
    child = multiprocessing.get_context("fork").Process(target=vault.release, args=(0, "1"))
    child.start()
    child.join(30)
    busy.join()
    assert child.exitcode == 0
    assert vault.balance().spent == 2


def opening_reads_no_edge(monkeypatch: pytest.MonkeyPatch, graph: PrivateGraph, context: PublicContext) -> None:
    """The model is tried out on the snapshot; the private graph is only asked for its number of nodes."""
    seen: list[PrivateGraph] = []

    def watching(graph: PrivateGraph, *given: Any) -> Any:
        seen.append(graph)
        return evaluate(graph, *given)

    monkeypatch.setattr(opening, "evaluate", watching)
    Vault(graph, context, ledger=MemoryLedger())
    assert len(seen) == 2
    assert all(one is not graph for one in seen), "the private graph was evaluated before anything was paid"


def test_opening_a_vault_reads_no_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    opening_reads_no_edge(monkeypatch, random_world(3).graph, random_world(3).context)


def test_a_vault_that_tries_its_model_on_the_private_graph_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_world(3).graph
    monkeypatch.setattr(opening, "PrivateGraph", SimpleNamespace(from_snapshot=lambda _: graph))
    with pytest.raises(AssertionError, match="was evaluated before anything was paid"):
        opening_reads_no_edge(monkeypatch, graph, random_world(3).context)


def test_a_refused_request_reads_nothing_and_pays_nothing(
    world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit="1")
    monkeypatch.setattr(reader_module, "evaluate", raising(AssertionError("read the graph")))
    head = vault.head()
    attempts: list[tuple[Callable[[], object], type[PrivcfsError], str]] = [
        (lambda: vault.release(99, "1"), UnknownNode, "target '99' is not a node; give a number from 0 to 7"),
        (lambda: vault.release(-1, "1"), UnknownNode, "target '-1' is not a node"),
        (lambda: vault.release(None, "1"), UnknownNode, "target is a NoneType"),  # type: ignore[arg-type]
        (lambda: vault.release("x", "1"), UnknownNode, "target 'x' is not a node"),
        (lambda: vault.release(True, "1"), UnknownNode, "target 'True' is not a node"),
        (lambda: vault.release(0, "0"), BadEpsilon, "epsilon is 0; it must be more than 0"),
        (lambda: vault.release(0, "-1"), BadEpsilon, "epsilon is '-1'; write a decimal such as"),
        (lambda: vault.release(0, "nan"), BadEpsilon, "epsilon is 'nan'"),
        (lambda: vault.release(0, "1e3"), BadEpsilon, "epsilon is '1e3'"),
        (lambda: vault.release(0, "1000"), BadEpsilon, "epsilon is 1000; it must be more than 0 and at most 64"),
        (lambda: vault.release(0, "9" * 400), BadEpsilon, "write a decimal such as"),
        (lambda: vault.release(0, 10**5000), BadEpsilon, r"epsilon must be a decimal from 0 to 10\*\*12"),
        (lambda: vault.release(0, Decimal("1E+999999")), BadEpsilon, "epsilon must be a decimal"),
        (lambda: vault.release(0, Decimal("NaN")), BadEpsilon, "epsilon must be a decimal"),
        (lambda: vault.release(0, Fraction(1, 3)), BadEpsilon, "epsilon must be a decimal"),
        (lambda: vault.release(0, "٣"), BadEpsilon, "epsilon is '٣'"),
        (lambda: vault.release(10**5000, "1"), UnknownNode, "target 'a huge number' is not a node"),
        (lambda: vault.release("9" * 5000, "1"), UnknownNode, "is not a node"),
        (lambda: vault.release(0, 0.5), BadEpsilon, "epsilon is a float; write it as text"),  # type: ignore[arg-type]
        (lambda: vault.release(0, None), BadEpsilon, "epsilon is a NoneType"),  # type: ignore[arg-type]
        (lambda: vault.release(0, "1", analyst=""), InputError, "analyst must be printable text"),
        (lambda: vault.release(0, "1", request_id="a\nb"), InputError, "request_id must be printable text"),
        (lambda: vault.release(0, "1.000000001"), BudgetExhausted, "Nothing was charged; ask for less"),
    ]
    for attempt, kind, message in attempts:
        with pytest.raises(kind, match=message):
            attempt()
    assert vault.head() == head


def test_a_private_loner_and_an_empty_graph_release_as_usual(world: World, tmp_path: Path) -> None:
    for number, pairs in enumerate(([], [(1, 2), (2, 3)])):
        graph = PrivateGraph.from_edges(pairs, number_of_nodes=NODES)
        vault = Vault(graph, world.context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="9")
        assert vault.release(0, "1").target == 0
        assert vault.failures == Failures()


def test_a_simulated_snapshot_never_reaches_a_real_release(world: World, url: str) -> None:
    simulated = PublicContext(
        world.context.features, world.context.snapshot.pairs, world.context.model, assumptions=SIMULATED
    )
    with pytest.raises(SimulatedSnapshot, match="drawn from private edges for an experiment and protects nobody"):
        Vault(world.graph, simulated, ledger=url, limit="1")
    release = Vault(world.graph, simulated, ledger=url, limit="1", simulation=True).release(0, "1")
    assert Assumption.SNAPSHOT_SIMULATED.name in release.assumptions


def test_limits_per_analyst_and_in_all(world: World, url: str) -> None:
    vault = Vault(world.graph, world.context, ledger=url, limit=Limit.of("2.5", "1"))
    vault.release(0, "1", analyst="ann")
    vault.release(0, "1", analyst="bob")
    with pytest.raises(BudgetExhausted, match="analyst's limit 1"):
        vault.release(0, "0.5", analyst="ann")
    with pytest.raises(BudgetExhausted, match=r"total limit 2\.5"):
        vault.release(0, "1", analyst="cid")
    assert vault.release(0, "0.5", analyst="cid").analyst == "cid"


def test_graph_and_context_must_have_the_same_nodes(world: World, url: str) -> None:
    with pytest.raises(SettingsError, match="number_of_nodes is 9, but features has 8 rows; match them"):
        Vault(PrivateGraph.from_edges([], number_of_nodes=9), world.context, ledger=url, limit="1")


def test_one_graph_cannot_spend_from_two_ledgers(world: World, tmp_path: Path) -> None:
    graph = world.graph
    Vault(graph, world.context, ledger=f"sqlite:///{tmp_path / 'a.db'}", limit="1")
    with pytest.raises(GraphError, match="one private graph has one budget"):
        Vault(graph, world.context, ledger=f"sqlite:///{tmp_path / 'b.db'}", limit="1")


def test_an_open_ledger_has_its_own_limit(world: World, url: str) -> None:
    ledger = open_ledger(url, Limit.of("1"))
    with pytest.raises(SettingsError, match="pass a ledger or a limit, not both"):
        Vault(world.graph, world.context, ledger=ledger, limit="1")
    assert Vault(world.graph, world.context, ledger=ledger).balance().limit == 1


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_method_releases(world: World, url: str, rule: str, utility: str, mechanism: str) -> None:
    method = Method(RULES[rule], UTILITIES[utility], MECHANISMS[mechanism])
    vault = Vault(world.graph, world.context, ledger=url, limit="9", method=method)
    release = vault.release(0, "2")
    assert release.intervention in set(vault.propose(0))
    assert vault.failures == Failures()


def test_the_digest_names_context_and_method(world: World, tmp_path: Path) -> None:
    def digest(number: int, context: PublicContext, method: Method) -> str:
        graph = PrivateGraph.from_edges([], number_of_nodes=NODES)
        return Vault(graph, context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="1", method=method).digest

    other = PublicContext(world.context.features, [(0, 1)], world.context.model)
    soft = Method(utility=UTILITIES["soft"])
    digests = [
        digest(0, world.context, Method()),
        digest(1, world.context, Method()),
        digest(2, other, Method()),
        digest(3, world.context, soft),
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_verify_finds_what_was_altered(world: World, url: str) -> None:
    ledger = open_ledger(url, Limit.of("9"))
    release = Vault(world.graph, world.context, ledger=ledger, method=Method()).release(0, "1", request_id="r")
    assert all(verify(release, ledger, world.context, Method()).values())
    fields = json.loads(release.to_json())
    fields["intervention"] = Intervention(delete=((5, 6),), mask=(1,)).to_dict()
    forged = verify(Release.from_json(json.dumps(fields)), ledger, world.context, Method())
    assert [name for name, good in forged.items() if not good] == [
        "the ledger holds this release, word for word",
        "the intervention is on the public list",
    ]


def in_names(intervention: Intervention) -> str:
    """What a person expects to read where node 3 is called person-3."""
    pairs = [("delete", one) for one in intervention.delete] + [("add", one) for one in intervention.add]
    parts = [f"{kind} person-{u} - person-{w}" for kind, (u, w) in pairs]
    return ", ".join(parts + [f"mask feature {one}" for one in intervention.mask]) or "no intervention"


def test_every_answer_names_nodes_as_the_public_does(url: str) -> None:
    world = named_world(4)
    vault = Vault(world.graph, world.context, ledger=url, limit="100")
    found = [vault.release("person-3", "1", request_id=f"r{number}") for number in range(8)]
    found += vault.release_all([("person-3", "1", None)]) + vault.suggest("person-3", "2", 2)
    for release in found:
        ends = {3, *(end for pair in release.intervention.delete + release.intervention.add for end in pair)}
        assert release.labels == {node: f"person-{node}" for node in ends}
        assert str(release.intervention) == in_names(release.intervention)
        assert release.target_name == "person-3"
    assert any(len(release.labels) > 1 for release in found)
    unpaid = [vault.guess("person-3"), vault.dry_run("person-3", "1")]
    free = [*(one.intervention for one in unpaid), *vault.propose("person-3")]
    assert [str(one) for one in free] == [in_names(one) for one in free]
    verdict = vault.confirm("person-3", Intervention(delete=((3, 5),)), "1")
    assert verdict.labels == {3: "person-3", 5: "person-5"}
    assert str(verdict.intervention) == "delete person-3 - person-5"
    selection = vault.select(["person-1", "person-4"], "1")
    assert selection.target_name == f"person-{selection.target}"
    assert vault.release(found[0].target, "1").target_name == "person-3", "a number is a node's number"


def test_names_on_an_answer_are_a_function_of_public_data_and_the_drawn_intervention(tmp_path: Path) -> None:
    context = named_world(4).context
    for number, pairs in enumerate(([], [(3, 5), (3, 6)])):
        graph = PrivateGraph.from_edges(pairs, number_of_nodes=NODES)
        vault = Vault(graph, context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="100", method=Method())
        for _ in range(20):
            release = vault.release(3, "1")
            assert release.labels == context.labels((3, *release.intervention.nodes))


def test_a_release_that_version_0_1_stored_gets_its_names_when_asked_for_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = named_world(4)
    vault = Vault(world.graph, world.context, ledger=url, limit="9")
    with monkeypatch.context() as patch:
        patch.setattr(PublicContext, "labels", lambda *_: {})
        old = vault.release(3, "1", request_id="old")
    assert old.labels == {}
    assert vault.release(3, "1", request_id="old").target_name == "person-3"
    assert vault.release_all([(3, "1", "old")])[0].target_name == "person-3"
    assert vault.balance().spent == 1


NAMES = "the names are this vault's"
Checker = Callable[..., dict[str, bool]]


def blind_to_names(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """A broken twin of `verify`: it looks at the right names, whatever names the certificate has."""
    return verify(replace(release, labels=context.labels(release.nodes)), ledger, context, method)


def forged_names(release: Release) -> list[Release]:
    """One name replaced, two exchanged, one left out, one too many, one of a node that there is not."""
    first, second = sorted(release.labels)[:2]
    names = dict(release.labels)
    other = next(node for node in range(NODES) if node not in names)
    return [
        replace(release, labels={**names, first: "eve"}),
        replace(release, labels={**names, first: names[second], second: names[first]}),
        replace(release, labels={first: names[first]}),
        replace(release, labels={**names, other: f"person-{other}"}),
        replace(release, labels={**names, 99: "person-99"}),
    ]


def passes(check: Checker, releases: list[Release], *public: Any) -> list[bool]:
    return [all(check(one, *public).values()) for one in releases]


@pytest.mark.parametrize("stored_with_names", [True, False], ids=["now", "version 0.1"])
def test_verify_rejects_forged_names_and_a_twin_that_ignores_them_is_found_out(
    url: str, monkeypatch: pytest.MonkeyPatch, stored_with_names: bool
) -> None:
    world, ledger = named_world(4), open_ledger(url, Limit.of("100"))
    vault = Vault(world.graph, world.context, ledger=ledger, method=Method())
    with monkeypatch.context() as patch:
        if not stored_with_names:
            patch.setattr(PublicContext, "labels", lambda *_: {})
        found = next(one for one in iter(lambda: vault.release(3, "1"), None) if len({3, *one.intervention.nodes}) > 1)
    release = replace(found, labels=world.context.labels((3, *found.intervention.nodes)))
    public = ledger, world.context, Method()
    assert passes(verify, [release], *public) == [True]
    assert passes(verify, forged_names(release), *public) == [False] * 5
    assert passes(blind_to_names, forged_names(release), *public) == [True] * 5, "the check above finds the twin out"
    assert not verify(forged_names(release)[0], *public)[NAMES]
    if not stored_with_names:
        assert passes(verify, [found], *public) == [True], "a certificate of version 0.1 over HTTP has no names"
    changed = replace(release, intervention=Intervention(mask=(1,)), labels=world.context.labels((3,)))
    assert not all(verify(changed, *public).values())


def test_names_cannot_be_left_out_of_a_certificate_that_has_them(url: str) -> None:
    world, ledger = named_world(4), open_ledger(url, Limit.of("9"))
    release = Vault(world.graph, world.context, ledger=ledger, method=Method()).release(3, "1")
    found = verify(replace(release, labels={}), ledger, world.context, Method())
    assert [name for name, good in found.items() if not good] == ["the ledger holds this release, word for word"]


def test_the_release_distribution_is_the_stated_one(world: World, tmp_path: Path) -> None:
    """End to end: what leaves the vault follows the law that the owner can inspect."""
    from scipy.stats import chisquare

    method = Method(candidates=RULES["edges-only"])
    vault = Vault(world.graph, world.context, ledger=f"sqlite:///{tmp_path / 'x.db'}", limit="100000", method=method)
    seen = look(world.graph, world.context, 0, method)
    position = {item: number for number, item in enumerate(seen.candidates)}
    counts = np.zeros(len(position))
    for _ in range(1500):
        counts[position[vault.release(0, "4").intervention]] += 1
    assert chisquare(counts, seen.probabilities("4") * counts.sum()).pvalue > 1e-6


def test_what_is_refused_or_finished_is_neither_prepared_nor_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    world = random_world(3)
    vault = Vault(world.graph, world.context, ledger=MemoryLedger(Limit.of("3")), method=Method(SmallSets()))
    kept = vault.release(0, "1", request_id="kept")
    monkeypatch.setattr(SmallSets, "propose", lambda *_: pytest.fail("a list was prepared"))
    with pytest.raises(BudgetExhausted, match="does not fit"):
        vault.release_all([(node, "1", None) for node in range(8)])
    with pytest.raises(RequestConflict, match="choose"):
        vault.release(1, "1", request_id="kept")
    with pytest.raises(BudgetExhausted, match="does not fit"):
        vault.release(0, "1", cap=Fraction(1))
    assert vault.release(0, "1", request_id="kept") == kept
    with pytest.raises(pytest.fail.Exception, match="a list was prepared"):
        vault.release(0, "1")
    assert vault.balance().spent == 1
