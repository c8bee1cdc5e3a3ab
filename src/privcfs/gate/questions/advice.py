"""Advice for the person concerned: free from her own edges, or paid where other people's edges are read too.

Zone: gate
Claim: free advice is a function of public data and of the own edges of the person who asks. Paid advice is pure
    epsilon-DP for any two graphs in which she has the same edges.
Why: the list, the plan and its confidences are made from public data and her own edges, through a reader that can read
    nothing else. Only `score` reads the whole graph, after payment. What is planned with her edges is kept for nobody,
    and the answer is stored apart from the ledger's rows, at a public length.
Check: tests/claims/test_own_edges.py::test_advice_is_the_same_whatever_connections_others_have
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.guidance import Prepared
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import DEAREST, constraints_digest
from privcfs.gate.questions.question import Asker, PublicSide, Question, make_request
from privcfs.private.allowance import Overrun
from privcfs.private.own_reading import OwnOutcomes
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Advice, Change
from privcfs.public.believed import likely
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price
from privcfs.public.interventions import FeatureChange
from privcfs.public.per_context import per_context
from privcfs.public.schema.amounts import LONGEST_AMOUNT

MOST_ALTERNATIVES = 10


@final
class Personal:
    """What can be said to one person from public data and her own edges. It is hers, and kept nowhere.

    Args:
        side: The public side of the vault.
        node: The person's node.
        reader: Reads the own edges of this node, and nothing else.
        told: The decision that she says she was told, as a class; by default nothing is known of it.
    """

    def __init__(self, side: PublicSide, node: int, reader: Reader, told: int | None = None) -> None:
        self.side, self.node, self._reader, self._told = side, node, reader, told

    @cached_property
    def candidates(self) -> Candidates:
        """Her own list."""
        return self._reader.own_list(self.node, self.side.method.candidates, self.side.context)

    @cached_property
    def outcomes(self) -> OwnOutcomes:
        """What is believed about her list."""
        method, context = self.side.method, self.side.context
        far = method.rehearsal.far_graphs(context, self.candidates, method.utility, self._told)
        try:
            return self._reader.own(self.candidates, far)
        except (Overrun, ArithmeticError, MemoryError):  # Her own edges decide whether this happens.
            raise InputError(
                "advice about this node would take more work than the vault allows (evaluation_seconds); ask for a "
                "release instead. Nothing was charged."
            ) from None

    @property
    def believed(self) -> Mapping[int, float]:
        """The probability of each class that is likely to be the present decision."""
        classes = range(self.side.context.number_of_classes)
        likelihood, original = self.outcomes.belief.likelihood, self.outcomes.original
        return likely({label: float(likelihood[original == label].sum()) for label in classes})

    def best(self, number: int) -> list[Change]:
        """The likeliest changes, best first; none shares a pair or a feature with one before it."""
        belief = self.outcomes.belief
        expected = (belief.likelihood @ belief.valid) * belief.worth
        expected[~self.side.method.rehearsal.costs.allow(self.candidates)] = -2  # Dearer changes are never named.
        expected[0] = -1  # No change is no advice, unless there is nothing to change.
        taken: set[tuple[str, object]] = set()
        found: list[Change] = []
        for position in np.argsort(-expected, kind="stable").tolist():
            if len(found) == number:
                break
            subjects = self.candidates[position].subjects
            if not subjects & taken and expected[position] > -2 and (position or not found):
                taken |= subjects
                confidence = belief.guess_confidence(position) if position else 0.0
                found.append(Change(self.candidates[position], confidence))
        return found

    def advice(self, changes: list[Change], paid: Request | None = None) -> Advice:
        """Changes as a certificate, of a paid request or of none."""
        context = self.side.context
        nodes = {self.node, *(node for one in changes for node in one.intervention.nodes)}
        return Advice(
            target=self.node,
            changes=tuple(changes),
            believed=self.believed,
            context_digest=self.side.digest,
            assumptions=tuple(sorted(item.name for item in context.assumptions)),
            epsilon=Fraction(0) if paid is None else paid.epsilon,
            told=self._told,
            analyst="" if paid is None else paid.analyst,
            request_id="" if paid is None else paid.request_id,
            labels=context.labels(nodes),
            constraints=constraints_digest(self.side.method, context),
        )


def free_advice(personal: Personal, alternatives: int) -> Advice:
    """The best change and alternatives, without reading an edge that is not hers."""
    is_number = isinstance(alternatives, int) and not isinstance(alternatives, bool)
    if not is_number or not 0 <= alternatives <= MOST_ALTERNATIVES:
        raise InputError(f"alternatives is {alternatives!r}; ask for 0 to {MOST_ALTERNATIVES}.")
    return personal.advice(personal.best(1 + alternatives))


@final
class AdviceQuestion(Question):
    """Which change flips the decision about her, if other people's edges are read at a price?"""

    def __init__(self, asker: Asker, personal: Personal, epsilon: Price) -> None:
        """Checks everything public; reads nothing yet."""
        self.side, self._personal = personal.side, personal
        price = self.side.price(epsilon)
        self.request = replace(
            make_request(self.side, asker, personal.node, price, DEAREST),
            mechanism="rehearsed subset-selection for the person concerned",
            question="advice",
            apart=True,
        )

    @cached_property
    def _prepared(self) -> Prepared:
        """Planned on graphs that hold her own edges."""
        belief, candidates = self._personal.outcomes.belief, self._personal.candidates
        return self.side.method.rehearsal.prepared(belief, candidates, self.request.epsilon)

    @cached_property
    def mechanism(self) -> Mechanism:
        """What is prepared for her list."""
        return self._prepared.mechanism

    @cached_property
    def priced(self) -> Request:
        """As question.py says. Cost and length are public, so they depend neither on her list nor on its plan.

        The cost is that of the costliest plan: under a contract that counts more than epsilon, the cost of her own
        plan would tell about her edges, and costs stand in the ledger.
        """
        empty = self._personal.advice([Change(self._personal.candidates[0], 0.0)], self.request)
        skeleton = len(replace(empty, believed={}, labels={}).to_json())
        return replace(self.request, room=skeleton + _longest_part(self.side))

    @property
    def fallback(self) -> Scores:
        """The utility's own."""
        return self.side.method.utility.failed(self._personal.candidates)

    def score(self, reader: Reader) -> Scores:
        """By the method's utility, on the whole graph."""
        return self.side.method.utility.score(reader.whole(self._personal.candidates))

    def answer(self, position: int) -> str:
        """A certificate of advice."""
        change = Change(self._personal.candidates[position], self._prepared.confidences[position])
        return self._personal.advice([change], self.request).to_json()


