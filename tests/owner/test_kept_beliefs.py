"""What a vault learns is kept beside its vault file."""

from pathlib import Path

import pytest

from privcfs.embedded import load_dataset
from privcfs.gate import learning
from privcfs.gate.method import GUIDED, Method
from privcfs.owner.kept_beliefs import NAME, recall_or_learn


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "TARGETS", 10)


def test_beliefs_are_learned_once_and_kept(tmp_path: Path) -> None:
    data, path = load_dataset("cora"), tmp_path / NAME
    steps: list[str] = []
    first, second, third = data.paper_context(), data.paper_context(), data.paper_context()
    recall_or_learn(path, first, GUIDED, steps.append)
    assert len(steps) == 2
    recall_or_learn(path, second, GUIDED, steps.append)
    assert len(steps) == 2, "read, not learned"
    assert first.learned == second.learned
    path.write_text("damaged")
    recall_or_learn(path, third, GUIDED, steps.append)
    assert len(steps) == 4, "learned anew"
    assert third.learned == first.learned


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    context = load_dataset("cora").paper_context()
    recall_or_learn(tmp_path / "missing" / NAME, context, GUIDED)
    assert context.learned


def test_a_method_without_a_guide_learns_nothing(tmp_path: Path) -> None:
    context = load_dataset("cora").paper_context()
    recall_or_learn(tmp_path / NAME, context, Method())
    assert not context.learned
    assert not (tmp_path / NAME).exists()
