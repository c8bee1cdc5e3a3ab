"""Kills processes and database connections at random while they ask for releases, and examines what is left.

python -m tools.chaos                 both ledgers, 8 processes, 20,000 requests each; writes docs/chaos.md
python -m tools.chaos --requests 500 --write -   a short look, printed
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privcfs import GCN, PrivateGraph, PublicContext, Vault
from privcfs.errors import BudgetExhausted, LedgerError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.method import Method
from privcfs.public.candidates.product import Product
from privcfs.public.epsilon import NANO
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


@dataclass(slots=True)
class Outcome:
    """What happened, and what is wrong with it."""

    requests: int
    limit: Fraction
    killed: Counter[str] = field(default_factory=Counter)
    answers: Answers = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def faults(self) -> list[str]:
        """Everything that must never happen and did."""
        held = {_name(row): row for row in self.rows if row["kind"] == "HELD"}
        released = {_name(row): row for row in self.rows if row["kind"] == "RELEASED"}
        spent = Fraction(sum(row["cost"] for row in self.rows), NANO)
        found = [] if spent <= self.limit else [f"{spent} spent, over the limit {self.limit}"]
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
            if said == {REFUSED} and spent + PRICE <= self.limit:
                found.append(f"{name} was refused although it fits")
        found += [f"{name} is paid and was never answered" for name in held if name not in self.answers]
        if len(self.answers) < self.requests:
            found.append(f"{self.requests - len(self.answers)} requests have no answer")
        return found


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['analyst']}/{row['request_id']}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def world() -> tuple[PrivateGraph, PublicContext]:
    """A small graph."""
    rng = np.random.default_rng(0)
    pairs = [(u, w) for u in range(NODES) for w in range(u) if rng.random() < 0.4]
    features = (rng.random((NODES, 6)) < 0.6).astype(np.float32)
    model = GCN(rng.normal(size=(6, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    return PrivateGraph.from_edges(pairs, number_of_nodes=NODES), PublicContext(features, pairs[::2], model)


def work(url: str, names: Sequence[int], file: Path, ledger_type: Any = open_ledger) -> None:
    """One process: asks until everything is answered, and writes down each answer as soon as it has it."""
    method = Method(Product(most_pairs=1, most_features=1))
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
    while True:
        try:
            found = vault.release(number % NODES, PRICE, analyst=analyst, request_id=request_id)
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
) -> Outcome:
    """Processes that ask, and a hand that kills one of them, or a connection, every so often (in seconds), or never."""
    rng = random.Random(seed)
    outcome = Outcome(requests, int(FITS * requests) * PRICE)
    last = open_ledger(url, Limit(outcome.limit))
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
            process = start(target=work, args=(url, left, files[number], ledger_type))
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
is unanswered.

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
    text = ABOUT.format(processes=PROCESSES, threads=THREADS, requests=options.requests)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'budget.db'}"
        text += row("SQLite", run(url, options.requests, every=options.every)) + "\n"
    with Postgres() as server:
        found = run(server.url, options.requests, every=options.every, server=server)
        text += row("PostgreSQL", found) + "\n"
    put(text, options.write)


if __name__ == "__main__":
    main()
