"""Changes of features: both evaluators agree with a full forward pass, and secret features tell nothing by a list."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from privcfs import PublicContext, Schema, Secrets, TorchModel, hiding
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.candidates import RULES
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.candidates.change_sets import change_sets
from privcfs.public.interventions import EncodedChange
from privcfs.public.schema.of_node import present_levels
from tests.schemas import random_schema, schema_world, slow_logits_after
from tests.worlds import World, everything_near, private, random_gcn, random_pairs

CLOSE = 1e-5


class TwoLayers(torch.nn.Module):
    def __init__(self, kind: str, features: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        layer = {
            "gcn": GCNConv,
            "sage": SAGEConv,
            "gat": GATConv,
            "gin": lambda before, after: GINConv(torch.nn.Linear(before, after)),
        }[kind]
        self.first, self.second = layer(features, 8), layer(8, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(torch.relu(self.first(x, edge_index)), edge_index)
        return out


def any_changes(world: World, target: int, rng: np.random.Generator, most: int = 6) -> tuple[EncodedChange, ...]:
    """Random values of random features, whether a person could reach them or not."""
    schema, present = world.context.schema, present_levels(world.context, target)
    assert schema is not None
    free = [one for one in schema.features if one.levels]
    found = []
    for _ in range(most):
        feature = free[int(rng.integers(len(free)))]
        level = feature.levels[int(rng.integers(len(feature.levels)))]
        found.append(schema.encoded(feature, level, present))
    return tuple(dict.fromkeys(found))


def mixed_list(world: World, target: int, rng: np.random.Generator) -> Candidates:
    """Deletions, additions, masks of columns that belong to no feature, and changes; in sets of up to three."""
    context = world.context
    loose = tuple(range(context.features.shape[1] - 2, context.features.shape[1]))
    near = everything_near(target, world.pairs, context.number_of_nodes, features=loose)
    changes = any_changes(world, target, rng)
    names = [*loose, *(one.change.feature for one in changes)]
    sets = [one for one in subsets(len(names), 3) if len({names[place] for place in one}) == len(one)]
    return replace(near, caps=Caps(3, 3), changes=changes, feature_sets=tuple(sets))


def worst(world: World, candidates: Candidates, rng: np.random.Generator, sample: int = 60) -> float:
    """The largest difference from a full forward pass, relative to logits above 1."""
    outcomes = evaluate(world.graph, world.context, candidates, UNLIMITED)
    positions = rng.choice(len(candidates), min(sample, len(candidates)), replace=False)
    differences = []
    for position in positions.tolist():
        slow = slow_logits_after(world, candidates.target, candidates[position])
        differences.append(np.abs(outcomes.logits[:, position] - slow).max() / max(np.abs(slow).max(), 1))
    return float(max(differences))


@pytest.mark.parametrize("seed", range(15))
def test_the_fast_evaluator_is_exact_on_random_changes_of_mixed_kinds(seed: int) -> None:
    world, rng = schema_world(seed), np.random.default_rng(seed)
    for target in range(3):
        assert worst(world, mixed_list(world, target, rng), rng) < CLOSE


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat"])
@pytest.mark.parametrize("seed", range(3))
def test_the_generic_evaluator_is_exact_on_random_changes_of_mixed_kinds(seed: int, kind: str) -> None:
    _, columns = random_schema(np.random.default_rng(seed))
    module = TwoLayers(kind, columns + 2)
    model = TorchModel(module, hops=2, number_of_features=columns + 2, number_of_classes=3)
    world, rng = schema_world(seed, model=model), np.random.default_rng(seed)
    candidates = mixed_list(world, 1, rng)
    few = replace(candidates, pair_sets=candidates.pair_sets[:12], feature_sets=candidates.feature_sets[:30])
    assert worst(world, few, rng) < CLOSE


@pytest.mark.parametrize("rule", ["recourse", "recourse-features"])
@pytest.mark.parametrize("seed", range(4))
def test_lists_of_the_rules_are_exact(seed: int, rule: str) -> None:
    world, rng = schema_world(seed, nodes=16), np.random.default_rng(seed)
    candidates = RULES[rule].propose(world.context, 0)
    assert candidates.changes
    assert worst(world, candidates, rng) < CLOSE


def test_an_evaluator_that_forgets_the_changes_is_found_out() -> None:
    """The twin: the same list with the present values in the place of the new ones."""
    world, rng = schema_world(1), np.random.default_rng(1)
    row = world.context.features[[0]].toarray()[0]
    candidates = mixed_list(world, 0, rng)
    forgotten = tuple(replace(one, values=tuple(row[list(one.columns)].tolist())) for one in candidates.changes)
    outcomes = evaluate(world.graph, world.context, replace(candidates, changes=forgotten), UNLIMITED)
    true = evaluate(world.graph, world.context, candidates, UNLIMITED)
    assert np.abs(outcomes.logits - true.logits).max() > 100 * CLOSE


@pytest.mark.parametrize("kind", ["fast", "gat"])
def test_setting_the_present_value_changes_nothing_at_all(kind: str) -> None:
    """Also where the table was scaled in another precision, so that the last bits differ."""
    rng = np.random.default_rng(0)
    schema = Schema.read({"features": {"Duration": _number(0), "Amount": _number(1)}})
    table = np.column_stack([(np.arange(8) * 3 - 11.7) / 3.3, (np.arange(8) - 11.7) / 3.3]).astype(np.float32)
    table = np.nextafter(table, np.float32(9))
    module = TorchModel(TwoLayers("gat", 2), hops=2, number_of_features=2, number_of_classes=3)
    model = random_gcn(rng, 2) if kind == "fast" else module
    context = PublicContext(table, random_pairs(rng, 8, 0.5), model, schema=schema)
    duration = schema.features[0]
    same = schema.encoded(duration, duration.levels[6], {})
    assert same.values[0] != table[2, 0]
    listed = Candidates(2, Caps(0, 1), changes=(same,), feature_sets=((), (0,)))
    world = World(context, random_pairs(rng, 8, 0.4))
    logits = evaluate(world.graph, context, listed, UNLIMITED).logits
    assert (logits[:, 0] == logits[:, 1]).all()


def _number(column: int) -> dict[str, object]:
    return {"kind": "number", "column": column, "low": 0, "high": 30, "step": 1, "scale": 3.3, "offset": 11.7}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_list_is_the_same_whatever_the_secret_features(rule: str) -> None:
    """Changes are those that anyone can make, without a present value; the secret values decide what they do."""
    world = schema_world(3, secret=True)
    context = world.context
    table = context.features.toarray()
    outcomes = []
    for other in (1, 2):
        features = table.copy()
        features[0] = table[other]
        secrets = Secrets(context, features=features)
        outcomes.append(evaluate(world.graph, secrets, RULES["recourse"].propose(context, 0), UNLIMITED))
    assert outcomes[0].candidates == outcomes[1].candidates
    assert np.abs(outcomes[0].logits - outcomes[1].logits).max() > 0, "the secret values decide"
    offered = RULES[rule].propose(context, 0).changes
    assert all(not one.change.before for one in offered)
    assert context.schema is not None
    assert {one.change.feature for one in offered} <= {
        one.name for one in context.schema.features if one.reachable(None)
    }


def test_a_secret_present_value_is_a_no_op_and_does_not_flip() -> None:
    rng = np.random.default_rng(4)
    schema = Schema.read({"features": {"Duration": _number(0), "Amount": _number(1)}})
    table = ((rng.integers(0, 30, (9, 2)) - 11.7) / 3.3).astype(np.float32)
    public = PublicContext(
        np.zeros((9, 2)),
        random_pairs(rng, 9, 0.4),
        random_gcn(rng, 2),
        schema=schema,
        assumptions=hiding(features=True),
    )
    secrets = Secrets(public, features=table)
    duration = schema.features[0]
    every = tuple(schema.encoded(duration, level, {}) for level in duration.levels)
    listed = Candidates(5, Caps(0, 1), changes=every, feature_sets=((), *((one,) for one in range(len(every)))))
    outcomes = evaluate(private(random_pairs(rng, 9, 0.4), 9), secrets, listed, UNLIMITED)
    same = [one for one in range(len(every)) if np.isclose(every[one].values[0], table[5, 0], atol=1e-5)]
    assert len(same) == 1
    assert (outcomes.logits[:, 1 + same[0]] == outcomes.logits[:, 0]).all()
    assert not outcomes.flips()[1 + same[0]]
    assert len(np.unique(outcomes.logits, axis=1).T) > 20


def test_sets_of_changes_name_no_feature_twice() -> None:
    world: World = schema_world(2, rules=False)
    changes = any_changes(world, 0, np.random.default_rng(0), most=9)
    sets = change_sets(world.context, 0, changes, 2)
    assert sets[0] == ()
    expected = [
        pair for pair in combinations(range(len(changes)), 2) if len({changes[one].change.feature for one in pair}) == 2
    ]
    assert [one for one in sets if len(one) == 2] == expected


def lengths(sets: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    return np.array([len(one) for one in sets])


@pytest.mark.parametrize("rule", sorted(RULES))
def test_smaller_sets_of_changes_come_first(rule: str) -> None:
    """A list with a cap on all elements takes the first feature sets, as many as fit."""
    sizes = lengths(RULES[rule].propose(schema_world(2).context, 0).feature_sets)
    assert (np.diff(sizes) >= 0).all()
