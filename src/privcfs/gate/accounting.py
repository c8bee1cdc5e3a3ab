"""Exact sums against exact limits: costs add up in the unit of one contract, and a limit is never passed.

Zone: gate
Claim: the sum of all costs never exceeds the limit; under a pure contract, k releases at prices e1..ek are
    (e1 + ... + ek)-DP together. Where accounts of nodes are in force, the sum of all costs that are not paid at nodes
    alone never exceeds the total limit, nor does the sum at one node in one period exceed the limit per node; two
    graphs that differ in one pair are then told apart by at most two accounts and the total.
Why: what a contract counts composes by addition (contracts.py), prices chosen adaptively included; `check` refuses
    before anything is charged, and its refusal depends on public costs alone. A question that reads the own edges of
    some nodes has the same law on two graphs that agree at these nodes, so it counts only for pairs that end at one.
Check: tests/gate/test_accounting.py::test_ten_charges_of_a_tenth_are_exactly_one
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, final, get_args

from privcfs.errors import BadEpsilon, BudgetExhausted, SettingsError
from privcfs.gate.contracts import Contract, Pure
from privcfs.public.epsilon import MOST, NANO, Price, parse_decimal, show
from privcfs.public.tabular import Row, Tabular

Period = Literal["", "year", "month"]  # how long an account of a node lasts before it begins anew; "" for ever
NONE = Fraction(0)


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be spent in all, by each analyst and at each node, in the unit of a contract.

    Attributes:
        total: The most that all analysts together may spend. Where there is a limit per node, questions that are paid
            at nodes alone do not count against it: it is then the limit of questions that read the whole graph, and of
            the owner's entries.
        per_analyst: The most that each analyst may spend, wherever it is paid; None, the default, for no such limit.
        contract: What is counted, and in which unit. The default counts epsilon, under pure differential privacy.
        per_node: The most that may be spent at one node, in one period; None, the default: nodes have no accounts, and
            every question counts against the total.
        period: How long an account of a node lasts: a "year" or a "month" of the calendar (UTC), after which it begins
            anew; "", the default: for ever. What counts against the total is never renewed.

    Raises:
        SettingsError: A limit is not a decimal above 0 with at most nine places; the one per analyst is above the
            total, and nodes have no accounts; there is a period without a limit per node; or there is a limit per node
            with another contract than `pure`.
    """

    total: Fraction
    per_analyst: Fraction | None = None
    contract: Contract = Pure()
    per_node: Fraction | None = None
    period: Period = ""

    @classmethod
    def of(
        cls,
        total: Price,
        per_analyst: Price | None = None,
        contract: Contract | None = None,
        *,
        per_node: Price | None = None,
        period: Period = "",
    ) -> "Limit":
        """Makes a limit from decimals such as "10".

        Args:
            total: The most that all analysts together may spend, as text, int or Fraction.
            per_analyst: The most that each analyst may spend; None, the default, for no such limit.
            contract: What is counted, and in which unit; by default epsilon, under pure differential privacy.
            per_node: The most that may be spent at one node, in one period; None, the default, for no accounts of
                nodes.
            period: "year" or "month", after which each node's account begins anew; by default "", for never.

        Returns:
            The limit, in exact fractions.

        Raises:
            SettingsError: A limit is not a decimal above 0 with at most nine places, or limits do not fit each other.
        """
        try:
            whole = parse_decimal(total, "limit")
            each = None if per_analyst is None else parse_decimal(per_analyst, "limit per analyst")
            node = None if per_node is None else parse_decimal(per_node, "limit per node")
        except BadEpsilon as error:
            raise SettingsError(str(error)) from None
        return cls(whole, each, contract or Pure(), node, period)

    def __post_init__(self) -> None:
        for value in (self.total, self.per_analyst, self.per_node):
            if value is not None and not (
                isinstance(value, Fraction) and 0 < value <= MOST and not NANO % value.denominator
            ):
                raise SettingsError("limits must be decimals above 0 with at most nine places; use Limit.of('10').")
        if self.per_node is None and self.per_analyst is not None and self.per_analyst > self.total:
            raise SettingsError("limit per analyst must be at most the total limit.")
        self._check_accounts()

    def _check_accounts(self) -> None:
        """Refuses accounts of nodes that no proof covers, and a period without accounts."""
        if self.per_node is not None and not isinstance(self.contract, Pure):
            raise SettingsError(
                "a limit per node needs the contract pure: that accounts of nodes add up is proven for pure "
                f"differential privacy, and not for {self.contract.to_dict()['kind']}."
            )
        if self.period not in get_args(Period):
            raise SettingsError(f"period is {self.period!r}; choose year or month, or leave it out for no renewal.")
        if self.period and self.per_node is None:
            raise SettingsError("a period is for accounts of nodes; give a limit per node too.")

    def period_of(self, month: str) -> str:
        """The name of the period that a month lies in.

        Args:
            month: A month such as "2026-11".

        Returns:
            That month, its year, or "" where accounts last for ever.
        """
        return {"": "", "year": month[:4], "month": month}[self.period]

    def capped(self, cap: Fraction | None) -> "Limit":
        """The same limit, with `cap` as a further bound on what one analyst may spend.

        Args:
            cap: The bound, or None for none.

        Returns:
            A limit whose `per_analyst` is the least of the bounds that hold for one analyst.
        """
        if cap is None:
            return self
        bounds = [cap, self.per_analyst, None if self.per_node is not None else self.total]
        return replace(self, per_analyst=min(bound for bound in bounds if bound is not None))

    def check_delta(self, delta: Fraction, spent: Fraction) -> None:
        """Refuses a delta that would exceed what the contract allows in all.

        Args:
            delta: The delta of a new disclosure.
            spent: The deltas of all former disclosures together.

        Raises:
            BudgetExhausted: The sum exceeds what the contract allows.
        """
        if spent + delta > self.contract.allowance:
            raise BudgetExhausted(
                f"delta {float(delta):g} does not fit: the contract allows {float(self.contract.allowance):g} in all, "
                f"{float(spent):g} is used. Nothing was charged."
            )

    def check(
        self,
        price: Fraction,
        spent: Fraction | None,
        spent_by_analyst: Fraction,
        at_nodes: Mapping[int, Fraction] | None = None,
        period: str = "",
    ) -> None:
        """Refuses a cost that would exceed the total limit, after that the limit of a node, after that the analyst's.

        Args:
            price: What a new question costs, in the contract's unit.
            spent: What counts against the total so far; None where the question does not count against it.
            spent_by_analyst: What this analyst has spent.
            at_nodes: For each node whose account pays, what is spent at it in this period; by default none.
            period: The name of the period, such as "2026", for the message; by default "".

        Raises:
            BudgetExhausted: A limit would be exceeded; the message says which, and what is left.
        """
        if spent is not None:
            self._refuse(price, spent, self.total, "the total limit")
        when = f" in {period}" if period else ""
        for node, used in (at_nodes or {}).items():
            self._refuse(price, used, self.per_node, f"node {node}'s limit", when)
        self._refuse(price, spent_by_analyst, self.per_analyst, "the analyst's limit")

    def _refuse(self, price: Fraction, used: Fraction, limit: Fraction | None, which: str, when: str = "") -> None:
        if limit is not None and used + price > limit:
            raise BudgetExhausted(
                f"{self.contract.unit} {show(price)} does not fit: {show(used)} of {which} {show(limit)}{when} "
                f"is spent, {show(limit - used)} is left. Nothing was charged; ask for less."
            )


