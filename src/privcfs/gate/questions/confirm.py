"""The question whether one intervention flips the decision: a noisy yes or no.

Zone: gate
Claim: as question.py; the true answer is e**epsilon times as likely as the other one.
Why: subset selection between two answers with half of the base measure in front is randomised response.
Check: tests/gate/test_asking.py::test_a_verdict_is_randomised_response
"""

from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np

from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.questions.question import (
    Asker,
    PublicSide,
    Question,
    checked_intervention,
    make_request,
)
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price
from privcfs.public.grid import Grid
from privcfs.public.interventions import Intervention
from privcfs.public.release import Guarantee
from privcfs.public.schema.of_node import encoded_changes, told
from privcfs.public.verdict import Verdict

YES_OR_NO = SubsetSelection(Fraction(1, 2))
TRUTH = Grid(1, (0, 1), 1)


@final
class ConfirmQuestion(Question):
    """Does this intervention flip the decision about this node?"""

    mechanism: Mechanism = YES_OR_NO

    def __init__(
        self, side: PublicSide, asker: Asker, target: int | str, intervention: Intervention, epsilon: Price
    ) -> None:
        """Checks everything public."""
        self.side = side
        node, price = side.context.node(target), side.price(epsilon)
        self._intervention = told(side.context, node, intervention)
        self._candidates = list_of_one(intervention, node, side.context)
        self.request = replace(
            make_request(side, asker, node, price, YES_OR_NO),
            mechanism="randomised response",
            question=f"does it flip: {intervention.in_numbers()}",
        )

    @property
    def priced(self) -> Request:
        """As long as the longer of the two answers."""
        return replace(self.request, room=max(len(self.answer(position)) for position in range(2)))

    @property
    def fallback(self) -> Scores:
        """No."""
        return scores_of_verdict(False)

    def score(self, reader: Reader) -> Scores:
        """Whether the last candidate, the intervention as a whole, does what the utility asks for."""
        return scores_of_verdict(bool(self.side.method.utility.valid(reader.whole(self._candidates))[-1]))

    def answer(self, position: int) -> str:
        """Yes, then no."""
        request = self.request
        labels = self.side.context.labels({request.target, *self._intervention.nodes})
        guarantee = Guarantee(request.epsilon, Fraction(1), request.adjacency)
        flips = position == 0
        return Verdict(request.target, self._intervention, flips, guarantee, request.request_id, labels).to_json()


def list_of_one(intervention: Intervention, target: int, context: PublicContext) -> Candidates:
    """A list that ends with this intervention as a whole."""
    checked_intervention(intervention, context)
    pairs = len(intervention.delete) + len(intervention.add)
    altered = len(intervention.mask) + len(intervention.change)
    return Candidates(
        target=target,
        caps=Caps(pairs, altered),
        deletions=intervention.delete,
        additions=intervention.add,
        features=intervention.mask,
        pair_sets=tuple(dict.fromkeys([(), tuple(range(pairs))])),
        feature_sets=tuple(dict.fromkeys([(), tuple(range(altered))])),
        changes=encoded_changes(context, target, intervention.change),
    )


def scores_of_verdict(flips: bool) -> Scores:
    """Scores of the two answers, yes and no: 1 for the true one."""
    return Scores(np.array([int(flips), int(not flips)], np.int64), TRUTH)
