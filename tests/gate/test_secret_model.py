"""A secret model and secret features: they decide, and nothing public depends on them."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privcfs import Assumption, Method, PublicContext, Secrets, Vault
from privcfs.errors import SettingsError
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.assumptions import hiding
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.candidates.top_influence import Schema
from tests.worlds import World, random_gcn, random_world

METHOD = Method(SmallSets(features=Schema()), guide=Rehearsal(Worlds(3)))


def hidden(seed: int = 4) -> tuple[World, PublicContext, list[Secrets]]:
    """A world whose public model and table only guide, and two different sets of secrets over it."""
    world = random_world(seed)
    assumptions = hiding(model=True, features=True)
    context = PublicContext(
        world.context.features, world.context.snapshot.pairs, world.context.model, assumptions=assumptions
    )
    secrets = [
        Secrets(
            context,
            model=random_gcn(np.random.default_rng(number), 6),
            features=(np.random.default_rng(number + 9).random((8, 6)) < 0.5).astype(np.float32),
        )
        for number in range(2)
    ]
    return world, context, secrets


def test_no_digest_and_no_candidate_depends_on_what_is_secret(tmp_path: Path) -> None:
    world, context, secrets = hidden()
    seen = []
    for number, one in enumerate(secrets):
        url = f"sqlite:///{tmp_path / str(number)}.db"
        vault = Vault(world.graph, context, ledger=url, limit="9", method=METHOD, secrets=one)
        release = vault.release(0, "1")
        seen.append((vault.digest, list(vault.propose(0)), release.guarantee, release.assumptions))
        assert "MODEL_SECRET" in release.assumptions
        assert "BACKBONE_PUBLIC" not in release.assumptions
        assert "any two secret models and any two secret feature tables" in release.guarantee.adjacency
    assert seen[0] == seen[1]


def test_the_secret_model_is_the_one_that_is_explained() -> None:
    world, context, secrets = hidden(5)
    method = Method(SmallSets(features=Schema()), mechanism=SubsetSelection())
    candidates = method.candidates.propose(context, 0)
    assert len(candidates.features) == 6, "the schema, whatever the target has"
    laws = []
    for one in secrets:
        scores = method.utility.score(evaluate(world.graph, one, candidates, UNLIMITED))
        laws.append(method.prepare(context, candidates, Fraction(4)).mechanism.probabilities(scores, Fraction(4)))
    ratio = (laws[0] / laws[1]).max()
    assert 1.5 < ratio <= np.exp(4) * (1 + 1e-9)


def test_a_vault_says_what_it_keeps_secret() -> None:
    world, context, secrets = hidden()
    with pytest.raises(SettingsError, match=r"lacks what the context calls secret \(MODEL_SECRET\)"):
        Vault(world.graph, context, ledger=MemoryLedger(), method=METHOD)
    model = Secrets(world.context, model=random_gcn(np.random.default_rng(1), 6))
    with pytest.raises(SettingsError, match=r"keeps secret what the context calls public \(MODEL_SECRET\)"):
        Vault(world.graph, world.context, ledger=MemoryLedger(), method=METHOD, secrets=model)
    with pytest.raises(SettingsError, match="match them"):
        Secrets(context, model=random_gcn(np.random.default_rng(1), 6, classes=4))
    assert repr(secrets[0]) == "<Secrets: sealed>"


def test_assumptions_name_each_secret() -> None:
    assert hiding() == random_world(1).context.assumptions
    assert Assumption.FEATURES_SECRET in hiding(features=True)
    assert Assumption.FEATURES_PUBLIC not in hiding(features=True)
