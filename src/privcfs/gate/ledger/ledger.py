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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, final

from privcfs.gate.accounting import Balance, Limit
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

    @property
    def price(self) -> Fraction:
        """What counts against the limit."""
        return self.epsilon if self.cost is None else self.cost

    @property
    def terms(self) -> dict[str, str | int]:
        """What was asked: an id that is used again must have the same terms."""
        asked: dict[str, str | int] = {"question": self.question} if self.question else {}
        if self.delta:
            asked["delta"] = show(self.delta)
        return asked | {
            "target": self.target,
            "epsilon": show(self.epsilon),
            "context_digest": self.context_digest,
            "mechanism": self.mechanism,
            "adjacency": self.adjacency,
        }

    def within(self, limit: Limit) -> Limit:
        """The limits that hold for this request; the owner's own entries count against the total alone."""
        return replace(limit, per_analyst=None) if self.analyst == ENTRIES else limit.capped(self.cap)


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
    def alone(self, requests: Sequence[Request]) -> "Claim":
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
        """The whole account, or one analyst's part of it."""

    def sums(self, analyst: str) -> tuple[Fraction, Fraction]:
        """What is spent in all and by one analyst. This is quicker than `balance` where an account is long."""
        return self.balance().spent, self.balance(analyst).spent

    def account_of(self, analyst: str, cap: Fraction | None = None) -> Balance:
        """One analyst's account. Its limit is the least of those that hold for this analyst alone, `cap` included."""
        balance, total = self.balance(analyst), self.limit.total
        own = [limit for limit in (balance.limit, cap) if limit is not None]
        return replace(balance, limit=min(*own, total) if own else None)

    def left_for(self, analyst: str, cap: Fraction | None = None) -> tuple[Fraction, Literal["you", "everyone"]]:
        """What this analyst may still spend, and whose limit that is: their own, or that of all analysts together."""
        (whole, own), limit = self.sums(analyst), self.limit
        everyone = max(limit.total - whole, Fraction(0))
        yours = [max(most - own, Fraction(0)) for most in (limit.per_analyst, cap) if most is not None]
        return (min(yours), "you") if yours and min(yours) < everyone else (everyone, "everyone")

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
        limit, narrower = self.limit, self.narrower()
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
