"""The public guess, the honest zero of every result: what public data alone suggest, at epsilon 0.

Zone: gate
Claim: the guess is a function of the public context and the candidates.
Why: the only graph that is evaluated is the public snapshot.
Check: tests/gate/test_public_guess.py::test_the_guess_is_the_same_whatever_the_private_graph
"""

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention


def public_guess(context: PublicContext, candidates: Candidates) -> Intervention:
    """The candidate that leaves the lowest margin on the public snapshot; the empty set only if there is no other."""
    try:
        with np.errstate(all="ignore"):
            snapshot = PrivateGraph.from_snapshot(context.snapshot)
            margins = evaluate(snapshot, context, candidates, UNLIMITED).margins()
    except ArithmeticError:  # The model's values are not finite, so all candidates look alike.
        margins = np.zeros(len(candidates))
    return candidates[lowest_margin(margins, candidates.sizes)]


def lowest_margin(margins: NDArray[np.float64], sizes: NDArray[np.int64], most: int | None = None) -> int:
    """The position of the lowest margin among candidates with 1 to `most` elements; 0, the empty set, without any."""
    considered = (sizes > 0) & (sizes <= (sizes.max() if most is None else most))
    return int(np.argmin(np.where(considered, margins, np.inf)))
