"""The durable account of one private graph.

Zone: gate
Claim: nothing private is read before its price is durable; a charge is never refunded; one request id pays once and
    has one answer; no row before a head that is kept elsewhere can change unnoticed.
Why: `charge` returns only after the row is on disk; rows are appended and never updated; each row's digest covers the
    one before it. An answer is padded to a length that the request names, so that neither the size of a ledger nor
    whether an answer fits on a disk depends on what was drawn.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol, final, runtime_checkable

from privcfs.errors import SettingsError
from privcfs.gate.accounting import NONE, Balance, Limit, Losses
from privcfs.gate.contracts import Pure
from privcfs.gate.ledger.heads import HeadFile
from privcfs.public.epsilon import show
from privcfs.public.head import Head

WIDEST = "any two private graphs"  # how the adjacency of a release begins
ENTRIES = ""  # in an analyst's place, which cannot be empty: the owner's own disclosures, against the total alone


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What an analyst asks for; an id belongs to its analyst. Who the analyst is, the caller has to establish."""

    analyst: str
    request_id: str
    target: int
    epsilon: Fraction
    context_digest: str
    mechanism: str
    adjacency: str
    cost: Fraction | None = None  # in the unit of the ledger's contract; epsilon itself where there is none
    delta: Fraction = Fraction(0)  # of disclosures made elsewhere; a release has none
    question: str = ""  # what else was asked for, where it is not an intervention
    cap: Fraction | None = None  # the most that this analyst may spend, where it is less than anyone's
    former_digest: str = ""  # the context digest that version 0.1 would have written, where it is another
    room: int = 0  # the public length at which the answer is stored, at least that of the longest possible answer
    nodes: tuple[int, ...] = ()  # the nodes whose own edges are read, and no other edge; empty: the whole graph
    in_full: bool = False  # counts against the total even if it is paid at nodes: something secret is read for all
    apart: bool = False  # the answer is for one person: it is stored beside the chain, which tells nothing of it

    @property
    def counted(self) -> Fraction:
        """What counts against the limits: the cost, in the unit of the contract."""
        return self.epsilon if self.cost is None else self.cost

    @property
    def reads(self) -> list[int]:
        """The nodes whose own edges are read, each once, in order; empty where the whole graph is read."""
        return sorted({int(node) for node in self.nodes})

    @property
    def terms(self) -> dict[str, Any]:
        """What was asked: an id that is used again must have the same terms. Later fields are left out if unused."""
        asked: dict[str, Any] = {"question": self.question} if self.question else {}
        if self.delta:
            asked["delta"] = show(self.delta)
        if self.nodes:
            asked["reads"] = self.reads
        asked |= {name: True for name in ("in_full", "apart") if getattr(self, name)}
        return asked | {
            "target": self.target,
            "epsilon": show(self.epsilon),
            "context_digest": self.context_digest,
            "mechanism": self.mechanism,
            "adjacency": self.adjacency,
        }

    def paid_at(self, limit: Limit) -> list[int]:
        """The nodes whose accounts pay for it under these limits; none where it counts against the total alone."""
        return [] if limit.per_node is None or self.analyst == ENTRIES else self.reads

    def counts_in_full(self, limit: Limit) -> bool:
        """Whether it counts against the total limit."""
        return self.in_full or not self.paid_at(limit)

    def within(self, limit: Limit) -> Limit:
        """The limits that hold for this request; the owner's own entries count against the total alone."""
        return replace(limit, per_analyst=None) if self.analyst == ENTRIES else limit.capped(self.cap)


class Standing(NamedTuple):
    """Sums of a whole ledger, in the unit of its contract."""

    total: Fraction  # of all costs, wherever they are paid
    at_nodes: Fraction  # the part that is paid at nodes alone and does not count against the total limit
    edge_level: Fraction  # entries that hold for graphs that differ in one edge
    dearest: Fraction  # the largest sum at one node over all periods
    dearest_in_period: Fraction
    period: str
    limit: Limit


class Charge(NamedTuple):
    """What a ledger's row says of a paid request; the answer stands in another row."""

    position: int
    request_id: str
    cost: Fraction
    day: str
    terms: Mapping[str, Any]  # what was asked, as in `Request.terms`


@runtime_checkable
class Claim(Protocol):
    """The right to answer some requests; whoever has it gives it back when the answers are stored."""

    def give_back(self) -> None:
        """Lets others ask."""


