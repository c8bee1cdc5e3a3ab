"""Kills processes and database connections at random while they ask for releases, and examines what is left.

python -m tools.chaos                 both ledgers, with and without accounts of nodes, 8 processes, 20,000 requests
                                      each; writes docs/chaos.md
python -m tools.chaos --requests 500 --write -   a short look, printed
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privcfs import GCN, PrivateGraph, PublicContext, Vault
from privcfs.errors import BudgetExhausted, LedgerError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.method import OWN_EDGES, Method
from privcfs.public.candidates.product import Product
from privcfs.public.epsilon import NANO
from privcfs.public.interventions import Intervention
from privcfs.public.release import Release
from privcfs.public.verdict import Selection, Verdict
from tools.page import put
from tools.postgres import Postgres

PROCESSES = 8
THREADS = 3  # in each process, so that commits are shared
NODES = 12
ANALYSTS = 5
PRICE = Fraction(1, 4)
FITS = 0.9  # of all requests, so that the limit is reached while processes die
TWICE = 0.2  # of all requests are asked by two processes
REFUSED = "refused"
Answers = dict[str, set[str]]  # request id: digests of what was answered
PLAIN = Method(Product(most_pairs=1, most_features=1))
OWN = replace(OWN_EDGES, candidates=Product(most_pairs=1, most_features=1))


class Asked(NamedTuple):
    """What a request asks for: a release, a choice between two nodes, or whether nothing flips a decision."""

    kind: str
    nodes: tuple[int, ...]  # whose own edges are read; none where the whole graph is


def asked(number: int, accounts: bool) -> Asked:
    """Without accounts of nodes every request is a release that reads the whole graph."""
    node = number % NODES
    if not accounts:
        return Asked("release", ())
    kind = ("confirm", "select")[number % 10] if number % 10 < 2 else "release"
    return Asked(kind, {"release": (node,), "select": (node, (node + 5) % NODES), "confirm": ()}[kind])


def limit_for(requests: int, accounts: bool) -> Limit:
    """A limit that leaves room for nine in ten, of the total and of each account."""
    every = [asked(number, accounts).nodes for number in range(requests)]
    whole = sum(not nodes for nodes in every)
    if not accounts:
        return Limit(int(FITS * whole) * PRICE)
    dearest = Counter(node for nodes in every for node in nodes).most_common(1)[0][1]
    return Limit(max(int(FITS * whole), 1) * PRICE, per_node=int(FITS * dearest) * PRICE)


@dataclass(slots=True)
class Outcome:
    """What happened, and what is wrong with it."""

    requests: int
    limit: Fraction  # of what counts in full
    per_node: Fraction | None = None
    killed: Counter[str] = field(default_factory=Counter)
    answers: Answers = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    balances: dict[int, Fraction] = field(default_factory=dict)  # of nodes, as the ledger says
    seconds: float = 0.0

    @property
    def spent(self) -> Fraction:
        """What counts in full, summed again from the rows."""
        return Fraction(sum(row["cost"] for row in self.rows if not _nodes(row)), NANO)

    @property
    def accounts(self) -> dict[int, Fraction]:
        """What is spent at each node, summed again from the rows."""
        found = dict.fromkeys(range(NODES), Fraction(0))
        for row in self.rows:
            for node in _nodes(row):
                found[node] += Fraction(row["cost"], NANO)
        return found

    def account_faults(self) -> list[str]:
        """What must never happen to accounts of nodes, judged by what was asked and by the rows alone."""
        if self.per_node is None:
            return []
        accounts = self.accounts
        over = [f"node {node} is over its limit" for node, spent in accounts.items() if spent > self.per_node]
        held = {_name(row): row for row in self.rows if row["kind"] == "HELD"}
        elsewhere = [
            f"{name} is charged at other nodes than it reads"
            for name, row in held.items()
            if _nodes(row) != sorted(asked(_number(name), True).nodes)
        ]
        return over + elsewhere + (["balances are not the sums of the rows"] if self.balances != accounts else [])

    def fits(self, name: str, spent: Fraction, accounts: Mapping[int, Fraction]) -> bool:
        """Whether a request would still fit in the end, after all that is spent, and so would have fitted before."""
        nodes = asked(_number(name), self.per_node is not None).nodes
        if self.per_node is None or not nodes:
            return spent + PRICE <= self.limit
        return all(accounts[node] + PRICE <= self.per_node for node in nodes)

    def faults(self) -> list[str]:
        """Everything that must never happen and did."""
        held = {_name(row): row for row in self.rows if row["kind"] == "HELD"}
        released = {_name(row): row for row in self.rows if row["kind"] == "RELEASED"}
        spent, accounts = self.spent, self.accounts
        found = [] if spent <= self.limit else [f"{spent} spent, over the limit {self.limit}"]
        found += self.account_faults()
        charges = Counter(_name(row) for row in self.rows if row["kind"] == "HELD")
        found += [f"{name} is charged twice" for name, times in charges.items() if times > 1]
        found += [f"{name} has an answer and no charge" for name in released if name not in held]
        positions = {name: row["position"] for name, row in held.items()}
        found += [
            f"{name} was answered before it was charged"
            for name, row in released.items()
            if positions.get(name, 0) > row["position"]
        ]
        for name, said in self.answers.items():
            kept = _digest(released[name]["body"].rstrip()) if name in released else REFUSED
            if len(said) > 1:
                found.append(f"{name} has several answers")
            elif said != {kept}:
                found.append(f"{name} was answered otherwise than the ledger holds")
            if said == {REFUSED} and self.fits(name, spent, accounts):
                found.append(f"{name} was refused although it fits")
        found += [f"{name} is paid and was never answered" for name in held if name not in self.answers]
        if len(self.answers) < self.requests:
            found.append(f"{self.requests - len(self.answers)} requests have no answer")
        return found


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['analyst']}/{row['request_id']}"


def _number(name: str) -> int:
    return int(name.rsplit(" ", 1)[1])


def _nodes(row: Mapping[str, Any]) -> list[int]:
    """The nodes that a charge says it is paid at."""
    found: list[int] = json.loads(row["body"]).get("nodes", []) if row["kind"] == "HELD" else []
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def world() -> tuple[PrivateGraph, PublicContext]:
    """A small graph."""
    rng = np.random.default_rng(0)
    pairs = [(u, w) for u in range(NODES) for w in range(u) if rng.random() < 0.4]
    features = (rng.random((NODES, 6)) < 0.6).astype(np.float32)
    model = GCN(rng.normal(size=(6, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    return PrivateGraph.from_edges(pairs, number_of_nodes=NODES), PublicContext(features, pairs[::2], model)


def work(url: str, names: Sequence[int], file: Path, ledger_type: Any = open_ledger, accounts: bool = False) -> None:
    """One process: asks until everything is answered, and writes down each answer as soon as it has it."""
    method = OWN if accounts else PLAIN
    while True:
        try:
            vault = Vault(*world(), ledger=ledger_type(url), method=method)  # which checks the whole chain
            break
        except LedgerError:
            time.sleep(0.05)
    with file.open("a", buffering=1) as answers, ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(names), 10 * THREADS):
            for line in pool.map(partial(_ask, vault), names[start : start + 10 * THREADS]):
                answers.write(f"{line}\n")


def _ask(vault: Vault, number: int) -> str:
    analyst, request_id = f"analyst {number % ANALYSTS}", f"request {number}"
    kind, nodes = asked(number, vault.method.reads_own)
    asker: dict[str, Any] = {"analyst": analyst, "request_id": request_id}
    asks: dict[str, Callable[[], Release | Selection | Verdict]] = {
        "release": lambda: vault.release(number % NODES, PRICE, **asker),
        "select": lambda: vault.select(nodes, PRICE, **asker),
        "confirm": lambda: vault.confirm(number % NODES, Intervention(), PRICE, **asker),
    }
    while True:
        try:
            found = asks[kind]()
        except BudgetExhausted:
            return f"{analyst}/{request_id}\t{REFUSED}"
        except LedgerError:
            time.sleep(0.02)
        else:
            return f"{analyst}/{request_id}\t{_digest(found.to_json())}"


def run(
    url: str,
    requests: int,
    *,
    seed: int = 0,
    every: float | None = 0.25,
    server: Postgres | None = None,
    ledger_type: Any = open_ledger,
    accounts: bool = False,
) -> Outcome:
    """Processes that ask, and a hand that kills one of them, or a connection, every so often (in seconds), or never."""
    rng = random.Random(seed)
    limit = limit_for(requests, accounts)
    outcome = Outcome(requests, limit.total, limit.per_node)
    last = open_ledger(url, limit)
    plans: list[list[int]] = [[] for _ in range(PROCESSES)]
    for number in range(requests):
        for one in rng.sample(range(PROCESSES), 2 if rng.random() < TWICE else 1):
            plans[one].append(number)
    start = multiprocessing.get_context("fork").Process
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(PROCESSES)]
        for file in files:
            file.touch()

        def begin(number: int) -> Any:
            left = plans[number][len(_whole_lines(files[number])) :]
            process = start(target=work, args=(url, left, files[number], ledger_type, accounts))
            process.start()
            return process

        alive = {number: begin(number) for number in range(PROCESSES)}
        while alive:
            time.sleep(rng.expovariate(1 / every) if every else 0.1)
            victim = rng.choice(sorted(alive))
            if every is None:
                pass
            elif server is not None and rng.random() < 0.5:
                outcome.killed[server.disturb(rng)] += 1
            elif alive[victim].is_alive():
                os.kill(alive[victim].pid, signal.SIGKILL)
                outcome.killed["worker"] += 1
            for number, process in list(alive.items()):
                if process.is_alive():
                    continue
                process.join()
                if process.exitcode == 0:
                    del alive[number]
                elif process.exitcode == -signal.SIGKILL:
                    alive[number] = begin(number)
                else:
                    raise SystemExit(f"a worker ended with {process.exitcode}")
        for line in (line for file in files for line in _whole_lines(file)):
            name, said = line.split("\t")
            outcome.answers.setdefault(name, set()).add(said)
    outcome.seconds = time.monotonic() - started
    open_ledger(url).verify()
    outcome.rows = list(last.rows())
    outcome.balances = dict(open_ledger(url).spent_at(range(NODES)))
    return outcome


def _whole_lines(file: Path) -> list[str]:
    """A line cut short by a kill was not answered; it is cut off."""
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole)
    return whole.splitlines()


ABOUT = """# Chaos

