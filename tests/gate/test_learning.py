"""What a vault learns from public data: deterministic, blind to the private graph, and worth having."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privcfs import PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.embedded.loan import load_bank
from privcfs.gate import learning
from privcfs.gate.learning import learn
from privcfs.private.graph import PrivateGraph
from privcfs.public.beliefs.belief import Belief, Floats
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


def test_with_a_schema_changes_of_features_are_tried_and_without_one_nothing_is_different(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model of features alone decides by them whatever the edges are, so small doubts serve best, and are found."""
    tried: list[int] = []

    def noted(margins: Floats, worth: Floats, sizes: NDArray[np.int64], *rest: Any) -> Belief:
        tried.append(len(sizes))
        return Belief(margins, worth, sizes, *rest)

    monkeypatch.setattr(learning, "Belief", noted)
    monkeypatch.setattr(learning, "TARGETS", 24)
    bank = load_bank()
    context = bank.context()
    lesson = learn(context, WORLDS)
    both = {len(rule.propose(context, 0)) for rule in learning.WITH_SCHEMA}
    assert len(both) == 2, "pairs and features, and features alone"
    assert lesson.doubt in learning.FINE_DOUBTS
    plain = PublicContext(context.features, context.snapshot.pairs, context.model)
    before = learn(plain, WORLDS)
    monkeypatch.setattr(learning, "WITH_SCHEMA", ())
    monkeypatch.setattr(learning, "FINE_DOUBTS", (5.0,))
    assert learn(plain, WORLDS) == before
    assert learned_from(lesson.to_json(context, WORLDS), context, WORLDS) == lesson
    assert tried


def test_settings_are_those_under_which_what_was_observed_is_likeliest() -> None:
    """Candidates flip where the snapshot says so, at margins that are small: no doubt, and trust in the snapshot."""
    rng = np.random.default_rng(0)
    trials = []
    for _ in range(40):
        snapshot = rng.normal(0, 0.3, 30).astype(np.float32)
        margins = np.vstack([snapshot, rng.normal(0, 0.3, (8, 30)).astype(np.float32)])
        belief = Belief(margins, np.ones(30, np.float32), np.arange(30), 0.4)
        trials.append(learning._Trial(belief, (snapshot < 0) & (np.arange(30) > 0)))
    assert learning._likeliest_settings(trials) == (min(learning.FINE_DOUBTS), max(learning.MORE_TRUSTS))
    assert learning._log_score(np.array([0.5]), np.array([True])) == pytest.approx(np.log(0.5))
    assert learning._log_score(np.array([]), np.array([], np.bool_)) == 0
