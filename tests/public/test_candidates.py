import numpy as np
import pytest
import scipy.sparse as sp

from privcfs import GCN, PublicContext
from privcfs.errors import SettingsError
from privcfs.public.candidates.pairs import OneHop, TwoHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence

NODES, FEATURES = 40, 20


def context(pairs: list[tuple[int, int]], features: np.ndarray | None = None) -> PublicContext:
    table = np.ones((NODES, FEATURES), np.float32) if features is None else features
    weights = np.arange(FEATURES, 0, -1, dtype=np.float32)[:, None] * np.ones((1, 4), np.float32)
    return PublicContext(table, pairs, GCN(weights, np.ones((4, 2), np.float32)))


STAR = [(0, other) for other in range(1, 30)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Product(features=TopInfluence(8), most_features=2), 2_923),
        (Product(), 23_621),
        (Product(features=TopInfluence(16)), 55_063),
        (Product(pairs=TwoHop()), 301 * 299),
        (Product(most_features=0), 79),
        (Product(most_pairs=0), 299),
    ],
    ids=str,
)
def test_counts_at_the_papers_settings(rule: Product, expected: int) -> None:
    assert len(rule.propose(context(STAR), 0)) == expected


def test_one_hop_takes_the_first_pairs_by_node_number() -> None:
    assert OneHop(3).pairs(context([(5, 9), (5, 2), (7, 5), (1, 2), (5, 30)]), 5) == ((2, 5), (5, 7), (5, 9))


def test_two_hop_takes_own_pairs_first_then_those_of_neighbours() -> None:
    public = context([(5, 9), (5, 2), (2, 9), (9, 30), (1, 2), (30, 31)])
    assert TwoHop().pairs(public, 5) == ((2, 5), (5, 9), (1, 2), (2, 9), (9, 30))
    assert TwoHop(3).pairs(public, 5) == ((2, 5), (5, 9), (1, 2))


def test_features_are_ranked_by_influence_and_zeros_left_out() -> None:
    table = np.zeros((NODES, FEATURES), np.float32)
    table[3, [1, 4, 7, 9]] = (1, 1, -5, 1)
    public = context([], table)
    assert TopInfluence(3).features(public, 3) == (7, 1, 4)
    assert TopInfluence().features(public, 3) == (7, 1, 4, 9)
    assert TopInfluence().features(public, 0) == ()


def test_equal_influence_is_ordered_by_number() -> None:
    public = PublicContext(
        sp.csr_array(np.ones((3, 6), np.float32)), [], GCN(np.ones((6, 2), np.float32), np.ones((2, 2), np.float32))
    )
    assert TopInfluence(4).features(public, 1) == (0, 1, 2, 3)


def test_a_target_without_pairs_or_features_gets_the_empty_set_alone() -> None:
    proposed = Product().propose(context([], np.zeros((NODES, FEATURES), np.float32)), 3)
    assert [item.size for item in proposed] == [0]


def test_a_position_outside_the_list_is_an_index_error() -> None:
    proposed = Product().propose(context(STAR), 0)
    with pytest.raises(IndexError, match="candidate 23621 of 23621"):
        proposed[23_621]


def test_negative_caps_are_refused() -> None:
    with pytest.raises(SettingsError, match="must not be negative"):
        Product(most_pairs=-1)
