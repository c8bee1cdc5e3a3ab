"""What an analyst sees beside the draw is the same on neighbouring graphs: errors, refusals, lists, budgets."""

import logging
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from privcfs import GCN, Limit, Method, PrivateGraph, PublicContext, Vault
from privcfs.errors import ModelError
from privcfs.gate.opening import try_model
from privcfs.private.utilities import UTILITIES
from privcfs.public.candidates import RULES
from privcfs_lab.audit.conduct import differences
from privcfs_lab.audit.hostile import ONE_AGAINST_MANY
from tests.worlds import random_world

NEIGHBOURS: dict[str, list[list[tuple[int, int]]]] = {
    "one edge": [[(0, 1), (2, 3)], [(2, 3)]],
    "a loner": [[(0, 1)], []],
    "whole graph": [[(u, w) for u in range(8) for w in range(u + 1, 8)], []],
}


@pytest.mark.parametrize("pairs", NEIGHBOURS.values(), ids=NEIGHBOURS.keys())
def test_every_answer_but_the_draw_is_the_same(pairs: list[list[tuple[int, int]]], tmp_path: Path) -> None:
    world = random_world(1)

    def opened(side: int) -> Vault:
        graph = PrivateGraph.from_edges(pairs[side], number_of_nodes=8)
        return Vault(graph, world.context, ledger=f"sqlite:///{tmp_path / str(side)}.db", limit="10")

    assert differences(partial(opened, 0), partial(opened, 1), 0) == []


def test_a_loud_vault_is_noticed() -> None:
    quiet = partial(ONE_AGAINST_MANY.vault, build=lambda _: Method(ONE_AGAINST_MANY.rule), limit=Limit.of("10"))

    def said(noise: Callable[[], object]) -> list[str]:
        def loud() -> Vault:
            noise()
            return quiet()

        return differences(quiet, loud, ONE_AGAINST_MANY.target)

    assert said(lambda: None) == []
    assert said(lambda: sys.stdout.write("an edge")) == ["opening the vault"]
    assert said(lambda: os.write(2, b"an edge")) == ["opening the vault"]
    assert said(lambda: logging.getLogger("x").debug("an edge")) == ["opening the vault"]
    logging.getLogger("silent").propagate = False
    assert said(lambda: logging.getLogger("silent").debug("an edge")) == ["opening the vault"]
    assert said(lambda: warnings.warn("an edge", stacklevel=1)) == ["opening the vault"]


def explosive() -> PublicContext:
    """A model that overflows as soon as node 1 is next to the target."""
    features = np.zeros((8, 2), np.float32)
    features[:, 0] = 1
    features[1] = (0, 3e38)
    first = np.array([[1.0], [3e38]], np.float32)
    return PublicContext(features, [(0, 2), (0, 3)], GCN(first, np.array([[1.0, -1.0]], np.float32)))


def opens(rule: str) -> bool:
    """Whether a vault accepts this model with a rule; one that joins node 1 to the target overflows on public data."""
    try:
        with np.errstate(all="raise"):
            try_model(explosive(), Method(RULES[rule]), explosive())
    except ModelError:
        return False
    return True


QUIET = [rule for rule in RULES if opens(rule)]


def test_the_rules_of_the_paper_are_tried_with_a_model_that_overflows() -> None:
    assert {"one-hop", "two-hop", "edges-only", "features-only", "nothing"} <= set(QUIET)


@pytest.mark.parametrize("rule", QUIET)
@pytest.mark.parametrize("utility", UTILITIES)
def test_a_failure_that_depends_on_an_edge_cannot_be_seen(utility: str, rule: str, tmp_path: Path) -> None:
    method = Method(candidates=RULES[rule], utility=UTILITIES[utility])
    failures = []
    for side, edges in enumerate(([(0, 1), (0, 2)], [(0, 2)])):
        graph = PrivateGraph.from_edges(edges, number_of_nodes=8)
        ledger = f"sqlite:///{tmp_path / str(side)}.db"
        vault = Vault(graph, explosive(), ledger=ledger, limit="10", method=method)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            release = vault.release(0, "1")
        assert not caught, "not even a warning"
        assert release.intervention in set(vault.propose(0))
        assert vault.balance().spent == 1
        failures.append(vault.failures.failed)
    assert failures == [1, 0], "the owner is told, and only the owner"
