"""The honest zero is public and costs nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privcfs import GCN, PrivateGraph, PublicContext, Vault
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import GUIDED
from privcfs.gate.public_guess import public_guess, snapshot_guess
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.candidates.nothing import Nothing
from privcfs.public.public_answer import PublicAnswer

NODES = 10


@pytest.fixture
def context() -> PublicContext:
    rng = np.random.default_rng(1)
    pairs = [(u, w) for u in range(NODES) for w in range(u) if rng.random() < 0.3]
    features = (rng.random((NODES, 6)) < 0.6).astype(np.float32)
    model = GCN(rng.normal(size=(6, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    return PublicContext(features, pairs, model)


def test_a_guess_that_peeks_is_found_out(
    context: PublicContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peek(vault: Vault, node: int) -> PublicAnswer:
        candidates = vault.propose(node)
        position = int(np.argmin(evaluate(vault._graph, context, candidates, UNLIMITED).margins()))
        return PublicAnswer(node, candidates[position])

    monkeypatch.setattr(Vault, "guess", peek)
    with pytest.raises(AssertionError):
        test_the_guess_is_the_same_whatever_the_private_graph(context, tmp_path)


def test_the_guess_is_the_same_whatever_the_private_graph(context: PublicContext, tmp_path: Path) -> None:
    guesses = []
    for number, pairs in enumerate(([], [(0, 1), (1, 2)], [(u, w) for u in range(NODES) for w in range(u)])):
        graph = PrivateGraph.from_edges(pairs, number_of_nodes=NODES)
        vault = Vault(graph, context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="1")
        guesses.append([vault.guess(node) for node in range(NODES)])
        assert vault.balance().spent == 0
    assert guesses[0] == guesses[1] == guesses[2]


def test_a_confidence_that_peeks_is_found_out(
    context: PublicContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right guess, with a confidence that was computed from private scores."""
    honest = Vault.guess

    def peek(vault: Vault, node: int) -> PublicAnswer:
        found, candidates = honest(vault, node), vault.propose(node)
        flips = evaluate(vault._graph, context, candidates, UNLIMITED).flips()
        return replace(found, confidence=float(flips[list(candidates).index(found.intervention)]))

    monkeypatch.setattr(Vault, "guess", peek)
    with pytest.raises(AssertionError):
        test_the_guess_is_the_same_whatever_the_private_graph(context, tmp_path)


def test_the_guess_is_the_likeliest_to_flip_on_imagined_graphs(context: PublicContext) -> None:
    assert isinstance(GUIDED.guide, Rehearsal)
    for node in range(NODES):
        candidates = GUIDED.candidates.propose(context, node)
        belief = GUIDED.guide.belief(context, candidates, GUIDED.utility)
        chances = (belief.likelihood @ belief.valid) * belief.worth
        position, confidence = public_guess(context, candidates, GUIDED)
        assert position > 0
        assert chances[position] == chances.max()
        assert 0 < confidence < 1


def test_the_guess_of_version_0_1_leaves_the_lowest_margin_on_the_snapshot(context: PublicContext) -> None:
    snapshot = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=NODES)
    for node in range(NODES):
        candidates = GUIDED.candidates.propose(context, node)
        margins = evaluate(snapshot, context, candidates, UNLIMITED).margins()
        position = snapshot_guess(context, candidates)
        assert position > 0
        assert margins[position] == margins[1:].min()


def test_where_nothing_may_be_named_nothing_is_guessed(context: PublicContext) -> None:
    assert public_guess(context, Nothing().propose(context, 0), GUIDED) == (0, 0.0)
