"""Known attacks: they succeed where nothing protects, fail on public data, and victims answer as they say."""

from fractions import Fraction

import numpy as np
import pytest

from privcfs.gate.mechanisms.exponential import Exponential
from privcfs_lab.attacks import ATTACKS
from privcfs_lab.attacks.attack import Guesses, Told, balanced_pairs, open_problem, problem_of, success
from privcfs_lab.attacks.denoising import Denoising, _Prior
from privcfs_lab.attacks.victims import VICTIMS, AdviceToOthers, Masks, NoisyGraph, Released, Sketched
from privcfs_lab.audit.adjacent import neighbours
from privcfs_lab.audit.checks import as_pairs
from privcfs_lab.baselines.rr_ldp import WRONG
from privcfs_lab.measuring.simulate import HALF, Simulation
from privcfs_lab.measuring.targets import POPULATIONS


@pytest.fixture(scope="module")
def cora() -> Simulation:
    return Simulation("cora", 0)


def guessed(scores: list[float], truth: list[bool]) -> Guesses:
    return Guesses(np.array(scores), np.array(truth), np.arange(len(scores)))


def test_success_counts_ties_half_and_knows_its_error() -> None:
    truth = [True, True, False, False]
    assert success(guessed([1, 1, 0, 0], truth)).auc == 1
    assert success(guessed([1, 1, 0, 0], truth)).advantage == 1
    assert success(guessed([0, 0, 0, 0], truth)).auc == 0.5
    assert success(guessed([0, 0, 0, 0], truth)).advantage == 0
    assert success(guessed([1, 0, 1, 0], truth)).auc == 0.5


def test_a_useless_score_has_no_advantage_and_its_interval_says_so() -> None:
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(30):
        many = success(guessed(rng.random(400).tolist(), (rng.random(400) < 0.5).tolist()))
        gains.append(many.advantage)
        assert abs(many.auc - 0.5) < 2 * many.auc_error < 0.15
    assert abs(np.mean(gains)) < 0.02


def test_guesses_about_one_target_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 20)
    truth = rng.random(200) < 0.5
    scores = np.where(group < 5, truth, rng.random(200))
    together = success(Guesses(scores, truth, group)).auc_error
    assert together > 1.5 * success(Guesses(scores, truth, np.arange(200))).auc_error


def test_exact_success_is_averaged() -> None:
    exact = success(Guesses(np.array([0.5, 0.7]), np.ones(2, np.bool_), np.arange(2), np.array([0.0, 0.3])))
    assert exact.auc == pytest.approx(0.6)
    assert exact.advantage == pytest.approx(0.15)


def test_pairs_are_hidden_edges_and_pairs_that_are_none(cora: Simulation) -> None:
    pairs, truth = balanced_pairs(cora, 40)
    edges, shown = ({tuple(pair) for pair in one.tolist()} for one in (cora.data.pairs, cora.snapshot(HALF)))
    for pair, edge in zip(pairs.tolist(), truth, strict=True):
        assert (tuple(pair) in edges) == edge
        assert tuple(pair) not in shown


def test_an_open_method_names_the_edges_and_ours_cannot(cora: Simulation) -> None:
    names = ATTACKS["reading the names"]
    assert success(names.guesses(VICTIMS["CF-GNNExplainer"], cora, 1)).auc == 1
    assert success(names.guesses(VICTIMS["PrivCF-out"], cora, 1)).auc == 1
    for victim in ("public data alone", "ours, 7.2 an answer", "ours, 7.2 in all"):
        assert success(names.guesses(VICTIMS[victim], cora, 2)).auc == 0.5


def test_switching_features_off_changes_open_answers_about_neighbours_alone(cora: Simulation) -> None:
    guesses = ATTACKS["LinkTeller"].guesses(VICTIMS["CF-GNNExplainer"], cora, 2)
    assert success(guesses).auc > 0.95
    assert (guesses.scores[~guesses.truth] == 0).mean() > 0.5


def test_the_likelihood_ratio_is_exact_for_every_victim(cora: Simulation) -> None:
    problem, rng = open_problem(cora), np.random.default_rng(0)
    target = int(cora.data.split.test[5])
    (deleted, other), *_ = neighbours(cora.data.pairs, target, rng)
    assert deleted
    ceiling = (1 + Exponential().advantage(Fraction("7.2"))) / 2
    assert 0.5 <= Released().told_apart(problem, target, other).auc <= ceiling
    assert Released().told_apart(problem, target, cora.data.pairs).auc == pytest.approx(0.5)
    assert NoisyGraph().told_apart(problem, target, other) == Told(1 - WRONG, 1 - 2 * WRONG)
    assert Masks(deviation=0.0).told_apart(problem, target, cora.data.pairs) == Told(0.5, 0)
    assert Masks(deviation=0.0).told_apart(problem, target, other) == Told(1, 1)
    noisy, drowned = (Masks(deviation=sigma).told_apart(problem, target, other) for sigma in (1.0, 100.0))
    assert 0.5 < drowned.auc < noisy.auc <= 1
    assert noisy.advantage <= 2 * noisy.auc - 1 + 1e-12


