"""The public guess, the honest zero of every result: what public data alone suggest, at epsilon 0.

Zone: gate
Claim: the guess and its confidence are functions of the public context, the candidates and the method.
Why: the only graphs that are evaluated are imagined from public data, or are the public snapshot.
Check: tests/gate/test_public_guess.py::test_the_guess_is_the_same_whatever_the_private_graph
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.learning import learned
from privcfs.gate.method import Method
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.imagined import classes_on_imagined
from privcfs.private.graph import PrivateGraph
from privcfs.private.own_reading import OTHERWISE
from privcfs.public.beliefs.belief import cheapest_nearly_best
from privcfs.public.beliefs.imagined import Sampling
from privcfs.public.believed import Believed, likely
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext


class Guess(NamedTuple):
    """The position of the guess in its list, and the probability that it is valid."""

    position: int
    confidence: float


def public_guess(context: PublicContext, candidates: Candidates, method: Method) -> Guess:
    """The candidate that is likeliest to be valid on imagined graphs; the empty set only if there is no other.

    Where features have a schema, it is the cheapest of those that are nearly as likely (`cheapest_nearly_best`).
    """
    belief = method.rehearsal.belief(context, candidates, method.utility)
    costs = method.rehearsal.costs
    if context.schema is None:
        position = belief.guess(allowed=None if costs.most is None else costs.allow(candidates))
    else:
        allowed = costs.allow(candidates) & (np.arange(len(candidates)) > 0)
        position = cheapest_nearly_best(belief.likelihood @ belief.valid, costs.of(candidates), allowed)
    return Guess(position, belief.guess_confidence(position) if position else 0.0)


def believed_classes(
    context: PublicContext, candidates: Candidates, method: Method, told: int | None = None
) -> Believed:
    """Which classes are believed without a change, and under the last of the candidates.

    Args:
        context: The public context.
        candidates: A list whose first candidate is the empty set.
        method: Says what is believed of hidden pairs.
        told: The decision that somebody says they were told, which graphs that decide otherwise are weighted down by.

    Returns:
        Probabilities; those after a change only where the list has one.
    """
    rehearsal = method.rehearsal
    lesson = learned(context, rehearsal.worlds)
    classes = classes_on_imagined(context, lesson.beliefs, candidates, Sampling(rehearsal.worlds.number), lesson.blend)
    weights = np.full(classes.shape[1], (1 - lesson.trust) / max(classes.shape[1] - 1, 1))
    weights[0] = lesson.trust if classes.shape[1] > 1 else 1
    if told is not None:
        weights *= np.where(classes[0] == told, 1.0, OTHERWISE)
    weights /= weights.sum()
    before, after = (
        likely({label: float(weights[row == label].sum()) for label in range(context.number_of_classes)})
        for row in classes[[0, -1]]
    )
    return Believed(before, after if len(candidates) > 1 else None)


def snapshot_guess(context: PublicContext, candidates: Candidates) -> int:
    """The position of the candidate that leaves the lowest margin on the snapshot: version 0.1's guess."""
    try:
        with np.errstate(all="ignore"):
            snapshot = PrivateGraph.from_snapshot(context.snapshot)
            margins = evaluate(snapshot, context, candidates, UNLIMITED).margins()
    except ArithmeticError:  # The model's values are not finite, so all candidates look alike.
        margins = np.zeros(len(candidates))
    return lowest_margin(margins, candidates.sizes)


def lowest_margin(margins: NDArray[np.float64], sizes: NDArray[np.int64], most: int | None = None) -> int:
    """The position of the lowest margin among candidates with 1 to `most` elements; 0, the empty set, without any."""
    considered = (sizes > 0) & (sizes <= (sizes.max() if most is None else most))
    return int(np.argmin(np.where(considered, margins, np.inf)))
