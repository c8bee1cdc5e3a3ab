"""Plans for questions that read own edges alone: never counting on what will not be read, nor on luck."""

from fractions import Fraction

import numpy as np
import pytest

from privcfs import PublicContext
from privcfs.embedded import load_dataset
from privcfs.gate.method import OWN_EDGES
from privcfs.gate.own_guidance import OwnEdgeRehearsal, _belief
from privcfs.public.beliefs.belief import Belief
from privcfs.public.beliefs.own_belief import OwnBelief

PRICES = (0.01, 0.1, 1.0, 4.0, 8.0)
TARGETS = (100, 1708, 1709, 2000, 2600)


@pytest.fixture(scope="module")
def cora() -> PublicContext:
    return load_dataset("cora").context()


@pytest.fixture(scope="module", params=TARGETS)
def own(request: pytest.FixtureRequest, cora: PublicContext) -> OwnBelief:
    guide = OWN_EDGES.guide
    assert isinstance(guide, OwnEdgeRehearsal)
    return _belief(cora, guide, OWN_EDGES.candidates.propose(cora, request.param), OWN_EDGES.utility)


def by_luck(each: int, samples: int = 40, candidates: int = 60) -> OwnBelief:
    """Every candidate but the empty set is valid on half of all graphs, at random: own pairs say nothing."""
    rng = np.random.default_rng(0)
    shape = 1 + samples * each, candidates
    margins = np.where(rng.random(shape) < 0.5, -9, 9).astype(np.float32)
    sizes = np.minimum(np.arange(candidates), 1)
    belief = Belief(margins, np.ones(candidates, np.float32), sizes, 0.1)
    return OwnBelief(belief, belief, each)


@pytest.mark.parametrize("epsilon", PRICES)
def test_probabilities_sum_to_one_and_differ_by_at_most_the_price(own: OwnBelief, epsilon: float) -> None:
    chosen, _ = own.short_list(epsilon)
    law = own.probabilities(chosen, epsilon)
    assert law.shape == (len(own.likelihood), len(chosen))
    assert law.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert law.max() <= law.min() * np.exp(epsilon) * (1 + 1e-5)
    assert own.likelihood.sum() == pytest.approx(1, abs=1e-5)
    assert own.shares.shape == own.ranking.shape == (len(own.likelihood), len(own.whole.sizes))


def test_next_to_no_price_draws_the_public_guess(own: OwnBelief) -> None:
    assert own.short_list(0.0001).positions.tolist() == [own.prior.guess()]


@pytest.mark.parametrize("epsilon", PRICES)
def test_a_plan_is_worth_at_least_what_the_guess_is_alone(own: OwnBelief, epsilon: float) -> None:
    found = own.short_list(epsilon)
    alone = (own.prior.likelihood @ own.prior.valid) * own.prior.worth
    assert found.worth >= alone.max() - 1e-6
    assert len(set(found.positions.tolist())) == len(found.positions)


@pytest.mark.parametrize("epsilon", PRICES)
def test_confidences_are_probabilities(own: OwnBelief, epsilon: float) -> None:
    confidences = own.confidences(own.short_list(epsilon).positions, epsilon)
    assert ((confidences > 0) & (confidences < 1)).all()


def test_only_allowed_candidates_are_listed(own: OwnBelief) -> None:
    allowed = np.ones(len(own.whole.sizes), np.bool_)
    allowed[own.short_list(4.0).positions] = False
    assert allowed[own.short_list(4.0, allowed).positions].all()


def test_a_plan_does_not_mistake_luck_for_knowledge() -> None:
    """Of many equal candidates some look better on a sample's few graphs; ranking and judging apart finds that out."""
    whole = by_luck(6)
    found = whole.short_list(4.0)
    together = whole.whole.valid[1:].reshape(-1, 6, 60).mean(axis=1)[:, found.positions].max(axis=1).mean()
    assert 0.5 < found.worth < 0.7 < together, "if the graphs that rank also judged"
    assert by_luck(1).short_list(4.0).worth > 0.9, "a single graph cannot be divided"


def test_the_snapshot_and_each_half_count_as_they_should() -> None:
    margins = np.full((5, 3), 9, np.float32)
    margins[1:3, 1] = -9  # The first sample: candidate 1 is valid on both of its graphs,
    margins[3, 2] = -9  # the second: candidate 2 on the first of its two.
    belief = Belief(margins, np.ones(3, np.float32), np.array([0, 1, 1]), 0.1, trust=0.2)
    own = OwnBelief(belief, belief, 2)
    assert own.likelihood == pytest.approx([0.1, 0.2, 0.2] * 2)
    assert own.ranking[:, 1:] == pytest.approx(np.array([[0, 0], [1, 0], [0, 1], [0, 0], [1, 0], [0, 0]]), abs=1e-5)
    assert own.shares[:, 1:] == pytest.approx(np.array([[0, 0], [1, 0], [0, 0], [0, 0], [1, 0], [0, 1]]), abs=1e-5)


def test_a_prepared_release_says_what_its_plan_expects(cora: PublicContext) -> None:
    candidates = OWN_EDGES.candidates.propose(cora, 1708)
    prepared = OWN_EDGES.prepare(cora, candidates, Fraction(1))
    assert len(prepared.confidences) == len(candidates)
    assert prepared.expected is not None
    assert 0 < prepared.expected < 1
