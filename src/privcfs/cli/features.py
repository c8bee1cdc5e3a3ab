"""`privcfs features` and `privcfs believe`: what can be changed about a node, and what would become of a change."""

from typing import Annotated

import typer

from privcfs.cli.commands import VAULT, JsonOption, VaultOption
from privcfs.cli.output import emit, learning, say
from privcfs.errors import InputError
from privcfs.gate.method import constraints_of
from privcfs.gate.public_guess import believed_classes
from privcfs.gate.questions.confirm import list_of_one
from privcfs.owner.vault_file import read_vault_file
from privcfs.public.interventions import FeatureChange, Intervention
from privcfs.public.schema.of_node import told
from privcfs.public.schema.possible import PossibleChange, possible_changes
from privcfs.public.words import share_in_words

UNREAD = "Judged from public data alone; the true decision was not read. Nothing was paid."


def features(
    target: Annotated[str, typer.Argument(help="Node, by number or public name.")],
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Show what can be changed about a node, and to which values. Costs nothing and reads no edge."""
    file = read_vault_file(vault)
    context = file.context()
    node = context.node(target)
    method = file.method(context)
    found = possible_changes(context, node, method.candidates.allowed.immutable_features)
    if as_json:
        emit({"target": node, **found.to_dict()})
        return
    if not found.features:
        why = "has no feature that can change" if context.schema else "has features without a schema (docs/recourse.md)"
        say(f"{found.target} {why}.")
        return
    say(found.caption)
    for one in found.features:
        say(f"  {_line(one)}")


def believe(
    target: Annotated[str, typer.Argument(help="Node, by number or public name.")],
    changes: Annotated[
        list[str],
        typer.Option("--set", help="A feature and its new value, such as LoanDuration=24; may be given several times."),
    ],
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Show what would become of a change of features, judged from public data. Costs nothing, reads no edge."""
    file = read_vault_file(vault)
    context = file.context()
    method = file.believing_method(context, learning)
    node = context.node(target)
    change = told(context, node, Intervention(change=tuple(_change(text) for text in changes)))
    believed = believed_classes(context, list_of_one(change, node, context), method)
    constraints = constraints_of(method, context)
    cost, faults = constraints.cost(node, change), constraints.faults(node, change)
    if as_json:
        fields = {"target": node, "intervention": change.to_dict(), "believed": believed.to_dict()}
        emit({**fields, "cost": cost, "not_allowed": faults})
        return
    say(f"{context.label(node)}: {change}, at a cost of {cost}.")
    for fault in faults:
        say(f"  Not allowed: {fault}.")
    for when, classes in (("Now", believed.before), ("After it", believed.after or {})):
        words = ", ".join(f"class {label} ({share_in_words(chance)})" for label, chance in classes.items())
        say(f"  {when}: {words}")
    say(UNREAD)


def _change(text: str) -> FeatureChange:
    name, is_there, value = text.partition("=")
    if not (name.strip() and is_there and value.strip()):
        raise InputError(f"--set is {text[:80]!r}; write a feature and its new value, such as LoanDuration=24.")
    return FeatureChange(name.strip(), value.strip())


def _line(one: PossibleChange) -> str:
    unit = f" {one.unit}" if one.unit else ""
    if one.kind == "number":
        to = f"{one.values[0]} to {one.values[-1]}{unit}, in steps of {one.step}"
    else:
        to = ", ".join(one.values)
    now = f" (now {one.present}{unit})" if one.present else ""
    more = f", {one.cost_per_step} more for each step" if one.cost_per_step else ""
    return f"{one.feature}{now}: {to}; costs {one.cost}{more}"
