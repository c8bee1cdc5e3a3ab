"""Every utility in the table: levels on the grid, and no two graphs move a score by more than the span."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from privcfs import PublicContext
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.utilities import EXPLAINERS, UTILITIES
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates import RULES
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.product import Product
from tests.worlds import Pairs, private, random_gcn, random_world

NODES = 5


def every_graph() -> Iterator[Pairs]:
    pairs = np.array(list(combinations(range(NODES), 2)))
    for number in range(2 ** len(pairs)):
        yield pairs[[bool(number >> bit & 1) for bit in range(len(pairs))]].reshape(-1, 2)


@pytest.fixture(scope="module")
def context() -> PublicContext:
    rng = np.random.default_rng(7)
    features = sp.csr_array((rng.random((NODES, 4)) < 0.8).astype(np.float32))
    return PublicContext(features, np.array([(0, 1), (0, 2), (0, 4), (1, 2), (3, 4)]), random_gcn(rng, 4))


@pytest.mark.parametrize("name", UTILITIES)
def test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span(name: str, context: PublicContext) -> None:
    utility, rule = UTILITIES[name], Product(pairs=TwoHop(5), most_features=2)
    candidates = rule.propose(context, 0)
    grid = utility.grid(candidates.caps)
    scores = [
        utility.score(evaluate(private(pairs, NODES), context, candidates, UNLIMITED)).unseal()
        for pairs in every_graph()
    ]
    scores.append(utility.failed(candidates).unseal())
    table = np.array(scores)
    assert np.isin(table, grid.levels).all()
    moved = table.max(axis=0) - table.min(axis=0)
    assert moved.max() <= grid.span
    assert moved.max() == grid.span, "the span is attained, so it cannot be smaller"


@pytest.mark.parametrize("name", UTILITIES)
def test_a_failed_evaluation_scores_publicly(name: str, context: PublicContext) -> None:
    candidates: Candidates = Product().propose(context, 0)
    first, second = (UTILITIES[name].failed(candidates).unseal() for _ in range(2))
    assert (first == second).all()
    assert len(first) == len(candidates)


@pytest.mark.parametrize("utility", EXPLAINERS.values(), ids=EXPLAINERS.keys())
def test_explainers_objectives_stay_on_their_grid_and_reward_what_they_name(utility: Utility) -> None:
    moved = 0
    for seed in range(6):
        world = random_world(seed, nodes=10)
        candidates = RULES["small-sets"].propose(world.context, 0)
        outcomes = evaluate(world.graph, world.context, candidates, UNLIMITED)
        scores, failed = utility.score(outcomes), utility.failed(candidates)
        assert scores.unseal()[0] == 0
        assert not failed.unseal().any()
        assert 0 <= scores.unseal().min() <= scores.unseal().max() <= scores.grid.span
        best = int(scores.unseal().argmax())
        moved += int(scores.unseal()[best] > 0)
        assert outcomes.margins()[best] <= outcomes.margins()[0] + 1e-9
    assert moved
