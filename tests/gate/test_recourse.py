"""A vault over a schema of features: every answer names a change that people can make, in their words and units."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privcfs import FeatureChange, Intervention, Method, PublicContext, Release, Vault
from privcfs.errors import InputError, SettingsError
from privcfs.gate.certificates import verify, verify_advice
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import GUIDED, constraints_of
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.utilities.gated import Gated
from privcfs.public.advice import Advice
from privcfs.public.beliefs.belief import NEARLY, cheapest_nearly_best, margins_of
from privcfs.public.candidates.costs import Costs
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.goals import Goal, all_but, one_of
from tests.schemas import schema_world
from tests.worlds import World

SEED = 7
ALONE = Recourse(pairs=False)


def vault_of(folder: Path, world: World, method: Method | None = None) -> Vault:
    ledger = f"sqlite:///{folder / 'budget.db'}"
    return Vault(world.graph, world.context, ledger=ledger, limit="50", method=method, people_know_their_edges=True)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return vault_of(tmp_path, schema_world(SEED, nodes=20), Method(ALONE, guide=GUIDED.guide))


def changing(vault: Vault) -> Release:
    """A release that changes a feature."""
    found = (vault.release(target, "4") for target in range(12))
    return next(one for one in found if one.intervention.change)


def test_a_release_names_features_values_and_units(vault: Vault) -> None:
    release = changing(vault)
    schema = vault.context.schema
    assert schema is not None
    for one in release.intervention.change:
        feature = schema.named(one.feature)
        assert feature is not None
        assert (one.unit, bool(one.before)) == (feature.unit, True)
        assert f"{one.feature}: {one.before} -> {one.value}" in str(release)
    fields = json.loads(release.to_json())
    assert fields["intervention"]["change"][0]["feature"] == release.intervention.change[0].feature
    assert fields["intervention"]["mask"] == []
    assert fields["constraints"] == constraints_of(vault.method, vault.context).digest
    again = Release.from_json(release.to_json())
    assert again == release
    assert again.to_json() == release.to_json(), "values and units too"


def test_a_certificate_is_checked_against_the_constraints(vault: Vault) -> None:
    release = changing(vault)
    checks = verify(release, vault.ledger, vault.context, vault.method)
    assert all(checks.values())
    assert len(checks) == 7
    schema, change = vault.context.schema, release.intervention.change[0]
    assert schema is not None
    feature = schema.named(change.feature)
    assert feature is not None
    present = schema.present(vault.context.feature_row(release.target))
    barred = next(level for level in feature.levels if not feature.permits(present[feature.name], level))
    forged = replace(change, value=feature.show(barred))
    wrong = replace(release, intervention=Intervention(change=(forged,)), constraints="")
    failed = {name for name, good in verify(wrong, vault.ledger, vault.context, vault.method).items() if not good}
    assert failed == {
        "the ledger holds this release, word for word",
        "the intervention is on the public list",
        "the constraints are this vault's",
        "the intervention keeps to the constraints",
    }


def test_advice_names_changes_that_share_no_feature(vault: Vault) -> None:
    advices = [vault.advise(target, alternatives=3) for target in range(20)]
    advice = max(advices, key=lambda one: len(one.changes))
    named = [one.feature for change in advice.changes for one in change.intervention.change]
    assert len(advice.changes) > 1
    assert len(set(named)) == len(named) > 1
    assert all(verify_advice(advice, vault).values())
    assert Advice.from_json(advice.to_json()) == advice
    paid = vault.advise(advice.target, epsilon="2")
    assert all(verify_advice(paid, vault).values())
    wrong = replace(advice, constraints="0")
    assert not verify_advice(wrong, vault)["the constraints are this vault's"]


def test_guess_belief_and_verdict_speak_of_features(vault: Vault) -> None:
    guess = vault.guess(4)
    assert guess.intervention.change
    assert guess.confidence is not None
    believed = vault.believe(4, guess.intervention)
    assert believed.after
    bare = Intervention(change=tuple(FeatureChange(one.feature, one.value) for one in guess.intervention.change))
    verdict = vault.confirm(4, bare, "1", request_id="a")
    assert verdict.intervention.change[0].before == guess.intervention.change[0].before
    assert str(guess.intervention) in str(verdict)
    assert vault.confirm(4, bare, "1", request_id="a") == verdict
    with pytest.raises(InputError, match="feature 'Size' does not exist"):
        vault.believe(4, Intervention(change=(FeatureChange("Size", "3"),)))
    with pytest.raises(InputError, match="has no value"):
        vault.confirm(4, Intervention(change=(FeatureChange(bare.change[0].feature, "a lot"),)), "1")


def test_without_a_schema_no_feature_can_be_changed(tmp_path: Path) -> None:
    world = schema_world(SEED)
    plain = world.context
    context = PublicContext(plain.features, plain.snapshot.pairs, plain.model)
    vault = vault_of(tmp_path, World(context, world.pairs))
    with pytest.raises(InputError, match="there is no schema of features here, so no feature can be changed; mask it"):
        vault.believe(4, Intervention(change=(FeatureChange("feature 0", "3"),)))
    assert '"constraints"' not in vault.release(4, "1").to_json()


def test_whatever_the_method_a_vault_keeps_to_its_schema(tmp_path: Path) -> None:
    world = schema_world(SEED)
    asked = vault_of(tmp_path, world, Method(SmallSets()))
    assert asked.method.candidates.keeps_schema
    constraints = constraints_of(asked.method, asked.context)
    assert not any(constraints.faults(2, one) for one in asked.propose(2))
    (tmp_path / "second").mkdir()
    usual = vault_of(tmp_path / "second", schema_world(SEED))
    assert isinstance(usual.method.candidates, Recourse)


def test_stages_grow_an_earlier_change(vault: Vault) -> None:
    first = changing(vault)
    second = vault.release(first.target, "2", beyond=first.intervention)
    kept = set(first.intervention.change) <= set(second.intervention.change)
    assert kept or not second.intervention.size
    apart = vault.release(first.target, "2", avoiding=[first.intervention])
    names = {one.feature for one in first.intervention.change}
    assert not names & {one.feature for one in apart.intervention.change}


@pytest.mark.parametrize("most", [1, 3, 8])
def test_no_answer_costs_more_than_the_cap(tmp_path: Path, most: int) -> None:
    method = Method(ALONE, guide=Rehearsal(costs=Costs(most=most)))
    vault = vault_of(tmp_path, schema_world(SEED, nodes=20), method)
    constraints = constraints_of(vault.method, vault.context)
    for target in range(6):
        answers = [vault.guess(target).intervention, vault.release(target, "1").intervention]
        answers += [one.intervention for one in vault.advise(target).changes]
        assert all(constraints.cost(target, one) <= most for one in answers)
        assert not any(constraints.faults(target, one) for one in answers)


def test_without_a_cap_dearer_answers_are_given(vault: Vault) -> None:
    """The twin: or the cap above would do nothing."""
    constraints = constraints_of(vault.method, vault.context)
    assert max(constraints.cost(target, vault.guess(target).intervention) for target in range(6)) > 3


def test_costs_of_a_list_are_those_of_its_candidates(vault: Vault) -> None:
    constraints = constraints_of(vault.method, vault.context)
    candidates = vault.propose(3)
    costs = vault.method.rehearsal.costs.of(candidates)
    for position in np.random.default_rng(0).choice(len(candidates), min(40, len(candidates)), replace=False).tolist():
        assert costs[position] == constraints.cost(3, candidates[position])


@pytest.mark.parametrize("desired", [2, (0, 2), (1, 2)])
def test_a_valid_answer_leads_to_a_desired_class(desired: Goal) -> None:
    world = schema_world(SEED, nodes=20)
    rule = ALONE.restricted(Restriction(desired=desired))
    wanted = {desired} if isinstance(desired, int) else set(desired or ())
    for target in range(6):
        outcomes = evaluate(world.graph, world.context, rule.propose(world.context, target), UNLIMITED)
        valid = Gated().towards(desired).valid(outcomes)
        reached = [int(one) in wanted for one in outcomes.predictions()]
        assert valid.tolist() == [one and outcomes.original() not in wanted for one in reached]
        margins = margins_of(np.ascontiguousarray(outcomes.logits.T[:, :, None], np.float32), desired)[0]
        assert ((margins < 0) == valid).all()


def test_desired_classes_are_named_in_three_ways() -> None:
    assert one_of([2], 3) == 2
    assert one_of([2, 0, 2], 3) == (0, 2)
    assert all_but([1], 3) == (0, 2)
    assert all_but([0], 2) == 1
    with pytest.raises(SettingsError, match="name some, but not all, of 0 to 2"):
        one_of([0, 1, 2], 3)
    with pytest.raises(SettingsError, match="name some, but not all, of 0 to 2"):
        one_of([3], 3)
    with pytest.raises(SettingsError, match="name some of 0 to 2"):
        all_but([3], 3)
    with pytest.raises(SettingsError, match="name some, but not all"):
        all_but([0, 1, 2], 3)


def test_a_vault_towards_classes_plans_for_them(tmp_path: Path) -> None:
    world = schema_world(SEED, nodes=20)
    goals: list[Goal] = [2, (0, 2)]
    for number, desired in enumerate(goals):
        (tmp_path / str(number)).mkdir()
        rule = ALONE.restricted(Restriction(desired=desired))
        method = Method(rule, Gated().towards(desired), guide=GUIDED.guide)
        vault = vault_of(tmp_path / str(number), World(world.context, world.pairs), method)
        assert vault.release(3, "2").context_digest == vault.digest
        assert vault.advise(3).changes


def test_of_nearly_equally_sure_changes_the_cheapest_is_advised_and_guessed(vault: Vault) -> None:
    costs = vault.method.rehearsal.costs.of(vault.propose(4))
    belief = vault.method.rehearsal.belief(vault.context, vault.propose(4), vault.method.utility)
    chances = belief.likelihood @ belief.valid
    near = np.flatnonzero((chances >= NEARLY * chances[1:].max()) & (np.arange(len(chances)) > 0))
    guess = list(vault.propose(4)).index(vault.guess(4).intervention)
    assert guess in near
    assert costs[guess] == costs[near].min()


def test_the_cheapest_of_nearly_the_best_has_ties_in_a_stated_order() -> None:
    chances, costs = np.array([0.0, 0.8, 0.79, 0.7, 0.79]), np.array([0, 5, 2, 1, 2])
    everyone = np.ones(5, np.bool_)
    assert cheapest_nearly_best(chances, costs, everyone) == 2, "0.7 is clearly less sure"
    assert cheapest_nearly_best(chances, np.array([0, 5, 2, 1, 3]), everyone) == 2
    assert cheapest_nearly_best(chances, costs, np.array([True, False, False, True, False])) == 3
    assert cheapest_nearly_best(chances, costs, np.zeros(5, np.bool_)) == 0, "nothing is allowed but no change"
