"""Every candidate of every rule keeps to the constraints: random schemas, random restrictions, random graphs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcfs import FeatureChange, Intervention, Method
from privcfs.gate.method import constraints_of, going_beyond, keeping_schema
from privcfs.public.candidates import RULES
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.within_schema import WithinSchema
from privcfs.public.constraints import Constraints
from tests.schemas import schema_world

SEEDS = st.integers(0, 10**6)
each = pytest.mark.parametrize("rule", sorted(RULES))


def random_restriction(seed: int, nodes: int, columns: int) -> Restriction:
    rng = np.random.default_rng(seed)
    some = [frozenset(rng.permutation(count)[: count // 4].tolist()) for count in (nodes, columns)]
    partners = None if rng.random() < 0.5 else frozenset(rng.permutation(nodes)[: nodes // 2].tolist())
    return Restriction(Actionability(some[0], some[1], partners))


def kept(rule: CandidateRule, to: Restriction) -> WithinSchema:
    return WithinSchema(rule).restricted(to)


def faults(constraints: Constraints, candidates: Candidates) -> list[str]:
    return [fault for one in candidates for fault in constraints.faults(candidates.target, one)]


@each
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS, secret=st.booleans())
def test_every_candidate_keeps_to_schema_and_restriction(rule: str, seed: int, secret: bool) -> None:
    context = schema_world(seed, nodes=12, secret=secret).context
    restriction = random_restriction(seed, 12, context.features.shape[1])
    constraints = Constraints(context, restriction.allowed)
    for target in range(2):
        candidates = kept(RULES[rule], restriction).propose(context, target)
        items = list(candidates)
        assert items[0].size == 0
        assert len(set(items)) == len(items)
        assert faults(constraints, candidates) == []
        assert not candidates.features, "where features have a schema, nothing is masked"


@each
@settings(max_examples=4, deadline=None)
@given(seed=SEEDS)
def test_stages_keep_to_the_schema_too(rule: str, seed: int) -> None:
    """What is offered on top of an earlier answer does, and contains it or is empty."""
    context = schema_world(seed, nodes=10).context
    method = keeping_schema(Method(RULES[rule]), context)
    first = method.candidates.propose(context, 0)
    start = first[len(first) // 2]
    beyond = going_beyond(start, method)
    candidates = beyond.candidates.propose(context, 0)
    assert faults(constraints_of(beyond, context), candidates) == []
    changed = [one for one in candidates if one.change]
    assert all(set(start.change) <= set(one.change) for one in changed)


def test_the_rules_do_offer_changes() -> None:
    """Or the property above would hold of nothing."""
    counts = dict.fromkeys(RULES, 0)
    for seed in range(30):
        context = schema_world(seed, nodes=12).context
        for name, rule in RULES.items():
            counts[name] += len(WithinSchema(rule).propose(context, 0).changes)
    assert counts["recourse"] > 100
    assert counts["small-sets"] > 5, "a mask is a change to 0 where the schema permits that"
    assert counts["nothing"] == counts["edges-only"] == 0


@pytest.mark.parametrize("twin", ["masks", "all values", "no rules"])
def test_a_rule_that_forgets_the_schema_is_found_out(twin: str) -> None:
    found = 0
    for seed in range(12):
        context = schema_world(seed, nodes=12).context
        candidates = RULES["recourse"].propose(context, 0)
        schema = context.schema
        assert schema is not None
        if twin == "masks":
            candidates = RULES["features-only"].propose(context, 0)
        elif twin == "all values":
            changes = tuple(schema.encoded(one, one.levels[-1], {}) for one in schema.features if one.levels)
            sets = ((), *((one,) for one in range(len(changes))))
            candidates = replace(candidates, changes=changes, feature_sets=sets, pair_sets=((),))
        else:
            names = [one.change.feature for one in candidates.changes]
            pairs = [(one, two) for one in range(len(names)) for two in range(one) if names[one] != names[two]]
            candidates = replace(candidates, feature_sets=((), *pairs), pair_sets=((),))
        found += len(faults(Constraints(context), candidates))
    assert found > 0


def test_constraints_say_what_is_wrong() -> None:
    context = schema_world(0).context
    allowed = Actionability(frozenset({3}), frozenset(), frozenset({5}))
    constraints = Constraints(context, allowed)
    asked = Intervention(delete=((0, 3),), add=((0, 5), (0, 6), (7, 8)), mask=(1,))
    assert constraints.faults(0, asked) == [
        "pair (0, 3) has to stay",
        "pair (0, 6) may not be added",
        "feature 1 is masked, and the schema knows no masks",
    ]
    assert constraints.cost(0, asked) == 5


def test_a_price_that_is_too_high_is_a_fault() -> None:
    context = schema_world(0).context
    (one, *_) = RULES["recourse-features"].propose(context, 0).changes
    wanted = Intervention(change=(FeatureChange(one.change.feature, one.change.value),))
    costs = Constraints(context).costs
    free = Constraints(context, costs=replace(costs, most=one.cost))
    tight = Constraints(context, costs=replace(costs, most=one.cost - 1))
    assert free.faults(0, wanted) == []
    assert tight.faults(0, wanted) == [f"it costs {one.cost}, and at most {one.cost - 1} is allowed"]
    assert len({free.digest, tight.digest, Constraints(context, desired=1).digest}) == 3