def test_a_price_for_all_answers_is_divided(cora: Simulation) -> None:
    assert Released(whole=True)._each(10) == "0.720000000"
    assert Released()._each(10) == "7.2"
    assert len(Released(whole=True).answers(problem_of(cora, [1, 2]))) == 2


def test_reconstruction_learns_nothing_from_public_data_and_more_from_more_answers(cora: Simulation) -> None:
    few, many = ATTACKS["reconstruction, 1 answer"], ATTACKS["reconstruction, 100 answers"]
    assert success(many.guesses(VICTIMS["public data alone"], cora, 2)).auc == 0.5
    assert success(few.guesses(VICTIMS["RR-LDP"], cora, 3)).auc > 0.98
    dear = Released(epsilon="64")
    assert success(many.guesses(dear, cora, 4)).auc > success(few.guesses(Released(epsilon="1"), cora, 4)).auc


def test_a_posterior_mean_takes_noise_away() -> None:
    rng = np.random.default_rng(0)
    clean = np.where(rng.random(2000) < 0.5, -3.0, 1.0)
    told = [{("feature", number, 0): float(value)} for number, value in enumerate(clean)]
    noisy = [{name: value + float(rng.normal()) for name, value in one.items()} for one in told]
    means = _Prior.of(told, noise=1.0).means(noisy)
    before, after = (
        np.mean([(next(iter(one.values())) - value) ** 2 for one, value in zip(seen, clean, strict=True)])
        for seen in (noisy, means)
    )
    assert after < 0.35 * before
    assert _Prior.of(told, noise=0.0).means(noisy) == noisy


def test_denoising_finds_what_an_open_method_names_and_little_beyond_public_data_in_ours(cora: Simulation) -> None:
    names = Denoising(names=True)
    assert success(names.guesses(VICTIMS["CF-GNNExplainer"], cora, 2)).auc == 1
    public = success(names.guesses(VICTIMS["public data alone"], cora, 10)).auc
    assert 0.6 < public < 1
    assert success(names.guesses(VICTIMS["ours, 7.2 in all"], cora, 10)).auc < public + 0.1
    assert success(names.guesses(VICTIMS["advice, an outsider"], cora, 4)).auc < 1


def test_half_of_the_noise_is_a_victim_of_its_own() -> None:
    assert VICTIMS["PrivCF-out"].noise == 2 * VICTIMS["PrivCF-out, half noise"].noise
    assert VICTIMS["PrivCF-out"].quiet() == VICTIMS["CF-GNNExplainer"]
    assert "14.4 an entry" in VICTIMS["PrivCF-out, half noise"].price


def test_an_outsider_is_told_the_same_whatever_pairs_the_target_has(cora: Simulation) -> None:
    """Advice to a friend of the target, who is at no end of the pairs that differ."""
    problem = problem_of(cora, POPULATIONS["borderline"](cora)[:1])
    target = problem.targets[0]
    hidden = [pair for pair in cora.data.pairs.tolist() if target in pair]
    shown = {tuple(pair) for pair in cora.snapshot(HALF).tolist()}
    stranger = next(node for node in range(100) if node != target and [target, node] not in hidden)
    changed = {tuple(pair) for pair in cora.data.pairs.tolist()} ^ {(min(target, stranger), max(target, stranger))}
    changed -= {tuple(pair) for pair in hidden if tuple(pair) not in shown}
    other = problem.on(as_pairs(changed))
    advice = AdviceToOthers()
    assert advice.answers(problem) == advice.answers(other)
    assert any(advice.answers(problem))


def test_a_sketch_tells_a_pair_by_its_coin_and_counts_and_a_public_one_not_at_all(cora: Simulation) -> None:
    problem = open_problem(cora)
    shown = {tuple(pair) for pair in cora.snapshot(HALF).tolist()}
    pairs = {tuple(pair) for pair in cora.data.pairs.tolist()}
    hidden, public = sorted(pairs - shown)[0], sorted(shown)[0]
    told = [Sketched(price).told_apart(problem, 0, as_pairs(pairs - {hidden})).auc for price in ("2", "4", "7.2")]
    assert 0.5 < told[0] < told[1] < told[2] < 1
    for price, auc in zip((2, 4, 7.2), told, strict=True):
        assert auc <= 1 / (1 + np.exp(-price)) + 1e-9
    assert Sketched().told_apart(problem, 0, as_pairs(pairs - {public})) == Told(0.5, 0)


def test_a_sketch_is_the_same_for_all_who_ask(cora: Simulation) -> None:
    problem = problem_of(cora, [5, 9])
    assert Sketched("2").answers(problem) == Sketched("2").answers(problem)
    assert all(name[0] == "class" for answer in Sketched("2").answers(problem) for name in answer)
    few = ATTACKS["reconstruction, 1 answer"]
    assert success(few.guesses(Sketched(), cora, 3)).auc > 0.9
