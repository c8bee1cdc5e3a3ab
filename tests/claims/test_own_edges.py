"""Own-edge reading: what leaves is the same, not merely close, for two graphs that agree at the target."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from privcfs import PrivateGraph, PublicContext, Vault
from privcfs.gate.contracts import Pure, ZeroConcentrated
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import GUIDED, OWN_EDGES
from privcfs.gate.questions.advice import AdviceQuestion, Personal, free_advice
from privcfs.gate.questions.question import Asker, PublicSide, Question
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.gate.questions.select import SelectQuestion
from privcfs.private.allowance import UNLIMITED
from privcfs.private.graph import OwnEdges
from privcfs.private.reader import Reader
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.candidates.small_sets import SmallSets
from tests.worlds import Pairs, World, private, random_world

TARGET, NODES, PRICE = 2, 8, Fraction(4)
Law = tuple[float, ...]


def differing_elsewhere(pairs: Pairs, nodes: tuple[int, ...], seed: int, number: int = 12) -> list[Pairs]:
    """Graphs with the same pairs at some nodes and other pairs elsewhere; one of them has no others at all."""
    rng = np.random.default_rng(seed)
    present = {(int(u), int(w)) for u, w in pairs}
    fixed = {one for one in present if set(one) & set(nodes)}
    free = [one for one in combinations(range(NODES), 2) if not set(one) & set(nodes)]
    chosen = [{one for one in free if rng.random() < density} for density in rng.random(number)] + [set()]
    return [np.array(sorted(fixed | one), np.int64).reshape(-1, 2) for one in chosen]


def side_of(context: PublicContext) -> PublicSide:
    return PublicSide(context, OWN_EDGES, Pure(), Fraction(1, 100))


def law_of(question: Question, pairs: Pairs, context: PublicContext) -> Law:
    """The law of the planned draw, then that of one without a plan: a plan may leave little to choose."""
    scores = question.score(Reader(private(pairs, NODES), context, UNLIMITED, question.nodes))
    draws = (question.mechanism, SubsetSelection(Fraction(1, 8)))
    return tuple(chance for one in draws for chance in one.probabilities(scores, PRICE).tolist())


def release(side: PublicSide) -> Question:
    return ReleaseQuestion(side, Asker(), TARGET, PRICE)


def test_pairs_elsewhere_leave_the_law_of_a_release_identical() -> None:
    different = 0
    for seed in range(6):
        world = random_world(seed)
        question = release(side_of(world.context))
        laws = {law_of(question, pairs, world.context) for pairs in differing_elsewhere(world.pairs, (TARGET,), seed)}
        assert len(laws) == 1
        different += law_of(question, world.pairs[:0], world.context) not in laws
    assert different, "own edges do change the law"


def test_a_selection_depends_on_the_own_edges_of_its_nodes_alone() -> None:
    world, nodes = random_world(4), (1, 2, 6)
    question = SelectQuestion(side_of(world.context), Asker(), nodes, PRICE)
    assert question.nodes == nodes
    assert len({law_of(question, one, world.context) for one in differing_elsewhere(world.pairs, nodes, 1)}) == 1


def test_a_reader_one_hop_too_far_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Reader.own

    def one_hop_further(reader: Reader, candidates: Candidates, far: object) -> object:
        """Tells the believer which pairs the target's neighbours have."""
        graph: PrivateGraph = reader._graph
        near = graph.neighbours(candidates.target)
        position, others = graph.neighbours_of(near)
        beyond = np.column_stack([near[position], others])
        beyond = beyond[(beyond != candidates.target).all(axis=1)]
        context = far.context  # type: ignore[attr-defined]
        known = np.concatenate([context.snapshot.pairs, np.sort(beyond, axis=1)]).astype(np.int64)
        richer = PublicContext(context.features, np.unique(known, axis=0), context.model)
        return honest(reader, candidates, OWN_EDGES.rehearsal.far_graphs(richer, candidates, OWN_EDGES.utility))

    monkeypatch.setattr(Reader, "own", one_hop_further)
    with pytest.raises(AssertionError):
        test_pairs_elsewhere_leave_the_law_of_a_release_identical()


def test_any_two_graphs_differ_by_at_most_the_price() -> None:
    largest = 1.0
    for seed in range(4):
        world = random_world(seed)
        question = release(side_of(world.context))
        graphs = [world.pairs, world.pairs[:0], random_world(seed + 50).pairs]
        laws = np.array([law_of(question, pairs, world.context) for pairs in graphs])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(laws[:, None] / laws[None], nan=1.0)
        largest = max(largest, float(ratios.max()))
    assert 1.5 < largest <= np.exp(float(PRICE)) * (1 + 1e-9)


def advice_for(world: World, pairs: Pairs) -> str:
    reader = Reader(private(pairs, NODES), world.context, UNLIMITED, (TARGET,))
    return free_advice(Personal(side_of(world.context), TARGET, reader), 2).to_json()


