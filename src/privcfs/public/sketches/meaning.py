"""What a sketch cost, covers and is worth, in numbers and in words."""

from typing import Any

from privcfs.public.epsilon import show
from privcfs.public.sketches.sketch import Sketch


def meaning_of(sketch: Sketch, guessed: float | None) -> dict[str, Any]:
    """What an owner should know of a sketch.

    Args:
        sketch: The sketch that a context knows.
        guessed: The share of free guesses that were right in a rehearsal with a sketch of public data; None where that
            was not tried.

    Returns:
        Its parts and prices as text, `one_edge` and `any_two_graphs` (None: no finite number), the share of hidden
        pairs that it covers (None where it cannot be estimated), `guessed`, and `in_words`.
    """
    plan = sketch.plan
    return {
        "name": sketch.name,
        "epsilon": show(plan.epsilon),
        "responses": show(plan.responses),
        "counts": show(plan.counts),
        "partners": plan.partners or None,
        "one_edge": show(plan.epsilon),
        "any_two_graphs": None,
        "covered": covered_by(sketch),
        "guessed": None if guessed is None else round(guessed, 3),
        "in_words": _in_words(sketch, guessed),
    }


def covered_by(sketch: Sketch) -> float | None:
    """The share of hidden pairs that randomised response covers; None where it cannot be estimated."""
    if not sketch.plan.responses:
        return 0.0
    return 1.0 if sketch.listed is None else sketch.listed.covered


def in_percent(covered: float | None) -> str:
    """The share of hidden pairs that is covered, in words."""
    if covered is None:
        return "a share that cannot be estimated, because too few pairs are public,"
    return f"about {100 * covered:.0f} % (estimated from public pairs that were held out)"


def _in_words(sketch: Sketch, guessed: float | None) -> str:
    plan, covered = sketch.plan, covered_by(sketch)
    price = show(plan.epsilon)
    said = (
        f"The sketch cost epsilon {price}, once, for two graphs that differ in one edge: m times as much for a person "
    )
    said += "with m edges, and no finite number for any two graphs. "
    if plan.responses:
        said += (
            "It covers all pairs. "
            if sketch.listed is None
            else f"It covers {in_percent(covered)} of the hidden pairs. "
        )
    if guessed is not None:
        said += (
            f"In a rehearsal on public data {100 * guessed:.0f} % of the free guesses with such a sketch were right."
        )
    return said.strip()
