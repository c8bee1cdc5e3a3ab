"""The public parts of the questions that a vault answers besides the plain one.

Zone: gate
Claim: what is asked, and between which answers is drawn, depends on public data and earlier answers alone.
Why: nothing here is given a private graph. A noisy yes or no is subset selection between two answers with half of the
    line in front, so the true one is e**epsilon times as likely; earlier answers are public, so leaving out what they
    name is a public base measure.
Check: tests/gate/test_asking.py::test_a_verdict_is_randomised_response
"""

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed, lengths_of
from privcfs.gate.mechanisms.rank_profile import MatchedProfile, SubsetSelection
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import NANO
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
    taken = {element for one in avoiding for element in _elements(one)}
    return _only(mechanism, candidates, lambda one: not _elements(one) & taken, "avoiding")


def within(mechanism: Mechanism, candidates: Candidates, beyond: Intervention | None) -> Mechanism:
    """The same mechanism with a base of 0 for candidates that do not contain an earlier, public answer."""
    if beyond is None:
        return mechanism
    start = _elements(beyond)
    return _only(mechanism, candidates, lambda one: not one.size or start <= _elements(one), "beyond")


def _only(
    mechanism: Mechanism, candidates: Candidates, allowed: Callable[[Intervention], bool], argument: str
) -> Mechanism:
    if not isinstance(mechanism, Weighed):
        raise InputError(f"{argument} needs a mechanism with a base measure; {mechanism.name} has none.")
    lengths = lengths_of(mechanism.base, len(candidates)).tolist()
    base = [length if allowed(one) else 0 for one, length in zip(candidates, lengths, strict=True)]
    base[0] = max(base[0], int(not any(base)))
    return mechanism.under(tuple(base))


def part_of(price: Fraction, number: int) -> Fraction:
    """An equal part as a decimal: exact where it is one, otherwise rounded down to thousandths, or to billionths."""
    part = price / number
    step = NANO if not NANO % part.denominator or part < Fraction(1, 1000) else 1000
    return Fraction(int(part * step), step)


def longest_addition(candidates: Candidates, context: PublicContext) -> int:
    """Upper bound on the letters that a candidate adds to the certificate of the empty set; public."""
    nodes = {node for pair in candidates.deletions + candidates.additions for node in pair}
    number = max((len(str(one)) for one in (*nodes, *candidates.features)), default=0)
    name = max((len(json.dumps(context.label(node))) for node in nodes), default=0)
    pair = len("[,],") + 2 * number + 2 * (len('"":,') + number + name)
    pairs, masks = (max(map(len, sets)) for sets in (candidates.pair_sets, candidates.feature_sets))
    return pairs * pair + masks * (number + len(","))


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
