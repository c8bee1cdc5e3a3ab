"""The honest zero is public and costs nothing."""

from pathlib import Path

import numpy as np
import pytest

from privcfs import GCN, PrivateGraph, PublicContext, Vault
from privcfs.gate.method import GUIDED
from privcfs.gate.public_guess import public_guess
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.candidates.nothing import Nothing
from privcfs.public.interventions import Intervention

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
    def peek(vault: Vault, node: int) -> Intervention:
        candidates = vault.propose(node)
        return candidates[int(np.argmin(evaluate(vault._graph, context, candidates, UNLIMITED).margins()))]

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


def test_the_guess_leaves_the_lowest_margin_on_the_snapshot(context: PublicContext) -> None:
    snapshot = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=NODES)
    for node in range(NODES):
        candidates = GUIDED.candidates.propose(context, node)
        margins = evaluate(snapshot, context, candidates, UNLIMITED).margins()
        position = list(candidates).index(public_guess(context, candidates))
        assert position > 0
        assert margins[position] == margins[1:].min()


def test_where_nothing_may_be_named_nothing_is_guessed(context: PublicContext) -> None:
    assert public_guess(context, Nothing().propose(context, 0)).size == 0
