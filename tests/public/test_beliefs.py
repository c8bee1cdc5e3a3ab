"""Beliefs about hidden pairs: sampled near the target, the same for the same public data, and true to the evaluator."""

from dataclasses import replace

import numpy as np
import pytest

from privcfs import PublicContext
from privcfs.embedded import load_dataset
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.beliefs import pool as pool_module
from privcfs.public.beliefs.belief import Belief, Calibration, margins_of
from privcfs.public.beliefs.gcn_outcomes import logits_on_imagined
from privcfs.public.beliefs.hidden_degrees import Growing, SameForAll, Thinned, at_least_one, fit_growing, fit_thinned
from privcfs.public.beliefs.imagined import Beliefs, Sampling, imagine
from privcfs.public.beliefs.learning import assumed_beliefs, learn_beliefs, split_snapshot
from privcfs.public.beliefs.links import Anyone, Evidence, LogLinear, mean_log_likelihood, probabilities
from privcfs.public.beliefs.local_graphs import local_graphs
from privcfs.public.beliefs.pool import pool_of
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.tables.neighbours import places
from tests.schemas import schema_world

BELIEFS = Beliefs(LogLinear(), Growing(1.0, 0.5, 4.0), 0.7)


@pytest.fixture(scope="module")
def cora() -> PublicContext:
    return load_dataset("cora").context()


