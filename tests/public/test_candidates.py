import numpy as np
import pytest
import scipy.sparse as sp

from privcfs import GCN, Intervention, PublicContext
from privcfs.errors import SettingsError
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.beyond import Beyond
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.nothing import Nothing
from privcfs.public.candidates.pairs import LinkPredictor, OneHop, TwoHop
from privcfs.public.candidates.partners import Partners, score_partners
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.candidates.top_influence import TopInfluence
from tests.schemas import schema_world
from tests.worlds import random_gcn

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


def test_sampled_sets_are_a_public_draw_that_keeps_every_single_element() -> None:
    public = context(STAR)
    rule = SmallSets(5, sampled=500)
    found, again, other = (rule.propose(public, target) for target in (0, 0, 1))
    assert found.pair_sets == again.pair_sets
    assert found.pair_sets != other.pair_sets
    assert len(set(found.pair_sets)) == len(found.pair_sets)
    singles = {one for one in found.pair_sets if len(one) == 1}
    assert len(singles) == len(found.deletions) + len(found.additions)
    larger = [one for one in found.pair_sets if len(one) > 1]
    assert 400 < len(larger) <= 500
    assert {len(one) for one in larger} == {2, 3, 4, 5}
    assert found.sizes.max() == 5
    assert SmallSets(2, sampled=500).propose(public, 0) == SmallSets(2).propose(public, 0)


def test_partners_two_steps_away_join_a_neighbour_to_someone_new() -> None:
    public = context([(0, 1), (0, 2), (1, 3)])
    near = Partners(away=3, towards=0, rivals=0).pairs(public, 0, Actionability())
    found = Partners(away=3, towards=0, rivals=0, beyond=5).pairs(public, 0, Actionability())
    assert found[:3] == near
    assert len(found) == 8
    assert all(0 not in pair and {1, 2} & set(pair) for pair in found[3:])
    assert (1, 3) not in found
    kept = Partners(away=3, towards=0, rivals=0, beyond=5).pairs(
        public, 0, Actionability(immutable_nodes=frozenset({1}))
    )
    assert len(kept) == 6
    assert not [pair for pair in kept if 1 in pair]


def test_a_link_predictor_never_joins_a_node_to_itself() -> None:
    assert len(LinkPredictor(NODES).pairs(context([]), 3)) == NODES - 1


@pytest.mark.parametrize(
    "start",
    [
        Intervention(),
        Intervention(mask=(4,)),
        Intervention(delete=((0, 1),), add=((0, 33),)),
        Intervention(delete=((5, 9),), add=((0, 2),), mask=(0, 19)),
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [SmallSets(), Product(OneHop(3), TopInfluence(2))], ids=["sets", "product"])
def test_what_goes_beyond_an_answer_contains_it(start: Intervention, rule: SmallSets | Product) -> None:
    found = Beyond(start, rule).propose(context(STAR), 0)
    listed = list(found)
    assert listed[0] == Intervention()
    assert len(set(listed)) == len(listed)
    assert start in listed
    assert max(one.size for one in listed) > start.size
    assert found.sizes.max() <= found.caps.largest
    whole = [one for one in listed if len(one.delete + one.add) and one.mask]
    assert whole
    for one in whole:
        assert set(start.delete) <= set(one.delete)
        assert set(start.add) <= set(one.add)
        assert set(start.mask) <= set(one.mask)


@pytest.mark.parametrize("rule", [SmallSets(), Ladders(2)], ids=["sets", "ladders"])
def test_a_person_deletes_her_own_pairs_and_joins_nobody_she_is_joined_to(rule: SmallSets | Ladders) -> None:
    public = context(STAR)
    own = ((0, 2), (0, 31), (0, 33))
    found = rule.knowing(own).propose(public, 0)
    assert found.deletions == own
    assert found.additions
    assert not set(own) & set(found.additions)


@pytest.mark.parametrize("seed", range(4))
def test_a_person_is_judged_by_her_own_pairs_and_by_the_snapshot_elsewhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = (rng.random((NODES, FEATURES)) < 0.5).astype(np.float32)
    near = [(3, 7), (3, 8), (4, 9)]
    public = PublicContext(features, [(2, 3), (2, 5), *near, (20, 21)], random_gcn(rng, FEATURES))
    own = ((2, 3), (2, 4), (2, 30))
    found = score_partners(public, 2, Actionability(), own=own)
    exact = public.model.logits(public.features, np.array([*own, *near]))[2]
    assert found.own_logits == pytest.approx(exact)
    joinable = set(found.nodes[found.joinable].tolist())
    assert not joinable & {2, 3, 4, 30}
    assert joinable


def test_without_own_pairs_a_person_has_none_to_delete() -> None:
    found = SmallSets().knowing(()).propose(context(STAR), 0)
    assert found.deletions == ()
    assert found.additions


@pytest.mark.parametrize("seed", range(4))
def test_candidates_that_share_a_pair_or_a_feature_are_found(seed: int) -> None:
    world = schema_world(seed, nodes=12)
    plain = PublicContext(world.context.features, world.context.snapshot.pairs, world.context.model)
    for found in (Recourse(most=2).propose(world.context, 3), SmallSets().propose(plain, 3)):
        for position in (0, 1, len(found) // 2, len(found) - 1):
            shared = [bool(one.subjects & found[position].subjects) for one in found]
            assert found.sharing(position).tolist() == shared
    assert Nothing().propose(plain, 3).sharing(0).tolist() == [False]
