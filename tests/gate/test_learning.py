"""What a vault learns from public data: deterministic, blind to the private graph, and worth having."""

import json
from pathlib import Path

import numpy as np
import pytest

from privcfs import PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.embedded.loan import Bank, load_bank
from privcfs.gate import learning, schema_trials
from privcfs.gate.learning import learn
from privcfs.gate.sketch_trials import Stage, stage_of
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


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> Bank:
    """A made-up bank, of which little is tried."""
    monkeypatch.setattr(schema_trials, "TARGETS", 16)
    return load_bank()


def test_what_is_learned_with_a_schema_is_the_same_whatever_the_private_graph(bank: Bank, tmp_path: Path) -> None:
    found = []
    for number, edges in enumerate((bank.pairs, bank.pairs[::7])):
        context = bank.context(bank.model())
        graph = PrivateGraph.from_edges(edges, number_of_nodes=context.number_of_nodes)
        vault = Vault(graph, context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="9", simulation=True)
        vault.release(100, "1")
        found.append(context.learned[WORLDS])
    assert found[0] == found[1]
    assert found[0].own is not None, "numbers of their own for advice"


def test_a_learner_that_tries_answers_on_the_private_graph_is_found_out(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of the claim above."""
    found = []
    for edges in (bank.pairs, bank.pairs[::7]):
        private = bank.context(bank.model())
        whole = PublicContext(private.features, edges, private.model, schema=private.schema)

        def peeking(context: PublicContext, worlds: Worlds, whole: PublicContext = whole) -> Stage:
            return stage_of(context, worlds)._replace(whole=whole)

        monkeypatch.setattr(learning, "stage_of", peeking)
        found.append(learn(private, WORLDS))
    assert found[0] != found[1]


def test_without_a_schema_nothing_of_it_is_learned(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the twin: with one, what is tried decides."""
    context = bank.context(bank.model())
    lesson = learn(context, WORLDS)
    plain = PublicContext(context.features, context.snapshot.pairs, context.model)
    before = learn(plain, WORLDS)
    assert (before.blend, before.own, before.beliefs.closure) == (0.0, None, 0.0)
    assert before.knowing_own is before
    assert lesson.knowing_own.doubt == lesson.own.doubt if lesson.own else False
    assert 0 < lesson.beliefs.closure < 1, "colleagues of colleagues are colleagues"
    for name, values in (("DOUBTS", (5.0,)), ("TRUSTS", (0.4,)), ("BLENDS", (0.6,))):
        monkeypatch.setattr(schema_trials, name, values)
    assert learn(plain, WORLDS) == before
    other = learn(context, WORLDS)
    assert (other.doubt, other.trust, other.blend) == (5.0, 0.4, 0.6)


def test_what_is_learned_with_a_schema_is_read_back(bank: Bank) -> None:
    context = bank.context(bank.model())
    lesson = learn(context, WORLDS)
    text = lesson.to_json(context, WORLDS)
    assert learned_from(text, context, WORLDS) == lesson
    wrong = {"own": [0.2, 0.1, 1.5, 0, 1], "blend": -0.1, "closure": float("nan")}
    for name, value in (*wrong.items(), ("own", [0.2]), ("own", [0, 0.1, 0.5, 0, 1])):
        assert learned_from(json.dumps(json.loads(text) | {name: value}), context, WORLDS) is None, name


def test_both_kinds_of_lists_are_tried_and_a_person_knows_her_own_pairs(bank: Bank) -> None:
    stage = stage_of(bank.context(bank.model()), WORLDS)
    for knows_own in (False, True):
        trials = schema_trials.schema_trials(stage, stage.shown, stage.beliefs, knows_own)
        largest = {int(one.sizes.max()) for one in trials}
        assert largest == {2, 3}, "pairs and features, and features alone"
        spread = [float(one.logits[0].std(axis=1).max()) for one in trials]
        assert max(spread) > 0


def test_settings_are_those_under_which_what_was_observed_is_likeliest() -> None:
    """Changes do on every graph what they do on the stage, and the snapshot has the right level: it is taken over."""
    rng, trials = np.random.default_rng(0), []
    for _ in range(40):
        level, effect = rng.normal(0, 0.5, 9), rng.normal(0, 0.5, 30)
        effect[0] = 0
        margin = (level[None] + effect[:, None]).astype(np.float32)
        logits = np.stack([margin, np.zeros_like(margin)], axis=1)
        flips = (margin[:, 0] < 0) != (margin[0, 0] < 0)
        trials.append(schema_trials.SchemaTrial(logits, np.arange(30), flips))
    found = schema_trials.tuned(trials)
    assert (found.blend, found.doubt) == (max(schema_trials.BLENDS), min(schema_trials.DOUBTS))
    assert schema_trials._log_score(np.array([0.5]), np.array([True])) == pytest.approx(np.log(0.5))
    assert schema_trials._log_score(np.array([]), np.array([], np.bool_)) == 0
