"""The question which node of a public list to explain: close calls are likelier.

Zone: gate
Claim: as question.py.
Why: the positions are the nodes of a public list, and the score of a node is a level of a public grid.
Check: tests/contracts/test_questions.py::test_scores_of_every_graph_and_of_a_failure_have_one_shape
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import MatchedProfile
from privcfs.gate.questions.question import Asker, PublicSide, Question, make_request
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.epsilon import Price
from privcfs.public.grid import Grid
from privcfs.public.release import Guarantee
from privcfs.public.verdict import Selection

CLOSE_CALL = MatchedProfile()
CLOSENESS = Grid(10, tuple(range(11)), 10)


@final
class SelectQuestion(Question):
    """Which of these nodes has a decision that is close to flipping?"""

    mechanism: Mechanism = CLOSE_CALL

    def __init__(self, side: PublicSide, asker: Asker, targets: Sequence[int | str], epsilon: Price) -> None:
        """Checks everything public."""
        self.side, self._nodes = side, [side.context.node(target) for target in targets]
        price = side.price(epsilon)
        if len(set(self._nodes)) < max(len(self._nodes), 1):
            raise InputError("targets must be a list of different nodes, at least one.")
        self.nodes = tuple(self._nodes) if side.method.reads_own else ()
        self.request = replace(
            make_request(side, asker, self._nodes[0], price, CLOSE_CALL),
            mechanism="close call by matched profile",
            question=f"one of {self._nodes}",
            nodes=self.nodes,
        )

    @property
    def priced(self) -> Request:
        """As long as the longest of the possible answers."""
        return replace(self.request, room=max(len(self.answer(position)) for position in range(len(self._nodes))))

    @property
    def fallback(self) -> Scores:
        """Every decision as far from flipping as can be."""
        return Scores(np.zeros(len(self._nodes), np.int64), CLOSENESS)

    def score(self, reader: Reader) -> Scores:
        """Tenths by which the margin of each node falls short of certainty."""
        tenths = [int(10 * self._closeness(Candidates(node, Caps(0, 0)), reader)) for node in self._nodes]
        return Scores(np.clip(np.array(tenths, np.int64), 0, 10), CLOSENESS)

    def _closeness(self, no_change: Candidates, reader: Reader) -> float:
        """On the whole graph or, reading own edges alone, on the graphs around them."""
        if not self.nodes:
            return float(1 - reader.whole(no_change).margins()[0])
        method, context = self.side.method, self.side.context
        return reader.own(no_change, method.rehearsal.far_graphs(context, no_change, method.utility)).closeness()

    def answer(self, position: int) -> str:
        """The node at this position of the list."""
        node, request = self._nodes[position], self.request
        guarantee = Guarantee(request.epsilon, Fraction(1), request.adjacency)
        return Selection(node, guarantee, request.request_id, self.side.context.labels([node])).to_json()
