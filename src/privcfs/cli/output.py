"""How the command line speaks: words for people, one JSON object for programs."""

import json
import math
import sys
from fractions import Fraction
from typing import Any

from rich.console import Console

from privcfs.errors import PrivcfsError
from privcfs.gate.accounting import Balance
from privcfs.public.epsilon import show

console = Console(highlight=False, soft_wrap=True)


def say(text: str = "") -> None:
    """A line for people."""
    console.print(text, markup=False)


def emit(value: Any) -> None:
    """A JSON object for programs, on one line."""
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")


def complain(error: PrivcfsError, as_json: bool) -> None:
    """An expected error on standard error."""
    text = json.dumps({"error": type(error).__name__, "message": str(error)}) if as_json else f"Error: {error}"
    sys.stderr.write(text + "\n")


def balance_fields(balance: Balance) -> dict[str, Any]:
    """A budget as JSON shows it."""
    return {
        "unit": balance.unit,
        "limit": None if balance.limit is None else show(balance.limit),
        "spent": show(balance.spent),
        "held": show(balance.held),
        "left": None if balance.left is None else show(balance.left),
        "releases": balance.releases,
    }


def odds(epsilon: Fraction) -> str:
    """The factor by which a release can move anyone's odds about the graph."""
    if epsilon > 20:
        return f"e^{show(epsilon)}"
    factor = math.exp(epsilon)
    return f"{factor:,.2f}" if factor < 1000 else f"{factor:,.0f}"
