"""Checks and asks before budget is spent: what is charged never comes back."""

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import typer

from privcfs.errors import BudgetExhausted, InputError
from privcfs.gate.ledger.ledger import Ledger
from privcfs.public.epsilon import show

DEAR = Fraction(1, 2)  # of what is left: whoever spends more is asked
YesOption = Annotated[bool, typer.Option("--yes", help="Spend more than half of what is left without being asked.")]


def agree_to_one(
    cost: Fraction, ledger: Ledger, analyst: str, request_id: str | None, yes: bool, nodes: Sequence[int] = ()
) -> None:
    """As `agree`, for one request; a request that is paid already costs nothing."""
    if request_id is None or not ledger.paid(analyst, [request_id]):
        agree(cost, ledger, analyst, yes, nodes)


def agree(cost: Fraction, ledger: Ledger, analyst: str, yes: bool, nodes: Sequence[int] = ()) -> None:
    """Refuses what does not fit; asks a person at the terminal about what is dear, and wants `--yes` from a program.

    With `nodes`, the cost is that of each of them, on an account of its own.
    """
    (remaining, limited_by), unit = ledger.left_for(analyst, nodes=nodes), ledger.limit.contract.unit
    whose = "on the account of a node" if limited_by == "node" else f"for {analyst or 'everyone'}"
    if cost > remaining:
        told = "" if ledger.limit.per_node is None else f" {ledger.losses().in_words()}"
        raise BudgetExhausted(
            f"{unit} {show(cost)} is needed, and {show(remaining)} is left {whose}. Nothing was charged; ask for "
            f"less.{told}"
        )
    if yes or cost <= DEAR * remaining:
        return
    words = f"this spends {unit} {show(cost)} of the {show(remaining)} that is left {whose}"
    if not sys.stdin.isatty():
        raise InputError(f"{words}; add --yes if that is meant. Nothing was charged.")
    if not typer.confirm(f"{words[0].upper()}{words[1:]}. Go on?", err=True):
        raise InputError("stopped; nothing was charged.")