Written by `make chaos`: {processes} processes of {threads} threads ask for releases (epsilon 1/4 each, five analysts,
one request in five asked by two processes at once) until {requests:,} requests are answered, while a hand kills one of
them, or a connection of the database, or the whole database, at random moments; whoever is killed is started again,
opens the ledger, which checks its whole chain, and asks again under the same request ids. The limit leaves room for
nine in ten. Then everything is examined: never over the limit; no answer without a charge before it; no id with two
answers; every answer that a process wrote down is the one that the ledger holds; every refusal was due; nothing paid
is unanswered. With accounts of nodes, eight in ten requests are releases that read the own edges of one of {nodes}
nodes, one in ten chooses between two nodes and is paid at both, and one in ten reads the whole graph; every account
leaves room for nine in ten, and is summed again from the rows: none over its limit, each question charged where it
reads, once, and the ledger's own sums the same.

| ledger | requests | answered | refused | killed | seconds | faults |
|---|---|---|---|---|---|---|
"""


def row(name: str, outcome: Outcome) -> str:
    """A line of the page."""
    refused = sum(said == {REFUSED} for said in outcome.answers.values())
    killed = ", ".join(f"{what} {number} times" for what, number in sorted(outcome.killed.items()))
    faults = outcome.faults()
    return (
        f"| {name} | {outcome.requests:,} | {len(outcome.answers) - refused:,} | {refused:,} | {killed} | "
        f"{outcome.seconds:.0f} | {'none' if not faults else '; '.join(faults[:5])} |"
    )


def main(given: Iterable[str] | None = None) -> None:
    """Both ledgers, one page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two kills, on average")
    parser.add_argument("--write", default="docs/chaos.md", help="the page, or - to print it")
    options = parser.parse_args(None if given is None else list(given))
    text = ABOUT.format(processes=PROCESSES, threads=THREADS, requests=options.requests, nodes=NODES)
    for accounts, words in ((False, ""), (True, ", accounts of nodes")):
        settings: dict[str, Any] = {"every": options.every, "accounts": accounts}
        with tempfile.TemporaryDirectory() as folder:
            found = run(f"sqlite:///{Path(folder) / 'budget.db'}", options.requests, **settings)
            text += row(f"SQLite{words}", found) + "\n"
        with Postgres() as server:
            found = run(server.url, options.requests, server=server, **settings)
            text += row(f"PostgreSQL{words}", found) + "\n"
    put(text, options.write)


if __name__ == "__main__":
    main()
