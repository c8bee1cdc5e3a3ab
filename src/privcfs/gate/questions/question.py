"""What every question to a vault has in common.

Zone: gate
Claim: everything about a question except its scores is a function of public data and earlier answers: its price, the
    mechanism, the scores that replace those of a failed evaluation, the answer for each position, its greatest length.
Why: a question holds the public side of a vault and no private graph. Only `score` gets at private data, through a
    reader that the vault hands to it after payment, and it returns sealed scores. The reader of a question that is paid
    at nodes reads their own edges and nothing else.
Check: tests/contracts/test_questions.py::test_scores_of_every_graph_and_of_a_failure_have_one_shape
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from privcfs.errors import BadEpsilon, InputError
from privcfs.gate.contracts import Contract
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import Method, former_digest, public_digest
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price, parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.release import adjacency_of
from privcfs.public.schema.of_node import encoded_changes

OWNER = "owner"


@final
@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: an analyst, the id of the request (a random one where none is given), and the analyst's own limit."""

    analyst: str = OWNER
    request_id: str | None = None
    cap: Fraction | None = None


@final
@dataclass(frozen=True)
class PublicSide:
    """What is public about a vault and the same for all its questions."""

    context: PublicContext
    method: Method
    contract: Contract
    least_price: Fraction
    accounts: Callable[[], str] = str  # what all answers together may tell, where nodes have accounts; public
    people_know_all: bool = True  # whether people know all of their own edges, where there is advice

    @property
    def adjacency(self) -> str:
        """Between which inputs the guarantee holds."""
        return adjacency_of(self.context.assumptions)

    @cached_property
    def digest(self) -> str:
        """Names the public context and the method; stands on each answer."""
        return public_digest(self.context, self.method)

    @cached_property
    def former_digest(self) -> str:
        """The digest that version 0.1 would have written."""
        return former_digest(self.context, self.method)

    def price(self, epsilon: Price) -> Fraction:
        """The price of a question; refuses one below the least price."""
        return checked_price(epsilon, self.least_price)


class Question(ABC):
    """One question. Subclasses are final, and prepare themselves when `priced` is first read."""

    side: PublicSide
    reads_known: bool = False  # whether own edges are those that people know, because the person concerned asks
    nodes: tuple[int, ...] = ()  # whose own edges are read, where the question reads nothing else; its accounts
    request: Request  # with an upper bound on the cost: known before anything is prepared

    @property
    @abstractmethod
    def priced(self) -> Request:
        """The request with its exact cost and the length at which its answer is stored; prepares the question."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """Draws a position from the scores."""

    @property
    @abstractmethod
    def fallback(self) -> Scores:
        """Public scores that take the place of those of a failed evaluation."""

    @abstractmethod
    def score(self, reader: Reader) -> Scores:
        """Sealed scores, one for each position; the only method that reads private data."""

    @abstractmethod
    def answer(self, position: int) -> str:
        """The text that is stored and returned if this position is drawn."""


def make_request(side: PublicSide, asker: Asker, target: int, price: Fraction, mechanism: Mechanism) -> Request:
    """The request of a question, after checks of public input; `mechanism` is the costliest one that may draw."""
    return Request(
        analyst=checked_name(asker.analyst, "analyst"),
        request_id=secrets.token_hex(16) if asker.request_id is None else checked_name(asker.request_id, "request_id"),
        target=target,
        epsilon=price,
        context_digest=side.digest,
        former_digest=side.former_digest,
        mechanism=mechanism.name,
        adjacency=side.adjacency,
        cost=side.contract.cost(mechanism, price),
        cap=asker.cap,
    )


def checked_intervention(intervention: Intervention, context: PublicContext) -> Intervention:
    """The same intervention; refuses one whose nodes, features or values do not exist."""
    encoded_changes(context, 0, intervention.change)
    nodes = [node for pair in intervention.delete + intervention.add for node in pair]
    bounds = ((nodes, context.number_of_nodes), (intervention.mask, context.features.shape[1]))
    if any(not 0 <= one < bound for named, bound in bounds for one in named):
        raise InputError("intervention names a node or a feature that does not exist; give one of this graph.")
    return intervention


def checked_price(epsilon: Price, least: Fraction) -> Fraction:
    """A price that is not below the least price."""
    price = parse_epsilon(epsilon)
    if price < least:
        raise BadEpsilon(f"epsilon is {show(price)}; the least price of an answer here is {show(least)}.")
    return price


def checked_name(text: str, argument: str) -> str:
    """An analyst's name or a request id."""
    if not isinstance(text, str) or not 0 < len(text) <= 200 or not text.isprintable():
        raise InputError(f"{argument} must be printable text of 1 to 200 characters.")
    return text
