"""The public answering time that `privcfs serve` chooses."""

import re
from collections.abc import Callable
from time import sleep
from typing import Any

import pytest

from privcfs.errors import SettingsError
from privcfs.gate.method import Method
from privcfs.gate.vault import EVALUATION_SHARE, Vault
from privcfs.owner import answering_time as answering
from privcfs.owner.answering_time import (
    LEAST,
    MARGIN,
    AnswerTime,
    answering_time,
    from_text,
    in_words,
    rehearse_time,
    rounded_up,
    to_text,
)
from privcfs.owner.vault_file import VaultFile, read_vault_file
from privcfs.private.evaluators import evaluate
from tests.shell import Shell, newcomer


@pytest.fixture
def shell(tmp_path: Any) -> Shell:
    return newcomer(tmp_path)


def settings(shell: Shell, setting: str = "# answer_seconds = 0.5 ") -> VaultFile:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("# answer_seconds = 0.5 ", setting))
    return read_vault_file(path)


def measured(file: VaultFile) -> AnswerTime:
    return rehearse_time(file.vault())


def test_fast_evaluations_get_a_quarter_of_a_second(shell: Shell) -> None:
    found = settings(shell)
    assert answering_time(found, measured(found)) == LEAST == 0.25


def slowly(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every evaluation of the rehearsal takes so long; its counted work stays what it is."""

    def slow(*args: Any) -> Any:
        sleep(seconds)
        return evaluate(*args)

    monkeypatch.setattr(answering, "evaluate", slow)


def test_slow_evaluations_get_four_times_the_slowest(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch, 0.1)
    found = settings(shell)
    seconds = answering_time(found, measured(found))
    assert seconds is not None
    assert MARGIN * 0.1 <= seconds < MARGIN * 0.3


def test_an_answering_time_leaves_room_for_counted_work(shell: Shell) -> None:
    """A machine may be faster than a unit a nanosecond: then the count decides, or evaluations would be given up."""
    seconds = answering_time(settings(shell), AnswerTime(preparation=0.1, evaluation=0.1, work=2))
    assert seconds == MARGIN * 2
    assert EVALUATION_SHARE * seconds > 3 * 2, "an evaluation of three times the work is not given up"


def test_a_rehearsal_measures_preparation_evaluation_and_work(shell: Shell) -> None:
    file = settings(shell)
    found = measured(file)
    assert 0 < found.evaluation < found.preparation < 30
    assert 0 < found.work < 1
    assert found.work == measured(file).work, "counted, not timed"
    assert re.fullmatch(
        r"On public data, a first answer .* to evaluate \(counted work: \S+ nominal seconds\)\.", str(found)
    )
    assert found.check(Method(), None) == ""
    assert found.check(Method(), 30) == ""


def test_public_evaluations_beyond_the_limit_are_refused(shell: Shell) -> None:
    """Before a vault serves, and before anything is paid: every answer would be drawn from public scores."""
    file = settings(shell, "evaluation_seconds = 0.0001 ")
    vault = file.vault()
    assert vault.method.evaluation_seconds == 0.0001
    found = rehearse_time(vault)
    assert found.work > 0.0001
    with pytest.raises(SettingsError, match=r"evaluation_seconds is 0\.0001, but evaluating public data needs .* work"):
        found.check(vault.method, None)


def test_public_evaluations_beyond_the_answering_time_are_refused_and_close_ones_warned_of() -> None:
    time = AnswerTime(preparation=1, evaluation=0.5, work=0.1)
    with pytest.raises(
        SettingsError, match=r"answer_seconds is 0\.4, but evaluating public data needs 0\.5 by its time"
    ):
        time.check(Method(), 0.4)
    assert "answer_seconds is 0.9, and evaluating public data needs 0.5 by its time already" in time.check(
        Method(), 0.9
    )
    assert time.check(Method(), 1.1) == ""
    heavy = AnswerTime(preparation=1, evaluation=0.1, work=0.5)
    with pytest.raises(SettingsError, match=r"answer_seconds is 0\.6, .* needs 0\.63 by its counted work"):
        heavy.check(Method(), 0.6)
    assert "evaluation_seconds is 0.8, and" in heavy.check(Method(evaluation_seconds=0.8), None)


def reads_public_data_alone(vault: Vault, rehearse: Callable[[], object], patch: pytest.MonkeyPatch) -> None:
    """Every evaluation is of the public snapshot by the public model."""
    public, read = vault.context.snapshot, []

    def noting(graph: Any, context: Any, *rest: Any) -> Any:
        read.append((graph._lists is public, context is vault.context))
        return evaluate(graph, context, *rest)

    patch.setattr(answering, "evaluate", noting)
    rehearse()
    assert read
    assert set(read) == {(True, True)}


def test_the_rehearsal_reads_no_private_edge(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = settings(shell).vault()
    reads_public_data_alone(vault, lambda: rehearse_time(vault), monkeypatch)


def test_the_check_rejects_a_rehearsal_on_private_edges(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = settings(shell).vault()
    twin = lambda: answering._evaluation(vault._graph, vault.context, vault.method, 0)  # noqa: E731
    with pytest.raises(AssertionError):
        reads_public_data_alone(vault, twin, monkeypatch)


def test_the_owner_decides(shell: Shell) -> None:
    own = settings(shell, "answer_seconds = 0.7 ")
    assert answering_time(own, measured(own)) == 0.7
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("answer_seconds = 0.7 ", 'answer_seconds = "off" '))
    off = read_vault_file(path)
    assert answering_time(off, measured(off)) is None


def test_seconds_are_rounded_up_to_two_digits_and_survive_the_environment() -> None:
    assert [rounded_up(one) for one in (0.25, 0.251, 1.01, 12.3, 99.5)] == [0.25, 0.26, 1.1, 13.0, 100.0]
    assert [from_text(to_text(one)) for one in (0.26, None)] == [0.26, None]
    assert "0.26 seconds" in in_words(0.26)
    assert "learn about them beyond what they pay for" in in_words(None)
