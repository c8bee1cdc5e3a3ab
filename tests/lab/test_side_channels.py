"""Time: a dawdling twin is told apart as it is, and a public answering time hides it."""

from time import perf_counter

import numpy as np
import pytest

from privcfs import Method, Vault
from privcfs.errors import SettingsError
from privcfs.lab.audit import side_channels
from privcfs.lab.audit.hostile import ONE_AGAINST_MANY, TARGET
from privcfs.lab.audit.memory import MemoryLedger
from privcfs.lab.audit.side_channels import Timing, dawdling_twin, peak_memory, timing


def vault(answer_seconds: float | None) -> Vault:
    world = ONE_AGAINST_MANY
    settings = {"ledger": MemoryLedger(), "method": Method(world.rule), "answer_seconds": answer_seconds}
    return Vault(world.graph(), world.context, **settings)  # type: ignore[arg-type]


def test_a_dawdling_twin_is_told_by_its_time_and_not_by_a_public_one() -> None:
    assert timing(dawdling_twin(), 60).tells
    assert not timing(dawdling_twin(), 60, 0.03).tells


def test_a_new_answer_takes_the_public_time_and_a_stored_one_does_not() -> None:
    waiting = vault(0.2)
    start = perf_counter()
    release = waiting.release(TARGET, "1", request_id="r")
    assert 0.2 <= perf_counter() - start < 0.6
    start = perf_counter()
    assert waiting.release(TARGET, "1", request_id="r") == release
    assert perf_counter() - start < 0.1


def test_an_evaluation_that_needs_more_than_the_public_time_counts_as_failed() -> None:
    hasty = vault(1e-6)
    release = hasty.release(TARGET, "1")
    assert release.intervention in set(hasty.propose(TARGET))
    assert "Overrun" in hasty.failures[0]
    assert vault(5e-1).failures == ()


@pytest.mark.parametrize("seconds", [0, -1, "soon", True, float("nan"), float("inf")], ids=str)
def test_an_answering_time_must_be_a_number_above_0(seconds: float) -> None:
    with pytest.raises(SettingsError, match="answer_seconds is"):
        vault(seconds)


def test_the_rule_is_fixed_on_the_first_half() -> None:
    rng = np.random.default_rng(0)
    first = rng.random(4000) < 0.5
    noise = rng.random(4000)
    assert abs(side_channels._told(noise, first).auc - 0.5) < 4 * side_channels._told(noise, first).error
    assert side_channels._told(noise + first, first).auc == 1
    assert side_channels._told(noise - first, first).auc == 1


def test_a_time_tells_only_beyond_chance() -> None:
    assert Timing(1, 1, 0.9, 0.05).tells
    assert not Timing(1, 1, 0.7, 0.05).tells
    assert Timing(1, 1, 0.75, 0.05).advantage == pytest.approx(0.5)


def test_a_hub_needs_more_memory_and_the_report_says_so() -> None:
    cases = dict(side_channels.cases())
    (hub,) = (case for name, case in cases.items() if "300 neighbours" in name)
    first, second = peak_memory(hub)
    assert first > 2 * second > 0
