"""The public guess, the honest zero of every result: what public data alone suggest, at epsilon 0.

Zone: gate
Claim: the guess and its confidence are functions of the public context, the candidates and the method.
Why: the only graphs that are evaluated are imagined from public data, or are the public snapshot.
Check: tests/gate/test_public_guess.py::test_the_guess_is_the_same_whatever_the_private_graph
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import Method
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext

REHEARSAL = Rehearsal()


class Guess(NamedTuple):
    """The position of the guess in its list, and the probability that it is valid."""

    position: int
    confidence: float


def public_guess(context: PublicContext, candidates: Candidates, method: Method) -> Guess:
    """The candidate that is likeliest to be valid on imagined graphs; the empty set only if there is no other."""
    guide = method.guide if isinstance(method.guide, Rehearsal) else REHEARSAL
    belief = guide.belief(context, candidates, method.utility)
    position = belief.guess()
    return Guess(position, belief.guess_confidence(position) if position else 0.0)


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
