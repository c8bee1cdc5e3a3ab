"""Which pairs a sketch of a large graph covers: each once, none of the snapshot, the same every time, and how many."""

import numpy as np
import pytest

from privcfs import PublicContext
from privcfs.embedded import load_dataset
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.learning import assumed_beliefs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.sketches import likeliest
from privcfs.public.sketches.likeliest import Likeliest, coverage
from tests.worlds import Pairs, random_world


def covered(universe: Likeliest) -> tuple[Pairs, int]:
    """All covered pairs, leaf after leaf, and how many held-out pairs were found."""
    leaves = [leaf for number in range(universe.pieces) for leaf in universe.piece(number)]
    pairs = [leaf.nodes[np.column_stack([leaf.first, leaf.second])] for leaf in leaves]
    return np.concatenate(pairs), sum(leaf.found for leaf in leaves)


def beliefs_of(context: PublicContext) -> Beliefs:
    return assumed_beliefs(context, Worlds())


@pytest.fixture
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeliest, "LEAF", 16)
    monkeypatch.setattr(likeliest, "TOGETHER", 2)


@pytest.mark.usefixtures("small_leaves")
@pytest.mark.parametrize("seed", range(4))
def test_every_pair_is_covered_once_at_most_and_none_of_the_snapshot(seed: int) -> None:
    context = random_world(seed, nodes=90).context
    universe = Likeliest.of(context, beliefs_of(context), 8)
    assert universe.pieces > 1
    pairs, _ = covered(universe)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert is_a_set(pairs)
    assert not context.snapshot.has_pairs(pairs).any()
    assert 0 < len(pairs) <= 90 * 8
    again, _ = covered(Likeliest.of(context, beliefs_of(context), 8))
    assert (pairs == again).all(), "the same for the same public data"


def is_a_set(pairs: Pairs) -> bool:
    """Whether no unordered pair is listed twice."""
    return len(np.unique(np.sort(pairs, axis=1), axis=0)) == len(pairs)


@pytest.mark.usefixtures("small_leaves")
def test_a_twin_that_forgets_earlier_orders_covers_a_pair_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    context = random_world(0, nodes=90).context
    barred = Likeliest._barred
    monkeypatch.setattr(Likeliest, "_barred", lambda self, _, nodes: barred(self, 0, nodes))
    assert not is_a_set(covered(Likeliest.of(context, beliefs_of(context), 8))[0])


def test_a_small_graph_covers_every_nodes_likeliest_partners() -> None:
    context = random_world(1, nodes=30).context
    universe = Likeliest.of(context, beliefs_of(context), 4)
    pairs, _ = covered(universe)
    (leaf,) = universe.piece(0)
    sums = np.zeros(30)
    for (one, other), log_weight in zip(pairs, leaf.log_weights, strict=True):
        sums[one] += np.exp(log_weight) * universe.vectors.popularity[other]
        sums[other] += np.exp(log_weight) * universe.vectors.popularity[one]
    assert leaf.sums == pytest.approx(sums, rel=1e-4)
    held_out = universe.vectors.held_out  # may have been named, but is public
    named = np.bincount(pairs.ravel(), minlength=30) + np.bincount(held_out.ravel(), minlength=30)
    possible = 29 - np.diff(context.snapshot.starts)
    assert (named >= np.minimum(4, possible)).all()


def test_the_estimated_coverage_of_hidden_pairs_is_honest() -> None:
    data = load_dataset("cora")
    context = data.paper_context()
    universe = Likeliest.of(context, beliefs_of(context), 100)
    pairs, found = covered(universe)
    edges = data.edges()
    hidden = edges[~context.snapshot.has_pairs(edges)]
    count = context.number_of_nodes
    truly = float(np.isin(hidden @ [count, 1], pairs @ [count, 1]).mean())
    estimated = coverage(found, len(universe.vectors.held_out))
    assert estimated == pytest.approx(truly, abs=0.1)
    assert truly > 0.5
    assert len(pairs) < 100 * count < 0.1 * count * (count - 1) / 2, "and covers few of all pairs"


def test_nothing_is_estimated_where_nothing_is_public() -> None:
    world = random_world(0, nodes=30)
    context = PublicContext(world.context.features, np.empty((0, 2), np.int64), world.context.model)
    universe = Likeliest.of(context, beliefs_of(context), 5)
    pairs, found = covered(universe)
    assert len(pairs)
    assert coverage(found, len(universe.vectors.held_out)) is None
