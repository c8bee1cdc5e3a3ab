"""How sure several answers about one target are, given all of them.

Zone: gate
Claim: the confidences are functions of the public context, the method, the price and the answers.
Why: each answer was drawn by a law that is public on every imagined graph, from a list that earlier answers have
    narrowed. The product of these laws weights the graphs; nothing else is read.
Check: tests/gate/test_together.py::test_several_answers_weight_imagined_graphs_by_the_laws_of_their_draws
"""

from collections.abc import Sequence

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.mechanisms.mechanism import Weighed
from privcfs.gate.method import Method
from privcfs.gate.questions.release import Earlier, lay_out
from privcfs.public.beliefs.belief import Floats, Numbers
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.release import Release


def confidences_together(context: PublicContext, method: Method, releases: Sequence[Release]) -> list[float | None]:
    """The probability that each of several suggestions is valid, given that all of them were drawn, in this order."""
    if not releases or any(one.target != releases[0].target for one in releases):
        raise InputError("confidences are of one or several suggestions about one target.")
    candidates = method.candidates.propose(context, releases[0].target)
    belief = None if method.guide is None else method.guide.belief(context, candidates, method.utility)
    if belief is None:
        return [None] * len(releases)
    laws: list[Floats] = []
    joint: list[Floats] = []  # with being valid
    for number, release in enumerate(releases, 1):
        chosen, epsilon = _drawn_among(context, method, releases[:number]), float(release.epsilon)
        here = _place(release, candidates, chosen)
        laws.append(belief.probabilities(chosen, epsilon)[:, here])
        joint.append(belief.drawn_and_valid(chosen, epsilon)[:, here])
    weights = belief.likelihood * np.prod(laws, axis=0)
    believed = [weights @ (valid / law) / weights.sum() for valid, law in zip(joint, laws, strict=True)]
    found = belief.calibration(np.array(believed)).tolist()
    return [sure if one.intervention.size else 0.0 for sure, one in zip(found, releases, strict=True)]


def _place(release: Release, candidates: Candidates, chosen: Numbers) -> int:
    """Where an answer stands among those that it was drawn among."""
    places = [place for place, position in enumerate(chosen) if candidates[position] == release.intervention]
    if not places:
        raise InputError(f"{release.request_id} is none of these suggestions; give them all, in their order.")
    return places[0]


def _drawn_among(context: PublicContext, method: Method, releases: Sequence[Release]) -> Numbers:
    """The positions that the last of these suggestions was drawn among."""
    *before, last = releases
    avoiding = [one.intervention for one in before if one.intervention.size]
    mechanism = lay_out(method, context, last.target, last.epsilon, Earlier(avoiding))[1].mechanism
    return np.flatnonzero(mechanism.base) if isinstance(mechanism, Weighed) else np.empty(0, np.int64)