def test_advice_is_the_same_whatever_connections_others_have() -> None:
    answers = set()
    for seed in range(6):
        world = random_world(seed)
        found = {advice_for(world, pairs) for pairs in differing_elsewhere(world.pairs, (TARGET,), seed)}
        assert len(found) == 1
        answers |= found
    assert len(answers) == 6


def test_a_coalition_learns_nothing_about_an_edge_of_nobody_in_it() -> None:
    world, coalition = random_world(5), (1, 2, 6)
    for seed in range(3):
        answers = set()
        for pairs in differing_elsewhere(world.pairs, coalition, seed):
            graph = private(pairs, NODES)
            readers = {node: Reader(graph, world.context, UNLIMITED, (node,)) for node in coalition}
            personal = [Personal(side_of(world.context), node, reader) for node, reader in readers.items()]
            answers.add(tuple(free_advice(one, 2).to_json() for one in personal))
        assert len(answers) == 1


def test_advice_from_the_whole_graph_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def peek(personal: Personal, number: int) -> list[object]:
        graph: PrivateGraph = personal._reader._graph
        outcomes = Reader(graph, personal.side.context, UNLIMITED).whole(personal.candidates)
        from privcfs.public.advice import Change

        best = np.argsort(outcomes.margins(), kind="stable")[:number]
        return [Change(personal.candidates[int(one)], 1.0) for one in best]

    monkeypatch.setattr(Personal, "best", peek)
    with pytest.raises(AssertionError):
        test_advice_is_the_same_whatever_connections_others_have()


def prepared_after_advice(world: World, pairs: Pairs, folder: Path) -> list[str]:
    """What a vault prepares for releases about a node, after its person has been given advice."""
    folder.mkdir(parents=True, exist_ok=True)
    context = PublicContext(world.context.features, world.context.snapshot.pairs, world.context.model)
    vault = Vault(
        private(pairs, NODES),
        context,
        ledger=f"sqlite:///{folder / 'budget.db'}",
        limit="9",
        people_know_their_edges=True,
    )
    vault.advise(TARGET)
    vault.advise(TARGET, epsilon="1")
    question = ReleaseQuestion(
        PublicSide(context, GUIDED, Pure(), Fraction(1, 100)), Asker("ann", "one"), TARGET, PRICE
    )
    return [repr(question.candidates), repr(question.mechanism), *map(question.answer, range(len(question.candidates)))]


def test_nothing_that_was_planned_with_own_edges_is_kept_for_releases(tmp_path: Path) -> None:
    world = random_world(4)
    graphs = [world.pairs, world.pairs[:0], random_world(9).pairs]
    found = [prepared_after_advice(world, pairs, tmp_path / str(number)) for number, pairs in enumerate(graphs)]
    assert found[0] == found[1] == found[2]


def test_a_plan_made_with_own_edges_and_kept_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[int, Candidates] = {}

    def keep(own: OwnEdges, rule: CandidateRule, context: PublicContext) -> Candidates:
        pairs = tuple((min(own.node, one), max(own.node, one)) for one in own.neighbours.tolist())
        kept[own.node] = rule.knowing(pairs).propose(context, own.node)
        return kept[own.node]

    honest: Callable[[SmallSets, PublicContext, int], Candidates] = SmallSets.propose
    monkeypatch.setattr("privcfs.private.reader.personal_list", keep)
    monkeypatch.setattr(
        SmallSets,
        "propose",
        lambda rule, context, target: (
            kept.pop(target) if target in kept and rule == SmallSets() else honest(rule, context, target)
        ),
    )
    with pytest.raises(AssertionError):
        test_nothing_that_was_planned_with_own_edges_is_kept_for_releases(tmp_path)


def paid_in_public(world: World, pairs: Pairs) -> tuple[object, ...]:
    """Everything about paid advice that stands in the ledger beside the answer, which is kept apart."""
    side = PublicSide(world.context, GUIDED, ZeroConcentrated(), Fraction(1, 100))
    personal = Personal(side, TARGET, Reader(private(pairs, NODES), world.context, UNLIMITED, (TARGET,)))
    asked = AdviceQuestion(Asker("ann", "one"), personal, "0.5").priced
    return asked.terms, asked.counted, asked.room


def test_what_stands_in_the_ledger_about_advice_is_the_same_whatever_her_edges() -> None:
    for seed in range(3):
        world = random_world(seed)
        first, *others = (paid_in_public(world, random_world(seed + more).pairs) for more in range(0, 60, 10))
        assert all(other == first for other in others)
        assert first[0]["apart"]  # type: ignore[index]


def test_advice_whose_price_follows_her_plan_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def cheaper(question: AdviceQuestion) -> Request:
        return replace(question.request, cost=question.side.contract.cost(question.mechanism, question.request.epsilon))

    monkeypatch.setattr(AdviceQuestion, "priced", property(cheaper))
    with pytest.raises(AssertionError):
        test_what_stands_in_the_ledger_about_advice_is_the_same_whatever_her_edges()
