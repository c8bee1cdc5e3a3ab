"""What a vault learns from public data: deterministic, blind to the private graph, and worth having."""

import json
from pathlib import Path

import numpy as np
import pytest

from privcfs import PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.gate import learning
from privcfs.gate.learning import learn
from privcfs.private.graph import PrivateGraph
from privcfs.public.beliefs.learned import Learned, learned_from
from privcfs.public.beliefs.worlds import Worlds

WORLDS = Worlds()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "TARGETS", 40)
    monkeypatch.setattr(learning, "GRAPHS", 16)


def test_what_is_learned_is_the_same_whatever_the_private_graph(tmp_path: Path) -> None:
    data = load_dataset("cora")
    found = []
    for number, edges in enumerate((data.edges(), data.edges()[::7])):
        context = data.context()
        graph = PrivateGraph.from_edges(edges, number_of_nodes=context.number_of_nodes)
        vault = Vault(graph, context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="9", simulation=True)
        vault.release(100, "1")
        found.append(context.learned[WORLDS])
    assert found[0] == found[1]


def test_what_is_learned_is_read_back_for_the_same_context_alone() -> None:
    data = load_dataset("cora")
    context = data.context()
    lesson = learn(context, WORLDS)
    text = lesson.to_json(context, WORLDS)
    assert learned_from(text, context, WORLDS) == lesson
    assert learned_from(text, context, Worlds(disclosed=0.3)) is None
    assert learned_from(text, data.paper_context(), WORLDS) is None
    for damaged in ("", "[]", text[:-20], json.dumps(json.loads(text) | {"links": "many"})):
        assert learned_from(damaged, context, WORLDS) is None


def test_progress_is_told_and_an_empty_snapshot_has_stated_defaults() -> None:
    data = load_dataset("cora")
    steps: list[str] = []
    learn(data.context(), WORLDS, steps.append)
    assert len(steps) == 2
    empty = PublicContext(data.features, np.empty((0, 2), np.int64), data.model("snapshot"))
    lesson = learn(empty, WORLDS)
    assert lesson == Learned(lesson.beliefs)
