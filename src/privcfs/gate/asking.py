"""The public parts of the questions that a vault answers besides the plain one.

Zone: gate
Claim: what is asked, and between which answers is drawn, depends on public data and earlier answers alone.
Why: nothing here is given a private graph. A noisy yes or no is subset selection between two answers with half of the
    line in front, so the true one is e**epsilon times as likely; earlier answers are public, so leaving out what they
    name is a public base measure.
Check: tests/gate/test_asking.py::test_a_verdict_is_randomised_response
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed, lengths_of
from privcfs.gate.mechanisms.rank_profile import MatchedProfile, SubsetSelection
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.context import PublicContext
from privcfs.public.grid import Grid
from privcfs.public.interventions import Intervention

MOST_SUGGESTIONS = 20
YES_OR_NO = SubsetSelection(Fraction(1, 2))  # of two answers: randomised response
CLOSE_CALL = MatchedProfile()
TRUTH = Grid(1, (0, 1), 1)
CLOSENESS = Grid(10, tuple(range(11)), 10)


class Asked(NamedTuple):
    """How an answer is drawn, and what the question was where it is not for an intervention alone."""

    mechanism: str
    question: str = ""
    digest: str = ""  # of the public context and the method, where it is not the vault's own


def without(mechanism: Mechanism, candidates: Candidates, avoiding: Sequence[Intervention]) -> Mechanism:
    """The same mechanism with a base of 0 for candidates that share an element with earlier, public answers."""
    if not avoiding:
        return mechanism
    if not isinstance(mechanism, Weighed):
        raise InputError(f"avoiding needs a mechanism with a base measure; {mechanism.name} has none.")
    taken = {element for one in avoiding for element in _elements(one)}
    lengths = lengths_of(mechanism.base, len(candidates)).tolist()
    base = [0 if _elements(one) & taken else length for one, length in zip(candidates, lengths, strict=True)]
    base[0] = max(base[0], int(not any(base)))
    return mechanism.under(tuple(base))


def alone(intervention: Intervention, target: int, context: PublicContext) -> Candidates:
    """A list that ends with this intervention as a whole."""
    known(intervention, context)
    pairs = len(intervention.delete) + len(intervention.add)
    return Candidates(
        target=target,
        caps=Caps(pairs, len(intervention.mask)),
        deletions=intervention.delete,
        additions=intervention.add,
        features=intervention.mask,
        pair_sets=tuple(dict.fromkeys([(), tuple(range(pairs))])),
        feature_sets=tuple(dict.fromkeys([(), tuple(range(len(intervention.mask)))])),
    )


def known(intervention: Intervention, context: PublicContext) -> Intervention:
    """The same, if its nodes and features exist."""
    nodes = [node for pair in intervention.delete + intervention.add for node in pair]
    bounds = ((nodes, context.number_of_nodes), (intervention.mask, context.features.shape[1]))
    if any(not 0 <= one < bound for named, bound in bounds for one in named):
        raise InputError("intervention names a node or a feature that does not exist; give one of this graph.")
    return intervention


def _elements(one: Intervention) -> set[tuple[str, object]]:
    return {(kind, element) for kind in ("delete", "add", "mask") for element in getattr(one, kind)}


def says(flips: bool) -> Scores:
    """Two answers, yes and no: the true one scores."""
    return Scores(np.array([int(flips), int(not flips)], np.int64), TRUTH)
