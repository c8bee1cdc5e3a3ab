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
from privcfs.public.beliefs.learned import DEFAULT_DOUBT, DEFAULT_TRUST, Learned, learned_from
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


IMPOSSIBLE = {
    "doubt": (0, -1, 11, float("nan"), float("inf"), None, "much"),
    "trust": (-0.1, 1.1, float("nan")),
    "same_class": (-0.1, 1.1, float("nan")),
    "calibration": ([0, 0], [0, float("nan")], [float("inf"), 1], [1], [0, 1, 2]),
    "hidden_degrees": ([1, 1], [1, 1, 0], [float("nan"), 1, 1], [1, -1, 1]),
    "links": ([1, 1], [float("inf")] * 5),
    "degrees": ([1], [-1.0] * 129, [float("nan")] * 129),
    "shown": (-0.5, 1, float("nan"), 10**400),
}


def test_numbers_that_cannot_have_been_learned_count_as_nothing_learned() -> None:
    context = load_dataset("cora").context()
    text = learn(context, WORLDS).to_json(context, WORLDS)
    assert learned_from(text, context, WORLDS) is not None
    for name, values in IMPOSSIBLE.items():
        for value in values:
            assert learned_from(json.dumps(json.loads(text) | {name: value}), context, WORLDS) is None, (name, value)


def test_defaults_are_kept_unless_another_choice_is_clearly_better(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = learn(load_dataset("cora").context(), WORLDS)
    assert (lesson.doubt, lesson.trust) == (DEFAULT_DOUBT, DEFAULT_TRUST)
    monkeypatch.setattr(learning, "CLEARLY", -1.0)
    monkeypatch.setattr(learning, "DOUBTS", (0.8,))
    monkeypatch.setattr(learning, "TRUSTS", (0.25,))
    lesson = learn(load_dataset("cora").context(), WORLDS)
    assert (lesson.doubt, lesson.trust) == (0.8, 0.25)


def test_progress_is_told_and_an_empty_snapshot_has_stated_defaults() -> None:
    data = load_dataset("cora")
    steps: list[str] = []
    learn(data.context(), WORLDS, steps.append)
    assert len(steps) == 2
    empty = PublicContext(data.features, np.empty((0, 2), np.int64), data.model("snapshot"))
    lesson = learn(empty, WORLDS)
    assert lesson == Learned(lesson.beliefs)