class Ledger(ABC):
    """One writer at a time, any number of processes."""

    @abstractmethod
    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        """What is stored for each request, None where nothing is yet; refuses what `charge_all` would refuse.

        Changes nothing. A request's cost may be an upper bound here.
        """

    @abstractmethod
    def claim(self, requests: Sequence[Request]) -> "Claim":
        """Waits until nobody else, in any process, is answering one of these requests, and keeps others away."""

    @property
    @abstractmethod
    def graph_id(self) -> str:
        """The random id of the one private graph this account belongs to; never computed from the graph."""

    def charge(self, request: Request) -> str | None:
        """Pays durably. Returns the stored release of a finished request, None where it is to be drawn now."""
        return self.charge_all([request])[0]

    @abstractmethod
    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        """Pays for all of them or, where one is refused, for none."""

    def finish(self, request: Request, release: str) -> str:
        """Stores the release of a paid request durably; returns the one that counts if another was faster."""
        return self.finish_all([(request, release)])[0]

    @abstractmethod
    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        """Stores the releases of several paid requests in one step; returns the ones that count.

        Each is stored at its public length. What is returned, here and by `charge_all`, is without the padding.
        """

    @abstractmethod
    def balance(self, analyst: str | None = None) -> Balance:
        """What counts against the total limit or, with an analyst, all that this analyst has spent."""

    @abstractmethod
    def node_balance(self, node: int) -> Balance:
        """The account of one node in the present period; its limit is None where nodes have no accounts."""

    @abstractmethod
    def spent_at(self, nodes: Sequence[int]) -> Mapping[int, Fraction]:
        """What was paid at each of these nodes in the present period."""

    @abstractmethod
    def standing(self) -> Standing:
        """The sums from which `losses` follow; quick, however long the account is."""

    def losses(self) -> Losses:
        """What may have been told about one edge, about one person and about any two graphs.

        Raises:
            SettingsError: The contract is not `pure`, so that sums of costs are not epsilons that add up.
        """
        now = self.standing()
        if not isinstance(now.limit.contract, Pure):
            raise SettingsError("losses for one edge, a person and any two graphs are for the contract pure.")
        everything = now.total - now.edge_level
        return Losses(
            whole=everything - now.at_nodes,
            edge_level=now.edge_level,
            dearest_node=now.dearest,
            dearest_node_in_period=now.dearest_in_period,
            everything=everything,
            limit=now.limit,
            period=now.period,
        )

    def sums(self, analyst: str) -> tuple[Fraction, Fraction]:
        """What counts against the total, and what one analyst has spent. This is quicker than `balance`."""
        return self.balance().spent, self.balance(analyst).spent

    def account_of(self, analyst: str, cap: Fraction | None = None) -> Balance:
        """One analyst's account. Its limit is the least of those that hold for this analyst alone, `cap` included."""
        balance, limit = self.balance(analyst), self.limit
        own = [most for most in (balance.limit, cap) if most is not None]
        if own and limit.per_node is None:
            own.append(limit.total)
        return replace(balance, limit=min(own, default=None))

    def left_for(
        self, analyst: str, cap: Fraction | None = None, nodes: Sequence[int] = (), *, in_full: bool = False
    ) -> tuple[Fraction, Literal["you", "everyone", "node"]]:
        """What this analyst may still spend on a question, and whose limit that is.

        Args:
            analyst: Who asks.
            cap: A further limit of this analyst; by default none.
            nodes: The nodes whose own edges the question reads, and no other edge; by default none: the whole graph.
            in_full: Whether the question counts against the total even if it is paid at nodes; by default it does not.

        Returns:
            The least of what is left, and "you" for a limit of this analyst, "everyone" for the total limit, or "node"
            for the account of a node.
        """
        (whole, own), limit = self.sums(analyst), self.limit
        left: list[tuple[Fraction, Literal["you", "everyone", "node"]]] = []
        if limit.per_node is None or not nodes or in_full:
            left.append((limit.total - whole, "everyone"))
        if limit.per_node is not None and nodes:
            left += [(limit.per_node - spent, "node") for spent in self.spent_at(nodes).values()]
        if analyst != ENTRIES:
            left += [(most - own, "you") for most in (limit.per_analyst, cap) if most is not None]
        least, whose = min(left, key=lambda one: one[0])
        return max(least, NONE), whose

    @property
    @abstractmethod
    def limit(self) -> Limit:
        """The limits in force."""

    @abstractmethod
    def change_limit(self, limit: Limit) -> None:
        """The owner's decision, written into the chain."""

    @abstractmethod
    def paid(self, analyst: str, request_ids: Sequence[str]) -> set[str]:
        """Which of these requests are paid, whether or not they are answered."""

    @abstractmethod
    def charges(self, analyst: str, most: int, before: int | None = None) -> list[Charge]:
        """What one analyst has paid for, the newest first, at most so many and of rows before a position."""

    @abstractmethod
    def price_of(self, analyst: str, request_id: str) -> Fraction | None:
        """What a request has cost; None where it is not paid."""

    @abstractmethod
    def released(self, analyst: str, request_id: str) -> str | None:
        """The stored release of a request, if it has one."""

    @abstractmethod
    def adjacencies(self) -> set[str]:
        """Between what the paid answers are private; where there are several, the sum holds for the narrowest."""

    def narrower(self) -> list[str]:
        """The adjacencies of paid answers that do not hold for any two private graphs."""
        return sorted(one for one in self.adjacencies() if not one.startswith(WIDEST))

    def meaning(self) -> str:
        """What is promised about everything that this ledger has paid for and may yet pay for.

        Command line, service and console all say it in these words. Where more is spent than the limit allows by now,
        what is spent counts.
        """
        limit = self.limit
        if limit.per_node is not None:
            return self.losses().promise()
        narrower = self.narrower()
        words = limit.contract.meaning(max(limit.total, self.balance().spent))
        if not narrower:
            return words
        return (
            f"{words}; part of it holds for {' and '.join(narrower)} only, and so does the sum: not for any two graphs"
        )

    @abstractmethod
    def rows(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every row after a position as it stands, for the owner."""

    @abstractmethod
    def head(self) -> Head:
        """The newest row."""

    @abstractmethod
    def keep_head(self, file: HeadFile | None = None, *, sync: bool = True) -> Head:
        """Writes the newest row to the ledger's own head file, if it has one, or to `file`; returns it.

        A head file that names a row of another chain is never replaced: the ledger is refused instead. With `sync` the
        file is durable when this returns.
        """

    def ready(self) -> None:
        """Refuses where the ledger itself would refuse a charge; brings the head file up to date on the way."""
        self.keep_head()

    @abstractmethod
    def verify(self, known: Head | None = None) -> None:
        """Recomputes chain and sums; refuses a ledger that does not contain the known head."""
