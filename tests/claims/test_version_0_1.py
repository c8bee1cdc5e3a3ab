"""A vault file, a ledger, a head, a tie, certificates and keys that version 0.1 wrote are read as they are.

The folder `tests/version_0_1` was made by version 0.1.0 (commit 2928294) with its own commands, on the made-up graph of
`tests/shell.py`: two releases, a verdict, a choice, and a key with a cap.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from privcfs.errors import LedgerRolledBack, VerificationFailed
from tests.shell import Shell

FOLDER = Path(__file__).parent.parent / "version_0_1"


@pytest.fixture
def old(tmp_path: Path) -> Shell:
    """A copy of what version 0.1 left."""
    shutil.copytree(FOLDER, tmp_path / "old")
    return Shell(tmp_path / "old")


def stored(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def test_its_ledger_opens_and_keeps_its_account(old: Shell) -> None:
    budget = old.ask("budget")
    assert (budget["spent"], budget["left"], budget["answers"]) == ("2.75", "7.25", 4)
    assert budget["head"] == stored("head.json")
    (key,) = [old.ask("keys", "list")]
    assert (key["analyst"], key["cap"], key["revoked"]) == ("ann", "2", None)


def test_its_paid_answers_come_back_word_for_word(old: Shell) -> None:
    assert old.ask("explain", "person-3", "--epsilon", "1", "--request-id", "first") == stored("release.json")
    verdict = old.ask("confirm", "release.json", "--epsilon", "1", "--request-id", "third")
    assert stored("verdict.json").items() <= verdict.items()
    choice = old.ask("select", "person-1", "person-2", "person-5", "--epsilon", "0.25", "--request-id", "fourth")
    assert stored("choice.json").items() <= choice.items()
    assert old.ask("budget")["spent"] == "2.75", "nothing is paid twice"


def test_its_certificate_verifies_and_a_changed_one_does_not(old: Shell) -> None:
    assert old.run("verify", "release.json").returncode == 0
    forged = stored("release.json") | {"epsilon": "0.5"}
    (old.folder / "forged.json").write_text(json.dumps(forged))
    old.fails(VerificationFailed, "verify", "forged.json")


def test_it_answers_new_questions_and_a_lost_row_is_noticed(old: Shell) -> None:
    before = (old.folder / "budget.db").read_bytes()
    assert old.ask("explain", "person-5", "--epsilon", "0.5", "--analyst", "ann")["epsilon"] == "0.5"
    assert old.ask("budget")["spent"] == "3.25"
    (old.folder / "budget.db").write_bytes(before)
    old.fails(LedgerRolledBack, "budget")
