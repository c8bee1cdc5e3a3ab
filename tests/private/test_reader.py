"""A question reads what it was paid for: the whole graph, or the own edges of its nodes."""

import numpy as np
import pytest

from privcfs.errors import SealedError
from privcfs.gate.method import OWN_EDGES
from privcfs.private.allowance import UNLIMITED, Allowance, Overrun
from privcfs.private.graph import OwnEdges, PrivateGraph
from privcfs.private.own_reading import FarGraphs
from privcfs.private.reader import Reader
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from tests.worlds import random_world


def asked(context: PublicContext, target: int) -> tuple[Candidates, FarGraphs]:
    candidates = OWN_EDGES.candidates.propose(context, target)
    return candidates, OWN_EDGES.rehearsal.far_graphs(context, candidates, OWN_EDGES.utility)


def test_a_question_paid_at_nodes_reads_their_own_edges_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = random_world(3)
    cut: list[int] = []
    honest = PrivateGraph.own

    def noted(graph: PrivateGraph, node: int) -> OwnEdges:
        cut.append(node)
        return honest(graph, node)

    monkeypatch.setattr(PrivateGraph, "own", noted)
    for name in ("neighbours_of", "degrees", "has_edges"):
        monkeypatch.setattr(PrivateGraph, name, lambda *_: pytest.fail("an evaluator looked at the whole graph"))
    Reader(world.graph, world.context, UNLIMITED, (2,)).own(*asked(world.context, 2))
    assert cut == [2]


def test_own_edges_are_those_of_the_node_and_sealed() -> None:
    world = random_world(3)
    own = world.graph.own(2)
    assert set(own.neighbours.tolist()) == {int(u + w - 2) for u, w in world.pairs if 2 in (u, w)}
    assert "2" not in repr(own)


def test_nodes_that_were_not_paid_for_are_refused() -> None:
    world = random_world(3)
    reader = Reader(world.graph, world.context, UNLIMITED, (2, 5))
    with pytest.raises(SealedError, match="a node at which it is not paid"):
        reader.own(*asked(world.context, 3))
    with pytest.raises(SealedError, match="a node at which it is not paid"):
        reader.own_list(3, OWN_EDGES.candidates, world.context)
    with pytest.raises(SealedError, match="cannot read the whole graph"):
        reader.whole(asked(world.context, 2)[0])


def test_a_reader_of_the_whole_graph_reads_no_own_edges() -> None:
    world = random_world(3)
    with pytest.raises(SealedError, match="at which it is not paid"):
        Reader(world.graph, world.context, UNLIMITED).own(*asked(world.context, 2))


def test_the_list_of_a_person_deletes_the_edges_that_she_has() -> None:
    world = random_world(3)
    listed = Reader(world.graph, world.context, UNLIMITED, (2,)).own_list(2, OWN_EDGES.candidates, world.context)
    assert set(listed.deletions) == {tuple(map(int, one)) for one in world.pairs if 2 in one}


def test_an_evaluation_is_given_up_by_counted_work_that_own_edges_decide() -> None:
    world = random_world(3)
    candidates, far = asked(world.context, 2)
    counted = []
    for pairs in (world.pairs, world.pairs[[2 in one for one in world.pairs]]):
        allowance = Allowance(10)
        Reader(PrivateGraph.from_pairs(pairs, 8), world.context, allowance, (2,)).own(candidates, far)
        counted.append(allowance.spent)
    assert counted[0] == counted[1] > 0, "pairs elsewhere make no difference"
    with pytest.raises(Overrun):
        Reader(world.graph, world.context, Allowance(1e-6), (2,)).own(candidates, far)


def test_scores_rank_by_the_share_of_graphs_and_the_empty_set_by_half_of_them() -> None:
    world = random_world(3)
    candidates, far = asked(world.context, 2)
    outcomes = Reader(world.graph, world.context, UNLIMITED, (2,)).own(candidates, far)
    scores, belief = outcomes.scores().unseal(), outcomes.belief
    share = (belief.likelihood @ belief.valid) * belief.worth
    assert scores[0] == 500
    assert np.abs(scores[1:] - 1000 * share[1:]).max() <= 0.51