def _longest_part(side: PublicSide) -> int:
    """Upper bound on the letters of a change, of the names and of the believed classes; the same for everyone."""
    caps, number = side.method.candidates.caps, len(str(max(side.context.features.shape)))
    pair = len("[,],") + 2 * number
    label = len('"":,') + number + _longest_name(side.context)
    classes = side.context.number_of_classes * (len('"":"0.000",') + number)
    named = 2 * caps.pairs + 1 if side.context.node_ids else 0
    changed = caps.features * _longest_change(side.context)
    return caps.pairs * pair + caps.features * (number + 1) + changed + named * label + classes + len('"labels":{},')


@per_context(maxsize=1)
def _longest_change(context: PublicContext) -> int:
    """Upper bound on the letters of a change of a feature, with its share of the list around it."""
    if context.schema is None:
        return 0
    longest = 0
    for feature in context.schema.features:
        words = [LONGEST_AMOUNT if feature.kind == "number" else feature.show(level) for level in feature.levels]
        value = max(words, key=lambda word: len(json.dumps(word)), default="")
        change = FeatureChange(feature.name, value or "-", value, feature.unit)
        longest = max(longest, len(json.dumps(change.to_dict())))
    return longest + len('"change":[],')


@per_context(maxsize=1)
def _longest_name(context: PublicContext) -> int:
    return max((len(json.dumps(name)) for name in context.node_ids or ()), default=0)
