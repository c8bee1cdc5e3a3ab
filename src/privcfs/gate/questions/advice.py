"""Advice for the person concerned: free from her own edges, or paid where something else that is secret is read.

Zone: gate
Claim: free advice is a function of public data and of the own edges of the person who asks. Paid advice is pure
    epsilon-DP for any two graphs in which she has the same edges, and for any two secret models and tables. Where
    other people's edges are not read, its law is the same for all graphs in which she has the same edges.
Why: the list, the plan and its confidences are made from public data and her own edges, through a reader that can read
    nothing else. Only `score` reads more, after payment: the whole graph, or the secret model and table on graphs
    imagined around her own edges. What is planned with her edges is kept for nobody, and the answer is stored apart
    from the ledger's rows, at a public length.
Check: tests/claims/test_own_edges.py::test_advice_is_the_same_whatever_connections_others_have
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from secrets import token_hex
from typing import NamedTuple, final

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.guidance import Prepared
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import DEAREST, constraints_digest
from privcfs.gate.questions.question import Asker, PublicSide, Question, make_request
from privcfs.gate.questions.release import Earlier, permitted
from privcfs.gate.questions.suggestions import in_turn, price_of_each
from privcfs.private.allowance import Overrun
from privcfs.private.own_reading import FarGraphs, OwnOutcomes, failed_scores
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Advice, Change
from privcfs.public.beliefs.belief import cheapest_nearly_best
from privcfs.public.believed import likely
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price
from privcfs.public.interventions import FeatureChange, Intervention
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
    def far(self) -> FarGraphs:
        """How graphs around her own edges are imagined; a function of public data and of her list."""
        method = self.side.method
        return method.rehearsal.far_graphs(self.side.context, self.candidates, method.utility, self._told)

    @cached_property
    def outcomes(self) -> OwnOutcomes:
        """What is believed about her list."""
        try:
            return self._reader.own(self.candidates, self.far)
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
        """The likeliest changes, best first; none shares a pair or a feature with one before it.

        Where features have a schema, the cheapest of those that are nearly as likely comes first.
        """
        belief, costs = self.outcomes.belief, self.side.method.rehearsal.costs
        candidates, chances = self.candidates, belief.likelihood @ belief.valid
        left = costs.allow(candidates)  # Dearer changes are never named.
        left[0] = False  # No change is no advice, unless there is nothing to change.
        found: list[Change] = []
        while left.any() and len(found) < number:
            if self.side.context.schema is None:
                position = int(np.where(left, chances * belief.worth, -1).argmax())
            else:
                position = cheapest_nearly_best(chances, costs.of(candidates), left)
            found.append(Change(candidates[position], belief.guess_confidence(position)))
            left &= ~candidates.sharing(position)
        return found or [Change(candidates[0], 0.0)]

    def advice(self, changes: list[Change], paid: Request | None = None, read_others: bool = True) -> Advice:
        """Changes as a certificate, of a paid request or of none; `read_others` says what the price was for."""
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
            own_edges_alone=not read_others,
            of_known_edges=not self.side.people_know_all,
            labels=context.labels(nodes),
            constraints=constraints_digest(self.side.method, context),
        )


def free_advice(personal: Personal, alternatives: int) -> Advice:
    """The best change and alternatives, without reading an edge that is not hers."""
    return personal.advice(personal.best(1 + checked_alternatives(alternatives)))


def checked_alternatives(number: int) -> int:
    """How many further changes are named."""
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if not is_number or not 0 <= number <= MOST_ALTERNATIVES:
        raise InputError(f"alternatives is {number!r}; ask for 0 to {MOST_ALTERNATIVES}.")
    return number


class Paying(NamedTuple):
    """What is paid for: the price of everything, whether it is for other people's edges too, and alternatives."""

    epsilon: Price
    read_others: bool
    alternatives: int


def paid_advice(answer: Callable[[Question], str], personal: Personal, asker: Asker, paying: Paying) -> Advice:
    """A drawn change and alternatives, each for an equal part of the price; `answer` charges and draws."""
    number = 1 + checked_alternatives(paying.alternatives)
    each = price_of_each(personal.side, paying.epsilon, number)
    if number == 1:
        return Advice.from_json(answer(AdviceQuestion(asker, personal, each, paying.read_others)))
    name = asker.request_id or token_hex(16)

    def draw(request_id: str, before: Sequence[Advice]) -> Advice:
        avoiding = [one.intervention for one in before if one.intervention.size]
        question = AdviceQuestion(replace(asker, request_id=request_id), personal, each, paying.read_others, avoiding)
        return Advice.from_json(answer(question))

    return together(in_turn(number, name, draw), name)


def together(parts: Sequence[Advice], request_id: str) -> Advice:
    """Paid changes that were drawn one after the other, as one certificate; only the first may change nothing."""
    alternatives = [one for part in parts[1:] for one in part.changes if one.intervention.size]
    return replace(
        parts[0],
        changes=(*parts[0].changes, *alternatives),
        epsilon=sum((one.epsilon for one in parts), Fraction(0)),
        request_id=request_id,
        labels={node: name for one in parts for node, name in one.labels.items()},
    )


@final
class AdviceQuestion(Question):
    """Which change flips the decision about her, if something that is secret to her is read at a price?

    With `read_others` that is the whole graph, together with a secret model or table. Otherwise it is these alone, on
    graphs imagined around her own edges.
    """

    def __init__(
        self,
        asker: Asker,
        personal: Personal,
        epsilon: Price,
        read_others: bool = True,
        avoiding: Sequence[Intervention] = (),
    ) -> None:
        """Checks everything public; reads nothing yet. The answer shares no element with those to be avoided."""
        self.side, self._personal, self._read_others = personal.side, personal, read_others
        self._avoiding = tuple(avoiding)
        self.nodes, self.reads_known = () if read_others else (personal.node,), not read_others
        price = self.side.price(epsilon)
        self.request = replace(
            make_request(self.side, asker, personal.node, price, DEAREST),
            mechanism="rehearsed subset-selection for the person concerned",
            question="advice" if read_others else "advice by own edges",
            apart=True,
        )

    @cached_property
    def _prepared(self) -> Prepared:
        """Planned on graphs that hold her own edges."""
        belief, candidates = self._personal.outcomes.belief, self._personal.candidates
        allowed = permitted(candidates, Earlier(self._avoiding))
        return self.side.method.rehearsal.prepared(belief, candidates, self.request.epsilon, allowed)

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
        empty = self._certificate(Change(self._personal.candidates[0], 0.0))
        skeleton = len(replace(empty, believed={}, labels={}).to_json())
        return replace(self.request, room=skeleton + _longest_part(self.side))

    @property
    def fallback(self) -> Scores:
        """The utility's own, or those of own-edge reading."""
        if self._read_others:
            return self.side.method.utility.failed(self._personal.candidates)
        return failed_scores(self._personal.candidates)

    def score(self, reader: Reader) -> Scores:
        """By the method's utility on the whole graph, or by the graphs around her own edges."""
        if self._read_others:
            return self.side.method.utility.score(reader.whole(self._personal.candidates))
        return reader.own(self._personal.candidates, self._personal.far).scores()

    def answer(self, position: int) -> str:
        """A certificate of advice."""
        change = Change(self._personal.candidates[position], self._prepared.confidences[position])
        return self._certificate(change).to_json()

    def _certificate(self, change: Change) -> Advice:
        return self._personal.advice([change], self.request, self._read_others)


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
