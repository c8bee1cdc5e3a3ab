"""Time: a dawdling twin is told apart as it is, and a public answering time hides it."""

from contextlib import nullcontext
from threading import Thread
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest

import privcfs.gate.vault as vaults
import privcfs.private.reader as readers
from privcfs import Method, PrivateGraph, Vault
from privcfs.errors import SettingsError
from privcfs.gate.failures import Failures
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.private.evaluators import evaluate
from privcfs_lab.audit import side_channels
from privcfs_lab.audit.hostile import ONE_AGAINST_MANY
from privcfs_lab.audit.side_channels import Timing, dawdling_twin, peak_memory, timing


def vault(answer_seconds: float | None) -> Vault:
    world = ONE_AGAINST_MANY
    settings = {"ledger": MemoryLedger(), "method": Method(world.rule), "answer_seconds": answer_seconds}
    return Vault(world.graph(), world.context, **settings)  # type: ignore[arg-type]


def test_a_dawdling_twin_is_told_by_its_time() -> None:
    assert timing(dawdling_twin(), 40).hidden is False


def test_a_public_time_hides_it() -> None:
    """Too few answers to be sure of little, enough to be sure that it is not told as before."""
    assert timing(dawdling_twin(), 40, 0.06).hidden is not False


def test_a_new_answer_takes_the_public_time_and_a_stored_one_does_not() -> None:
    waiting = vault(0.4)
    start = perf_counter()
    release = waiting.release(ONE_AGAINST_MANY.target, "1", request_id="r")
    waited = perf_counter() - start
    assert waited >= 0.4
    start = perf_counter()
    assert waiting.release(ONE_AGAINST_MANY.target, "1", request_id="r") == release
    assert perf_counter() - start < waited / 2


def test_an_evaluation_that_needs_more_than_the_public_time_counts_as_failed() -> None:
    hasty, patient = vault(1e-6), vault(0.5)
    release = hasty.release(ONE_AGAINST_MANY.target, "1")
    assert release.intervention in set(hasty.propose(ONE_AGAINST_MANY.target))
    assert (hasty.failures.given_up, hasty.failures.late) == (1, 1)
    patient.release(ONE_AGAINST_MANY.target, "1")
    assert patient.failures == Failures()


def test_answers_that_are_asked_for_at_once_follow_one_another_in_public_time() -> None:
    """A queue behind a slow evaluation is no longer than one behind a fast evaluation, and none of it fails."""
    first, second, failures = side_channels.crowd(dawdling_twin(), 0.15, threads=4, rounds=3)
    assert failures == 0
    assert min(first, second) >= 0
    assert abs(first - second) < 100


def waited_for_a_free_look(monkeypatch: pytest.MonkeyPatch, evaluation: float) -> float:
    """Seconds from an answer's start to the end of a dry run beside it."""
    waiting, target = vault(0.4), ONE_AGAINST_MANY.target

    def dawdle(graph: PrivateGraph, *others: Any) -> Any:
        sleep(evaluation if graph is waiting._graph else 0)
        return evaluate(graph, *others)

    monkeypatch.setattr(readers, "evaluate", dawdle)
    answer = Thread(target=waiting.release, args=(target, "1"))
    start = perf_counter()
    answer.start()
    sleep(0.05)
    waiting.dry_run(target, "1")
    waited = perf_counter() - start
    answer.join()
    return waited


@pytest.mark.parametrize("evaluation", [0.0, 0.15], ids=["quick", "slow"])
def test_a_free_look_beside_an_answer_takes_public_time_too(monkeypatch: pytest.MonkeyPatch, evaluation: float) -> None:
    """A dry run that waited for the private evaluation would tell how long that took."""
    assert waited_for_a_free_look(monkeypatch, evaluation) >= 0.4


def test_a_free_look_that_does_not_wait_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vaults, "ANSWERING", nullcontext())
    assert waited_for_a_free_look(monkeypatch, 0.15) < 0.4


@pytest.mark.parametrize("seconds", [0, -1, "soon", True, float("nan"), float("inf")], ids=str)
def test_an_answering_time_must_be_a_number_above_0(seconds: float) -> None:
    with pytest.raises(SettingsError, match="answer_seconds is"):
        vault(seconds)


def test_the_rule_is_fixed_on_the_first_half_and_sees_more_than_longer_or_shorter() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(4000) < 0.5
    noise = rng.random(4000)
    nothing = side_channels._told(noise, first)
    assert abs(nothing.auc - 0.5) < 4 * nothing.error
    assert nothing.hidden is True
    for told in (noise + first, noise - first):
        assert side_channels._told(told, first).auc > 0.99
        assert side_channels._told(told, first).advantage > 0.97
    spread = side_channels._told(0.5 + (noise - 0.5) * np.where(first, 0.1, 1), first)
    assert spread.auc > 0.85, "the same middle, another spread"
    assert spread.hidden is False


def test_a_verdict_needs_enough_answers() -> None:
    assert Timing(1, 1, 0.52, 0.02, 0.0).hidden is True
    assert Timing(1, 1, 0.58, 0.05, 0.0).hidden is None
    assert Timing(1, 1, 0.75, 0.05, 0.4).hidden is False


def test_a_hub_needs_more_memory_and_the_report_says_so() -> None:
    cases = dict(side_channels.cases())
    (hub,) = (case for name, case in cases.items() if "300 neighbours" in name)
    first, second = peak_memory(hub)
    assert first > 2 * second > 0
