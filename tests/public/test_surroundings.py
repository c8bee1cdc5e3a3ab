"""Guidance on large graphs looks at a part of them: with right lists, right degrees, and results as good."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privcfs import GCN, Method, PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.errors import SettingsError
from privcfs.gate import guidance
from privcfs.gate.method import GUIDED
from privcfs.public.beliefs import surroundings as module
from privcfs.public.beliefs.surroundings import ROOM, Surroundings, surroundings
from privcfs.public.candidates import partners
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.tables.neighbours import Neighbours
from tests.laws import look


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> PublicContext:
    """Cora, called large."""
    context = load_dataset("cora").context()
    monkeypatch.setattr(module, "MOST_WHOLE", len(context.snapshot.others))
    return context


def pairs_of(near: Surroundings) -> set[tuple[int, int]]:
    return {(int(near.nodes[u]), int(near.nodes[w])) for u, w in near.context.snapshot.pairs}


def test_a_context_that_is_not_large_is_looked_at_as_it_is() -> None:
    context = load_dataset("cora").context()
    near = surroundings(context, (3, 9))
    assert near.context is context
    assert near.known.all()
    candidates = SmallSets().propose(context, 3)
    assert near.inside(candidates) == candidates


def test_who_is_known_has_the_pairs_of_the_snapshot_and_no_others(large: PublicContext) -> None:
    near = surroundings(large, (100, 7))
    assert len(near.nodes) < large.number_of_nodes / 2
    known = set(near.nodes[near.known].tolist())
    assert {100, 7, *large.snapshot.neighbours(100)} <= known
    assert len(known) > 100, "strangers are among them"
    found = pairs_of(near)
    for node in known:
        here = {u + w - node for u, w in found if node in (u, w)}
        assert here == set(large.snapshot.neighbours(node))
    rows = large.feature_rows(near.nodes)
    assert (near.context.features != rows).nnz == 0


def test_the_rim_has_about_as_many_pairs_as_in_the_snapshot(large: PublicContext) -> None:
    near = surroundings(large, (100,))
    rim = ~near.known
    here = near.context.snapshot.degrees(np.arange(len(near.nodes)))[rim]
    there = large.snapshot.degrees(near.nodes)[rim]
    assert rim.sum() > 100
    assert (here <= there).all()
    assert here.sum() > 0.85 * np.minimum(there, module.MOST_STUBS).sum()


def test_a_rim_that_is_left_open_is_found_out(large: PublicContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STUBS", 0)
    surroundings.cache_clear(large)
    near = surroundings(large, (100,))
    monkeypatch.undo()
    surroundings.cache_clear(large)
    rim = ~near.known
    here = near.context.snapshot.degrees(np.arange(len(near.nodes)))[rim]
    assert here.sum() < 0.85 * large.snapshot.degrees(near.nodes)[rim].sum()


def test_the_model_says_of_the_target_what_it_says_on_the_whole_snapshot(large: PublicContext) -> None:
    whole = partners.snapshot_logits(large)
    for target in (0, 100, 1000, 2000):
        near = surroundings(large, (target,), 2 * ROOM)
        here = partners.snapshot_logits(near.context)[near.place(target)]
        assert np.abs(here - whole[target]).max() < 0.05 * np.ptp(whole[target])


def test_likes_are_joined_to_likes_as_often_as_is_said() -> None:
    rng = np.random.default_rng(0)
    classes, stubs = rng.integers(4, size=400), rng.integers(12, size=400)
    for like, low, high in ((1.0, 0.98, 1.0), (0.0, 0.15, 0.35)):
        pairs = module._configuration_model(stubs, classes, like, np.random.default_rng(1))
        assert low <= (classes[pairs[:, 0]] == classes[pairs[:, 1]]).mean() <= high
        assert (np.bincount(pairs.ravel(), minlength=400) <= stubs).all()
        assert 2 * len(pairs) > 0.95 * stubs.sum()


@pytest.fixture
def with_hub(monkeypatch: pytest.MonkeyPatch) -> PublicContext:
    """Five thousand nodes, of which the first is joined to three thousand; called large."""
    nodes, rng = 5000, np.random.default_rng(0)
    hub = np.column_stack([np.zeros(3000, np.int64), np.arange(1, 3001)])
    rest = np.sort(rng.integers(1, nodes, (4000, 2)), axis=1)
    pairs = np.unique(np.concatenate([hub, rest[rest[:, 0] < rest[:, 1]]]), axis=0)
    model = GCN(rng.normal(size=(6, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32))
    monkeypatch.setattr(module, "MOST_WHOLE", 100)
    return PublicContext(rng.random((nodes, 6)), pairs, model)


def test_of_hubs_other_than_the_target_some_pairs_are_looked_at(with_hub: PublicContext) -> None:
    for named in ((1,), (1, 0)):
        near = surroundings(with_hub, named)
        assert not near.known[near.place(0)]
        assert len(near.nodes) < 2 * ROOM
        assert (0, 1) in pairs_of(near)
    near = surroundings(with_hub, (0,))
    assert near.known[near.place(0)]
    assert near.context.snapshot.degrees(np.array([near.place(0)]))[0] == len(with_hub.snapshot.neighbours(0))


def test_partners_are_sought_among_all_classes_and_not_among_hubs(
    with_hub: PublicContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    anyone = Actionability()
    assert partners._sampled_nodes(with_hub, anyone).tolist() == list(range(1, 5000))
    shortlist = partners._shortlist(with_hub, anyone)
    assert 500 < len(shortlist) == len(set(shortlist))
    assert (with_hub.snapshot.degrees(np.array(shortlist)) + 1).sum() <= partners.SHORTLISTED_PAIRS
    monkeypatch.setattr(partners, "SAMPLED_NODES", 640)
    sampled = partners._sampled_nodes(with_hub, anyone)
    assert 600 < len(sampled) <= 640
    assert np.histogram(sampled, 10, (0, 5000))[0].min() > 20, "from everywhere"


def test_settings_that_name_no_node_are_refused(with_hub: PublicContext) -> None:
    for allowed in (Actionability(frozenset({5000})), Actionability(partners=frozenset({-1}))):
        with pytest.raises(SettingsError, match=r"actionability names node (5000|-1); give numbers from 0 to 4999"):
            SmallSets(allowed=allowed).propose(with_hub, 1)


def test_a_large_graph_is_never_looked_at_as_a_whole(
    large: PublicContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    honest = Neighbours.__dict__["pairs"].fget

    def watched(snapshot: Neighbours) -> object:
        assert snapshot is not large.snapshot, "all pairs were looked at"
        return honest(snapshot)

    monkeypatch.setattr(Neighbours, "pairs", property(watched))
    graph, url = load_dataset("cora").private_graph(), f"sqlite:///{tmp_path / 'budget.db'}"
    for method in (GUIDED, Method(Ladders(), guide=guidance.Rehearsal())):
        vault = Vault(graph, large, ledger=url, limit="9", simulation=True, method=method)
        assert vault.release(100, "1").intervention in method.candidates.propose(large, 100)
        assert vault.dry_run(100, "1") in method.candidates.propose(large, 100)
    with pytest.raises(AssertionError, match="all pairs were looked at"):
        partners.snapshot_logits.__wrapped__(large)


def test_a_list_names_only_whom_the_owner_allows(large: PublicContext) -> None:
    allowed = Actionability(frozenset({14}), partners=frozenset(range(7, 2000, 7)))
    for rule in (SmallSets(allowed=allowed), Ladders(allowed=allowed)):
        for one, other in rule.propose(large, 100).additions:
            assert ({one, other} - {100}) <= allowed.partners - allowed.immutable_nodes  # type: ignore[operator]
    nobody = SmallSets(allowed=Actionability(partners=frozenset()))
    assert nobody.propose(large, 100).additions == ()
    bound = SmallSets(allowed=Actionability(frozenset({100})))
    assert bound.propose(large, 100).additions == ()


def test_what_is_prepared_is_the_same_every_time(large: PublicContext) -> None:
    again = load_dataset("cora").context()
    found = []
    for context in (large, again):
        for cache in (surroundings, partners._shortlist, guidance._belief, guidance._imagined_graphs):
            cache.cache_clear(context)
        candidates = GUIDED.candidates.propose(context, 100)
        found.append((candidates, GUIDED.prepare(context, candidates, Fraction(1))))
    assert found[0] == found[1]


def test_releases_are_as_good_as_with_the_whole_graph_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset("cora")
    found = []
    for most in (1 << 30, 0):
        monkeypatch.setattr(module, "MOST_WHOLE", most)
        graph, context = data.private_graph(), data.context()
        seen = [look(graph, context, int(target), GUIDED) for target in data.test[:40]]
        found.append([[one.flips.any(), *(one.probabilities(e) @ one.flips for e in ("1", "4"))] for one in seen])
    whole, part = np.array(found, float)
    assert (part.mean(axis=0) >= whole.mean(axis=0) - 0.03).all(), "ceiling, valid at 1, valid at 4"
