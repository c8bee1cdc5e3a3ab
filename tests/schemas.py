"""Random schemas of features with tables that fit them, and changes carried out the slow way."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs import Intervention, PublicContext, Schema, hiding
from privcfs.public.models.model import Model
from privcfs.public.schema.feature import Feature
from privcfs.public.schema.of_node import encoded_changes
from tests.worlds import World, carried_out, random_gcn, random_pairs

WORDS = ("rise", "fall", "change")


def random_schema(rng: np.random.Generator, rules: bool = True) -> tuple[Schema, int]:
    """Numbers, flags, one-hot and cumulative categories and fixed features; and how many columns they have."""
    features: dict[str, dict[str, Any]] = {}
    column = 0
    for number in range(int(rng.integers(3, 7))):
        kind = str(rng.choice(["number", "number", "flag", "category", "cumulative", "fixed"]))
        freedom: dict[str, Any] = {"cost": int(rng.integers(1, 5)), "cost_per_step": int(rng.integers(0, 3))}
        freedom["direction"] = str(rng.choice(["any", "any", "up", "down"]))
        if rng.random() < 0.3:
            freedom["largest_change"] = int(rng.integers(1, 9))
        if rng.random() < 0.1:
            freedom["change"] = False
        scaling = {"scale": float(rng.choice([0.5, 1, 3.7])), "offset": float(rng.choice([0, 0.4, 2]))}
        wide = int(rng.integers(2, 4))
        options: dict[str, Any] = {f"option {one}": column + one for one in range(wide)}
        if kind == "number":
            bounds = {"low": int(rng.integers(-3, 1)), "high": int(rng.integers(4, 30)), "step": 1}
            made = {"kind": kind, "column": column, "unit": "months", **bounds, **scaling, **freedom}
        elif kind == "flag":
            made = {"kind": kind, "column": column, **scaling, **freedom}
        elif kind == "fixed":
            made = {"kind": kind, "column": column}
        else:
            if kind == "cumulative":
                options = {f"option {one}": list(range(column, column + one)) for one in range(wide + 1)}
            made = {"kind": "category", "options": options, **scaling, **freedom}
            if rng.random() < 0.5:
                names = list(options)
                made["transitions"] = {one: [str(rng.choice(names)) for _ in range(2)] for one in names[:2]}
        features[f"feature {number}"] = made
        column += wide if made["kind"] == "category" else 1
    found: dict[str, Any] = {"features": features}
    kept: list[dict[str, Any]] = []
    for rule in _rules(rng, features) if rules else ():
        try:  # Some of the random rules contradict the features or each other, and are refused.
            Schema.read(found | {"rules": [*kept, rule]})
        except Exception:
            continue
        kept.append(rule)
    return Schema.read(found | {"rules": kept}), column


def _rules(rng: np.random.Generator, features: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    names = list(features)
    rules: list[dict[str, Any]] = []
    for _ in range(2):
        one, other = (str(name) for name in rng.permutation(names)[:2])
        word = f"{rng.choice(['may_not', 'must'])}_{rng.choice(WORDS)}"
        rules.append({f"if_{rng.choice(WORDS)}s": one, word: other})
    numbers = [name for name in names if features[name]["kind"] == "number"]
    return [*rules, {"sum": numbers[:2], "at_most": int(rng.integers(5, 40))}]


def levels_of(feature: Feature, rng: np.random.Generator, nodes: int) -> NDArray[np.float64]:
    """Random rows of a feature's columns; of a number some lie between the steps, of a fixed feature anything."""
    if not feature.levels:
        return rng.normal(size=(nodes, len(feature.columns)))
    return np.array([feature.encoded(feature.levels[one]) for one in rng.integers(0, len(feature.levels), nodes)])


def schema_world(seed: int, nodes: int = 14, model: Model | None = None, secret: bool = False, **of: Any) -> World:
    """A random graph over a random schema; two columns belong to no feature."""
    rng = np.random.default_rng(seed)
    schema, columns = random_schema(rng, **of)
    table = rng.normal(size=(nodes, columns + 2))
    for feature in schema.features:
        table[:, list(feature.columns)] = levels_of(feature, rng, nodes)
    context = PublicContext(
        table.astype(np.float32),
        random_pairs(rng, nodes, 0.4),
        model or random_gcn(rng, columns + 2),
        schema=schema,
        assumptions=hiding(features=secret),
    )
    return World(context, random_pairs(rng, nodes, 0.35))


def slow_logits_after(world: World, target: int, intervention: Intervention) -> NDArray[np.float64]:
    """A full-graph forward pass after an intervention whose features are set one after another."""
    table = world.context.features.toarray()
    table[target, list(intervention.mask)] = 0
    for one in encoded_changes(world.context, target, intervention.change):
        table[target, list(one.columns)] = one.values
    pairs = carried_out(world.pairs, intervention)
    logits: NDArray[np.float64] = world.context.model.logits(sp.csr_array(table), pairs)[target]
    return logits