def test_imagined_graphs_are_the_same_for_the_same_public_data(cora: PublicContext) -> None:
    candidates = SmallSets().propose(cora, 100)
    data = load_dataset("cora")
    first, second = (imagine(one, BELIEFS, candidates, Sampling(16)) for one in (cora, data.context()))
    for name in ("nodes", "own_graph", "own_row", "hidden_degree", "hidden_owner", "hidden_partner", "variant"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_imagined_pairs_are_new_and_as_many_as_are_believed_hidden(cora: PublicContext) -> None:
    counts = []
    for target in load_dataset("cora").test[:40].tolist():
        candidates = SmallSets().propose(cora, target)
        imagined = imagine(cora, BELIEFS, candidates, Sampling(64))
        ends = imagined.nodes[imagined.own_row]
        barred = {target, *cora.snapshot.neighbours(target), *(node for one in candidates.additions for node in one)}
        assert not barred & set(ends.tolist())
        assert len(set(zip(imagined.own_graph.tolist(), ends.tolist(), strict=True))) == len(ends), "each pair once"
        assert (imagined.own_graph > 0).all(), "the first graph is the snapshot"
        counts.append(len(ends) / 64 / (1.0 + 0.5 * len(imagined.neighbours)))
    assert 0.8 < np.mean(counts) < 1.05


def test_a_hub_gets_fewer_graphs(cora: PublicContext) -> None:
    star = np.array([(0, other) for other in range(1, 2000)])
    context = PublicContext(cora.features, star, cora.model)
    imagined = imagine(context, BELIEFS, SmallSets().propose(context, 0), Sampling(128))
    assert imagined.number == 1 + 8


@pytest.mark.parametrize(("rule", "agreement"), [(SmallSets(), 0.97), (Ladders(3), 0.95)], ids=["sets", "ladders"])
def test_all_imagined_graphs_at_once_agree_with_the_exact_evaluator_on_each(
    cora: PublicContext, rule: SmallSets | Ladders, agreement: float
) -> None:
    """Operations are added up in the fast way, and the inner degrees are expectations, so margins agree roughly."""
    known = replace(BELIEFS, hidden_degrees=Growing(0.0, 0.0, 1.0))
    agree, differences = [], []
    for target in load_dataset("cora").test[:12].tolist():
        candidates = rule.propose(cora, target)
        imagined = imagine(cora, known, candidates, Sampling(8))
        fast = margins_of(logits_on_imagined(cora, known.hidden_degrees, imagined, candidates))
        local = local_graphs(cora, imagined, candidates, 9)
        for number, pairs in enumerate(local.pairs):
            graph = PrivateGraph.from_pairs(pairs, local.features.shape[0])
            exact = evaluate(graph, local, local.candidates, UNLIMITED).logits
            margins = margins_of(np.ascontiguousarray(exact.T)[:, :, None])[0]
            agree.append(((margins < 0) == (fast[number] < 0)).mean())
            differences.append(np.abs(margins - fast[number]).mean())
    assert np.mean(agree) > agreement
    assert np.mean(differences) < 0.2


def test_changes_of_features_are_believed_as_they_are_evaluated() -> None:
    """Sets of changes are added up in the fast way, so single ones agree better than sets."""
    known = replace(BELIEFS, hidden_degrees=Growing(0.0, 0.0, 1.0))
    agree: dict[int, list[float]] = {1: [], 3: []}
    for seed in range(12):
        context = schema_world(seed, nodes=40).context
        for most in agree:
            candidates = Recourse(most).propose(context, 0)
            imagined = imagine(context, known, candidates, Sampling(8))
            fast = margins_of(logits_on_imagined(context, known.hidden_degrees, imagined, candidates))
            local = local_graphs(context, imagined, candidates, 9)
            for number, pairs in enumerate(local.pairs):
                graph = PrivateGraph.from_pairs(pairs, local.features.shape[0])
                exact = evaluate(graph, local, local.candidates, UNLIMITED).logits
                margins = margins_of(np.ascontiguousarray(exact.T)[:, :, None])[0]
                agree[most].append(float(((margins < 0) == (fast[number] < 0)).mean()))
    assert np.mean(agree[1]) > 0.98
    assert np.mean(agree[3]) > 0.98


def test_pairs_beyond_the_target_are_believed_to_do_nothing(cora: PublicContext) -> None:
    rule = SmallSets(deletions=TwoHop(12), partners=Partners(beyond=2))
    candidates = rule.propose(cora, 100)
    beyond = [number for number, one in enumerate(candidates) if one.size == 1 and one.add and 100 not in one.add[0]]
    logits = logits_on_imagined(
        cora, BELIEFS.hidden_degrees, imagine(cora, BELIEFS, candidates, Sampling(8)), candidates
    )
    assert beyond
    assert np.allclose(logits[beyond], logits[:1], atol=1e-4)


def test_local_graphs_hold_the_snapshot_near_the_target(cora: PublicContext) -> None:
    candidates = SmallSets().propose(cora, 100)
    imagined = imagine(cora, BELIEFS, candidates, Sampling(4))
    local = local_graphs(cora, imagined, candidates, 3)
    assert len(local.pairs) == 3
    degree = len(cora.snapshot.neighbours(100))
    for number, pairs in enumerate(local.pairs):
        own = int((imagined.own_graph == number).sum())
        assert (pairs == local.candidates.target).any(axis=1).sum() == degree + own
    assert local.candidates.deletions
    assert len(local.candidates) == len(candidates)


def test_a_link_model_learns_what_a_trivial_one_does_not_know(cora: PublicContext) -> None:
    split = split_snapshot(cora, 0.5)
    assert len(split.hidden) + len(split.shown.snapshot.pairs) == len(cora.snapshot.pairs)
    pool = pool_of(split.shown)
    pairs = split.hidden[:150]
    evidence = [Evidence.of(split.shown, int(one)) for one in pairs[:, 0]]
    partners = places(pool.nodes, pairs[:, 1])
    fitted = learn_beliefs(cora, Worlds()).links
    trivial, learned = (mean_log_likelihood(model, evidence, partners) for model in (Anyone(), fitted))
    assert learned > trivial + 1
    chances = probabilities(fitted, evidence[0])
    assert chances.sum() == pytest.approx(1, abs=1e-3)
    assert (chances[~evidence[0].possible] == 0).all()


def test_a_law_of_hidden_degrees_recovers_what_it_was_sampled_from() -> None:
    rng = np.random.default_rng(0)
    public = rng.poisson(3, 20_000)
    law = Growing(1.0, 0.5, 3.0)
    fitted = fit_growing(public, law.sample(public, rng), 2.5, 3.0)
    assert fitted.slope == pytest.approx(0.5, abs=0.05)
    assert fitted.base == pytest.approx(1.0, abs=0.15)
    assert fitted.shape == pytest.approx(3.0, rel=0.25)
    assert SameForAll(2.0).sample(public, rng).mean() == pytest.approx(2, abs=0.05)


def test_thinning_tells_nodes_that_show_nothing_from_nodes_that_have_nothing() -> None:
    rng = np.random.default_rng(0)
    for without in (0.0, 0.3):
        whole = np.where(rng.random(20_000) < without, 0, 1 + rng.poisson(rng.gamma(1.0, 3.0, 20_000)))
        public = rng.binomial(whole, 0.5)
        law = fit_thinned(public, 0.5, Growing(1.0, 1.0, 2.0))
        assert law.degrees[0] == pytest.approx(without, abs=0.03)
        for degree in (0, 1, 4):
            hidden = (whole - public)[public == degree]
            sampled = law.sample(np.full(20_000, degree), rng)
            assert sampled.mean() == pytest.approx(hidden.mean(), abs=0.2)
            assert (sampled == 0).mean() == pytest.approx((hidden == 0).mean(), abs=0.06)


def test_thinning_leaves_large_and_impossible_degrees_to_another_law() -> None:
    rng = np.random.default_rng(0)
    law = Thinned((0.0, 0.0, 1.0, *[0.0] * 126), 0.5, Growing(0.0, 1000.0, 100.0))
    sampled = law.sample(np.array([0, 1, 2, 3, 5000]), rng)
    assert sampled[:3].tolist() == [2, 1, 0]
    assert (sampled[3:] > 1000).all()
    assert len(law.sample(np.empty(0, np.int64), rng)) == 0


def test_where_nothing_is_shown_every_node_has_a_pair() -> None:
    rng = np.random.default_rng(0)
    sampled = at_least_one(4.0, 2.0).sample(np.zeros(20_000, np.int64), rng)
    assert sampled.min() == 1
    assert sampled.mean() == pytest.approx(4, abs=0.1)
    assert at_least_one(1.0, 2.0).sample(np.zeros(9, np.int64), rng).tolist() == [1] * 9
    assert at_least_one(0.5, 2.0) == Growing(0.5, 0.0, 2.0)


def test_without_a_snapshot_stated_defaults_are_used(cora: PublicContext) -> None:
    empty = PublicContext(cora.features, np.empty((0, 2), np.int64), cora.model)
    worlds = Worlds(disclosed=0.0, degree=4)
    assert learn_beliefs(empty, worlds) == assumed_beliefs(empty, worlds)
    assert learn_beliefs(empty, worlds).hidden_degrees == at_least_one(4.0, 2.0)
    candidates = SmallSets().propose(empty, 3)
    imagined = imagine(empty, assumed_beliefs(empty, worlds), candidates, Sampling(200))
    assert 3 < len(imagined.own_row) / 200 <= 4.5


def test_of_a_large_graph_a_sample_stands_for_the_rest(cora: PublicContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "MOST_NODES", 200)
    context = PublicContext(cora.features, cora.snapshot.pairs, cora.model)
    pool = pool_of(context)
    assert 150 < len(pool.nodes) <= 200
    imagined = imagine(context, BELIEFS, SmallSets().propose(context, 100), Sampling(32))
    assert set(imagined.nodes[imagined.own_row].tolist()) <= set(pool.nodes.tolist())
    assert len(imagined.hidden_degree) == len(imagined.variant_row)


def test_a_desired_class_has_margins_of_its_own() -> None:
    logits = np.array([[[2.0], [1.0], [0.0]], [[0.0], [3.0], [1.0]], [[0.0], [1.0], [3.0]]], np.float32)
    assert margins_of(logits.copy())[0].tolist() == [1, -3, -3]
    assert margins_of(logits.copy(), 2)[0].tolist() == [2, 2, -2]
    assert np.isinf(margins_of(logits.copy(), 0)).all()


def test_confidence_is_bayes_rule_over_imagined_graphs() -> None:
    """Two candidates of one size and two graphs, each valid on one of them, with next to no doubt."""
    margins = np.array([[9, 9, 9], [9, -9, 9], [9, 9, -9]], np.float32)
    belief = Belief(margins, np.ones(3, np.float32), np.array([0, 1, 1]), 0.1)
    chosen = np.array([1, 2])
    odds = float(np.exp(1.0))
    assert belief.probabilities(chosen, 1.0)[1:] == pytest.approx(
        np.array([[odds, 1], [1, odds]]) / (1 + odds), abs=1e-5
    )
    assert belief.confidences(chosen, 1.0) == pytest.approx([odds / (1 + odds)] * 2, abs=1e-5)
    flat = Belief(margins, np.ones(3, np.float32), np.array([0, 1, 1]), 0.1, calibration=Calibration(0.0, 0.1))
    assert 0.5 < flat.confidences(chosen, 1.0)[0] < 0.6