@final
@dataclass(frozen=True, slots=True)
class Balance(Tabular):
    """Where an account stands. `held` is the part of `spent` whose release is not finished: it counts as spent.

    The account of all analysts together holds what counts against the total limit: not what was paid at nodes alone.
    """

    limit: Fraction | None
    spent: Fraction
    held: Fraction
    answers: int
    unit: str = "epsilon"

    @property
    def left(self) -> Fraction | None:
        """What may still be spent; None if the account has no limit of its own."""
        return None if self.limit is None else max(self.limit - self.spent, Fraction(0))

    def rows(self) -> list[Row]:
        """One row: what is spent, held and left."""
        return [dict(self.to_dict())]

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON shows it, on the command line and over HTTP."""
        return {
            "unit": self.unit,
            "limit": None if self.limit is None else show(self.limit),
            "spent": show(self.spent),
            "held": show(self.held),
            "left": None if self.left is None else show(self.left),
            "answers": self.answers,
        }


@final
@dataclass(frozen=True, slots=True)
class Losses:
    """What everything that a ledger has paid for may have told, under pure differential privacy, in exact fractions.

    Two private graphs that differ in some pairs give every sequence of answers probabilities within a factor of
    exp(loss). Which loss holds depends on the pairs: docs/promise.md proves the three sums.

    Attributes:
        whole: The prices of all questions that count in full: they read the whole graph, or something secret that every
            question touches.
        edge_level: The prices of entries that hold for graphs that differ in one edge, and not for any two graphs.
        dearest_node: The largest sum that was paid at one node, over all periods.
        dearest_node_in_period: The largest sum that was paid at one node in this period.
        everything: The sum of all prices other than `edge_level`, each question counted once.
        limit: The limits in force.
        period: The present period, such as "2026"; "" where accounts are never renewed.
    """

    whole: Fraction
    edge_level: Fraction
    dearest_node: Fraction
    dearest_node_in_period: Fraction
    everything: Fraction
    limit: Limit
    period: str = ""

    def one_edge(self) -> Fraction:
        """The loss for two graphs that differ in one edge: the accounts of both ends, and what counts in full."""
        return self.person(1)

    def one_edge_in_period(self) -> Fraction:
        """The same, with what was paid at nodes in this period alone; what counts in full is never renewed."""
        return min(2 * self.dearest_node_in_period + self.whole, self.everything) + self.edge_level

    def person(self, edges: int) -> Fraction:
        """The loss for two graphs that differ in so many edges of one person: her account and one for each edge."""
        return min((edges + 1) * self.dearest_node + self.whole, self.everything) + edges * self.edge_level

    def any_two_graphs(self) -> Fraction | None:
        """The loss for any two graphs: every price; None, no finite number, where an entry holds for one edge alone."""
        return None if self.edge_level else self.everything

    def most_for_one_edge(self) -> Fraction:
        """What `one_edge` may become under the limits; with a period, `one_edge_in_period`."""
        return self.most_for_person(1)

    def most_for_person(self, edges: int) -> Fraction:
        """What `person` may become under the limits, in one period where accounts are renewed.

        Whatever is left of the total may yet be spent on entries that hold for one edge.
        """
        per_node = self.limit.per_node or NONE
        later = max(self.limit.total - self.whole, NONE)
        return (edges + 1) * per_node + self.whole + edges * later

    def most_for_any_two_graphs(self) -> Fraction | None:
        """What `any_two_graphs` may become under the limits; None, no finite number, where nodes have accounts."""
        return None if self.edge_level or self.limit.per_node is not None else self.limit.total

    def to_dict(self) -> dict[str, Any]:
        """As JSON; None where no finite number holds, and for limits that do not exist."""
        any_two, most_any_two, per_node = self.any_two_graphs(), self.most_for_any_two_graphs(), self.limit.per_node
        return {
            "one_edge": show(self.one_edge()),
            "one_edge_in_period": show(self.one_edge_in_period()),
            "any_two_graphs": None if any_two is None else show(any_two),
            "whole": show(self.whole),
            "edge_level": show(self.edge_level),
            "dearest_node": show(self.dearest_node),
            "dearest_node_in_period": show(self.dearest_node_in_period),
            "everything": show(self.everything),
            "most_for_one_edge": show(self.most_for_one_edge()),
            "most_for_any_two_graphs": None if most_any_two is None else show(most_any_two),
            "limit_per_node": None if per_node is None else show(per_node),
            "limit_of_whole": show(self.limit.total),
            "period": self.period,
        }

    def in_words(self) -> str:
        """Complete sentences for command line, service, console and certificates."""
        for_edges = f" plus {show(self.edge_level)} for each edge" if self.edge_level else ""
        person = (
            f"at most {show(self.everything)}{for_edges}"
            if self.dearest_node == 0
            else f"(m + 1) times {show(self.dearest_node)} plus {show(self.whole)}{for_edges}, and at most "
            f"{show(self.everything)}{for_edges}"
        )
        any_two = self.any_two_graphs()
        sentences = [
            f"All answers so far, taken together, have told at most epsilon {show(self.one_edge())} about one edge.",
            f"About a person with m edges they have told {person}.",
            "About any two graphs no finite number holds, because an entry is private for one edge alone."
            if any_two is None
            else f"About any two graphs they have told at most {show(any_two)}.",
        ]
        return " ".join([*sentences, *self._limits_in_words()])

    def promise(self) -> str:
        """What may yet be told at most under the limits, as part of a sentence: every number with what it holds for."""
        limit, per_node = self.limit, show(self.limit.per_node or NONE)
        when = f" in one {limit.period}" if limit.period else ""
        any_two = self.any_two_graphs()
        so_far = "no finite number" if any_two is None else f"{show(any_two)} so far, with no limit in advance"
        return (
            f"pure {show(self.most_for_one_edge())}-differential privacy for one edge{when}, which is twice the limit "
            f"per node {per_node} plus the total limit {show(limit.total)}; for a person with m edges{when}, m + 1 "
            "times the limit per node plus the total limit, of which entries that hold for one edge count m times; for "
            f"any two graphs, {so_far}"
        )

    def _limits_in_words(self) -> list[str]:
        """What accounts of nodes add to the sentences."""
        if self.limit.per_node is None:
            return []
        most, each = show(self.most_for_one_edge()), show(self.limit.per_node)
        if not self.limit.period:
            return [f"The limits allow at most {most} about one edge, and {each} at each node."]
        return [
            f"In {self.period} they have told at most {show(self.one_edge_in_period())} about one edge.",
            f"The limits allow at most {most} about one edge in one {self.limit.period}, and {each} at each node; what "
            "reads the whole graph is never renewed, and the numbers above are sums over all periods.",
        ]
