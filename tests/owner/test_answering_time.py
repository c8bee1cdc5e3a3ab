"""The public answering time that `privcfs serve` chooses."""

from collections.abc import Callable
from time import sleep
from typing import Any

import pytest

from privcfs.gate.vault import EVALUATION_SHARE, Vault
from privcfs.owner import answering_time as answering
from privcfs.owner.answering_time import (
    LEAST,
    MARGIN,
    answering_time,
    from_text,
    in_words,
    rounded_up,
    slowest_evaluation,
    to_text,
)
from privcfs.owner.vault_file import VaultFile, read_vault_file
from privcfs.private.allowance import Overrun
from privcfs.private.evaluators import evaluate
from tests.shell import Shell, newcomer


@pytest.fixture
def shell(tmp_path: Any) -> Shell:
    return newcomer(tmp_path)


def settings(shell: Shell, setting: str = "# answer_seconds = 0.5 ") -> VaultFile:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("# answer_seconds = 0.5 ", setting))
    return read_vault_file(path)


def test_fast_evaluations_get_a_quarter_of_a_second(shell: Shell) -> None:
    found = settings(shell)
    assert answering_time(found, found.vault()) == LEAST == 0.25


def test_slow_evaluations_get_four_times_the_slowest(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any) -> Any:
        sleep(0.1)
        return evaluate(*args)

    monkeypatch.setattr(answering, "evaluate", slow)
    found = settings(shell)
    seconds = answering_time(found, found.vault())
    assert seconds is not None
    assert MARGIN * 0.1 <= seconds < MARGIN * 0.3
    assert EVALUATION_SHARE * seconds > 0.3, "an evaluation three times as slow does not overrun"


def test_evaluations_that_overrun_count_with_all_the_time_that_the_method_gives(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise Overrun

    monkeypatch.setattr(answering, "evaluate", never)
    vault = settings(shell).vault()
    assert slowest_evaluation(vault.context, vault.method) == vault.method.evaluation_seconds


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
    reads_public_data_alone(vault, lambda: slowest_evaluation(vault.context, vault.method), monkeypatch)


def test_the_check_rejects_a_rehearsal_on_private_edges(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = settings(shell).vault()
    twin = lambda: answering._seconds(vault._graph, vault.context, vault.method, 0)  # noqa: E731
    with pytest.raises(AssertionError):
        reads_public_data_alone(vault, twin, monkeypatch)


def test_the_owner_decides(shell: Shell) -> None:
    own = settings(shell, "answer_seconds = 0.7 ")
    assert answering_time(own, own.vault()) == 0.7
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("answer_seconds = 0.7 ", 'answer_seconds = "off" '))
    off = read_vault_file(path)
    assert answering_time(off, off.vault()) is None


def test_seconds_are_rounded_up_to_two_digits_and_survive_the_environment() -> None:
    assert [rounded_up(one) for one in (0.25, 0.251, 1.01, 12.3, 99.5)] == [0.25, 0.26, 1.1, 13.0, 100.0]
    assert [from_text(to_text(one)) for one in (0.26, None)] == [0.26, None]
    assert "0.26 seconds" in in_words(0.26)
    assert "learn about them beyond what they pay for" in in_words(None)
