"""How the command line speaks: words for people, one JSON object for programs."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from rich.console import Console

from privcfs.errors import PrivcfsError
from privcfs.gate.vault import Vault
from privcfs.public.epsilon import show

console = Console(highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Control characters written out, such as \\x1b: names and cells of files must not steer a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def say(text: str = "") -> None:
    """Lines for people."""
    console.print("\n".join(printable(line) for line in text.split("\n")), markup=False)


def warn(text: str) -> None:
    """A line for people on standard error, if there is something to say."""
    if text:
        sys.stderr.write(f"Note: {printable(text)}\n")


def learning(step: str) -> None:
    """What a vault is learning from public data, which is done once: for people who wait at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"Once, from public data: {step} ...\n")


@contextmanager
def failures_told(vault: Vault) -> Iterator[None]:
    """Afterwards tells the owner, on standard error, which evaluations failed and which answers were late."""
    try:
        yield
    finally:
        warn(str(vault.failures))


def emit(value: Any) -> None:
    """A JSON object for programs, on one line."""
    sys.stdout.write(_json(value) + "\n")


def complain(error: PrivcfsError, as_json: bool) -> None:
    """An expected error on standard error, on one line."""
    fields = {"error": type(error).__name__, "message": str(error)}
    sys.stderr.write((_json(fields) if as_json else f"Error: {printable(str(error))}") + "\n")


def _json(value: Any) -> str:
    """ASCII alone; JSON itself leaves one control character, delete, as it is."""
    return json.dumps(value, sort_keys=True).replace("\x7f", "\\u007f")


def odds(epsilon: Fraction) -> str:
    """The factor by which a release can move anyone's odds about the graph, rounded up: it is an upper bound."""
    if epsilon > 20:
        return f"e^{show(epsilon)}"
    factor = math.exp(epsilon)
    return f"{math.ceil(100 * factor) / 100:,.2f}" if factor < 1000 else f"{math.ceil(factor):,}"
