"""A ledger that is set back under a running service: whoever has seen more of it, or whose head file has, refuses."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gate.test_set_back import backed_up
from tests.service.served import Served, untimed
from tests.shell import Shell, newcomer


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Shell, str]:
    """An owner's folder and the address of the ledger."""
    shell = newcomer(tmp_path)
    untimed(shell)
    url = f"sqlite:///{shell.folder / 'budget.db'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_url"))
        path = shell.folder / "vault.toml"
        path.write_text(path.read_text().replace("sqlite:///budget.db", url))
    shell.ask("budget")  # makes the ledger
    return shell, url


@pytest.fixture(params=["1", "2"], ids=["one process", "two processes"])
def service(request: pytest.FixtureRequest, place: tuple[Shell, str]) -> Iterator[Served]:
    served = Served(place[0], "--workers", request.param)
    yield served
    served.stop()


def ask(service: Served, number: int) -> Any:
    question = {"target": f"person-{number}", "epsilon": "0.5", "request_id": f"request {number}"}
    return service.ask("POST", "/v1/releases", service.owner, question)


def refuses(service: Served) -> None:
    """Every process: no answer, and no good health."""
    for number in range(6):
        found = ask(service, number)
        assert (found.status_code, found.json()["error"]) == (503, "LedgerRolledBack"), found.text
        assert "lacks row" in found.json()["message"]
    end = time.monotonic() + 5
    while service.ask("GET", "/health", None).status_code == 200 and time.monotonic() < end:
        time.sleep(0.1)
    for _ in range(6):
        health = service.ask("GET", "/health", None)
        assert health.status_code == 503
        assert "LedgerRolledBack" in health.text


def test_a_service_that_was_idle_refuses_what_the_command_line_saw(service: Served, place: tuple[Shell, str]) -> None:
    shell, url = place
    assert ask(service, 11).status_code == 200
    restore = backed_up(url)
    shell.ask("explain", "person-1", "--epsilon", "1")
    restore()
    refuses(service)
    assert shell.run("explain", "person-1", "--epsilon", "1").returncode == 6
    assert "lacks row" in shell.run("budget").stderr


def test_the_command_line_refuses_what_the_service_saw(service: Served, place: tuple[Shell, str]) -> None:
    shell, url = place
    restore = backed_up(url)
    for number in range(3):
        assert ask(service, number + 6).status_code == 200
    restore()
    assert "lacks row" in shell.run("explain", "person-1", "--epsilon", "1").stderr
    refuses(service)


def test_a_fork_of_the_same_length_is_refused_too(service: Served, place: tuple[Shell, str]) -> None:
    """Somebody without the head file goes on with the old copy until it is as long as what was seen."""
    shell, url = place
    restore = backed_up(url)
    assert ask(service, 7).status_code == 200
    head = (shell.folder / "head.json").read_text()
    restore()
    text = (shell.folder / "vault.toml").read_text()
    (shell.folder / "headless.toml").write_text(text.replace('head = "head.json"', ""))
    for _ in range(2):
        shell.ask("explain", "person-1", "--epsilon", "0.1", "--vault", "headless.toml")
    refuses(service)
    assert (shell.folder / "head.json").read_text() == head, "the head file does not move to the other chain"
