"""The public choices of a vault file as a `Method`: candidate rule, utility, mechanism, and what answers may name.

Zone: owner
Claim: a method is a function of the vault file and the public context.
Why: no edge, secret model or secret feature is handed to this code.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from privcfs.errors import ContextError, InputError, OwnerError, SettingsError
from privcfs.gate.guidance import Guide, Rehearsal
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import DEAREST, Method
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.private.utilities import EXPLAINERS, UTILITIES
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates import RULES
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.candidates.costs import Costs
from privcfs.public.candidates.pairs import Listed
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.within_schema import WithinSchema
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal, all_but, one_of
from privcfs.tables.edges import EdgeListReader

REHEARSED_DRAW = "rehearsed"  # the name of the guided draw in a vault file
WHOLE_GRAPH = "whole-graph"  # what an answer reads unless a vault file says otherwise
READS: Mapping[str, Callable[[Rehearsal], Guide]] = {WHOLE_GRAPH: lambda one: one, "own-edges": OwnEdgeRehearsal}
Table = Mapping[str, Any]
T = TypeVar("T")


def method_of(method: Table, actionable: Table, metadata: Path | None, context: PublicContext) -> Method:
    """The method that the tables [method] and [actionable] describe; `metadata` is a file of pairs to delete."""
    found = _choices(method, actionable, metadata, context)
    return replace(found, evaluation_seconds=method.get("evaluation_seconds", found.evaluation_seconds))


def _choices(method: Table, actionable: Table, metadata: Path | None, context: PublicContext) -> Method:
    """Candidate rule, utility and mechanism or guide."""
    restriction, costs = _restriction(actionable, metadata, context)
    rule = _rule(method, context)
    utility = _choice(method, "utility", {**UTILITIES, **EXPLAINERS}, "gated")
    if restriction != Restriction() or actionable:
        rule = rule.restricted(restriction)
    if restriction.desired is not None:
        utility = utility.towards(restriction.desired)
    mechanism = mechanism_of(method)
    if mechanism is not None:
        if method.get("reads", WHOLE_GRAPH) != WHOLE_GRAPH:
            raise SettingsError("vault file: method.reads = 'own-edges' needs the mechanism rehearsed.")
        return Method(rule, utility, mechanism)
    disclosed = method.get("disclosed", Worlds().disclosed)
    if isinstance(disclosed, bool) or not isinstance(disclosed, int | float):
        raise SettingsError("vault file: method.disclosed must be a number from 0 to 1, without quotes.")
    rehearsal = Rehearsal(Worlds(disclosed=disclosed), costs=costs)
    return Method(rule, utility, guide=_choice(method, "reads", READS, WHOLE_GRAPH)(rehearsal))


def _rule(method: Table, context: PublicContext) -> CandidateRule:
    """The candidate rule; with a schema every rule is kept to it, and recourse is the one that is usual."""
    rule = _choice(method, "candidates", RULES, "small-sets" if context.schema is None else "recourse")
    if context.schema is None and isinstance(rule, Recourse):
        raise SettingsError(
            f"vault file: method.candidates = {method['candidates']!r} needs a schema of features; name it as "
            "public.schema, or choose small-sets."
        )
    return rule if context.schema is None or rule.keeps_schema else WithinSchema(rule)


def _goal(wanted: object, context: PublicContext) -> Goal:
    """The class to reach, several, or all but some."""
    count = context.number_of_classes
    if isinstance(wanted, dict):
        if set(wanted) != {"not"}:
            raise ValueError("desired is a class, a list of classes, or { not = [classes] }")
        avoided = wanted["not"]
        return all_but([int(one) for one in (avoided if isinstance(avoided, list) else [avoided])], count)
    if isinstance(wanted, list):
        return one_of([int(one) for one in wanted], count)
    return range(count)[int(str(wanted))]


def mechanism_of(method: Table) -> Mechanism | None:
    """The mechanism that a vault file names; none where a guide prepares one for each question."""
    return _choice(method, "mechanism", {REHEARSED_DRAW: None} | dict(MECHANISMS), REHEARSED_DRAW)


def dearest_mechanism(method: Table) -> Mechanism:
    """The mechanism by which a release costs most: under a guide, the dearest that it may prepare."""
    return mechanism_of(method) or DEAREST


def _restriction(table: Table, metadata: Path | None, context: PublicContext) -> tuple[Restriction, Costs]:
    """What an answer may name and which class it should reach; and what its elements cost."""
    try:
        immutable, partners = (
            None if key not in table else frozenset(context.node(str(node)) for node in table[key])
            for key in ("immutable_nodes", "partners")
        )
        features = frozenset(
            column for feature in table.get("immutable_features", ()) for column in context.columns_of(feature)
        )
        desired = None if "desired" not in table else _goal(table["desired"], context)
        costs = Costs(**{str(key): int(value) for key, value in dict(table.get("cost", {})).items()})
    except (TypeError, ValueError, IndexError, AttributeError, InputError, OwnerError) as error:
        raise SettingsError(f"vault file: [actionable] cannot be read: {error}") from None
    allowed = Actionability(immutable or frozenset(), features, partners)
    return Restriction(allowed, desired, _deletions(metadata, context)), costs


def _deletions(metadata: Path | None, context: PublicContext) -> Listed | None:
    """The pairs of a public graph of metadata, where there is one."""
    if metadata is None:
        return None
    listed = EdgeListReader("metadata", ContextError, context.nodes).read(metadata)
    return Listed(tuple((u, w) for u, w in listed.tolist()))


def _choice(method: Table, key: str, table: Mapping[str, T], default: str) -> T:
    """The entry of a table of parts that the vault file names."""
    name = method.get(key, default)
    if not isinstance(name, str) or name not in table:
        raise SettingsError(f"vault file: method.{key} is {name!r}; choose one of {', '.join(table)}.")
    return table[name]
