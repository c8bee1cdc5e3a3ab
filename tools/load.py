"""Measures the service under load with `hey` (Debian), on loopback, two worker processes, durable ledgers.

python -m tools.load                  about 15 minutes; writes docs/load.md
python -m tools.load --seconds 3 --requests 0 --write -   a short look, printed
"""

import argparse
import csv
import io
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import numpy as np
from tests.service.served import Served
from tests.shell import Shell

from privcfs.embedded import load_dataset
from privcfs.gate.ledger import open_ledger
from privcfs_lab.datasets.vault_folder import write_vault
from tools.page import put
from tools.postgres import Postgres

WORKERS = 2
TARGETS = 4  # one `hey` each
NEW = 400  # nodes that are asked about once
FULL, HALF, FLOOD = 8, 4, 160  # connections of each `hey`
ASKED = {"SQLite": 150, "PostgreSQL": 100}
P99 = 0.25


@dataclass(frozen=True, slots=True)
class Load:
    """What the load tool saw."""

    seconds: float
    statuses: Counter[int]
    latencies: list[float]

    @property
    def rate(self) -> float:
        """Releases a second."""
        return self.statuses[200] / self.seconds

    def percentile(self, share: float) -> float:
        """Of the seconds to an answer."""
        return float(np.quantile(self.latencies, share))


@contextmanager
def served(ledger: str, workers: int = WORKERS) -> Iterator[Served]:
    """The real service over Cora, with a budget that nothing here exhausts."""
    with tempfile.TemporaryDirectory() as folder:
        write_vault(Path(folder), ledger, "1000000000")
        service = Served(Shell(Path(folder)), "--workers", str(workers))
        try:
            yield service
        finally:
            service.stop()


def targets() -> list[int]:
    """The first test nodes."""
    return [int(node) for node in load_dataset("cora").test[:TARGETS]]


def press(
    service: Served, key: str, connections: int, *, seconds: float = 0, requests: int = 0, rate: float = 0
) -> Load:
    """Releases at epsilon 1 from several `hey` at once: for some seconds, or so many; at most at a rate."""
    found: list[str] = []

    def one(target: int) -> None:
        body = json.dumps({"target": str(target), "epsilon": "1"})
        amount = ["-z", f"{seconds}s"] if seconds else ["-n", str(requests // TARGETS)]
        pace = ["-q", str(rate / TARGETS / connections)] if rate else []
        command = ["hey", "-o", "csv", "-m", "POST", "-T", "application/json", "-d", body, "-c", str(connections)]
        command += [*amount, *pace, "-t", "60", "-H", f"Authorization: Bearer {key}", f"{service.url}/v1/releases"]
        found.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    started = time.monotonic()
    threads = [Thread(target=one, args=(target,)) for target in targets()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.monotonic() - started
    rows = [row for text in found for row in csv.DictReader(io.StringIO(text)) if row["status-code"]]
    statuses = Counter(int(row["status-code"]) for row in rows)
    return Load(passed, statuses, [float(row["response-time"]) for row in rows])


def ask_once_each(service: Served, key: str) -> Load:
    """Releases at epsilon 1 about test nodes that nobody has asked about, each once; `hey` repeats one body."""
    latencies: list[float] = []
    statuses: Counter[int] = Counter()

    def one(target: int) -> None:
        started = time.monotonic()
        found = service.ask("POST", "/v1/releases", key, {"target": str(target), "epsilon": "1"})
        latencies.append(time.monotonic() - started)
        statuses[found.status_code] += 1

    started = time.monotonic()
    with ThreadPoolExecutor(FULL * TARGETS) as pool:
        list(pool.map(one, [int(node) for node in load_dataset("cora").test[TARGETS : TARGETS + NEW]]))
    return Load(time.monotonic() - started, statuses, latencies)


def memory(service: Served) -> list[int]:
    """Resident kB of the server's processes."""
    parent = service.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [_resident(pid) for pid in (str(parent), *children)]


def _resident(pid: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def kept(service: Served, url: str) -> Counter[str]:
    """How many rows of each kind the ledger holds."""
    address = f"sqlite:///{service.shell.folder / 'budget.db'}" if url.startswith("sqlite") else url
    return Counter(row["kind"] for row in open_ledger(address).rows())


def trial(name: str, url: str, seconds: float, requests: int) -> list[str]:
    """Rows of the page for one ledger."""
    with served(url) as service:
        key = service.key("load")
        new = ask_once_each(service, key)
        press(service, key, HALF, requests=40 * TARGETS)  # each process prepares each target once
        full = press(service, key, FULL, seconds=seconds)
        half = press(service, key, HALF, seconds=seconds, rate=full.rate / 2)
        flood = press(service, key, FLOOD, seconds=seconds)
        after = kept(service, url)
        grown, answered = [sum(memory(service)) / 1024], 0
        while answered < requests:
            answered += press(service, key, FULL, requests=requests // 10).statuses[200]
            grown.append(sum(memory(service)) / 1024)
        time.sleep(1)
        last = kept(service, url)
    answers = sum(load.statuses[200] for load in (new, full, half, flood)) + 40 * TARGETS
    verdict = "met" if full.rate >= ASKED[name] else "missed"
    quick = "met" if half.percentile(0.99) < P99 else "missed"
    rows = [
        f"| {name} | {NEW} nodes, each asked about once, {FULL * TARGETS} connections | {new.rate:.1f} releases/s; "
        f"median {1000 * new.percentile(0.5):.0f} ms, p99 {1000 * new.percentile(0.99):.0f} ms; "
        f"{_show(new.statuses)} |",
        f"| {name} | full load, {FULL * TARGETS} connections | {full.rate:.0f} releases/s (asked {ASKED[name]}: "
        f"{verdict}); median {1000 * full.percentile(0.5):.0f} ms, p99 {1000 * full.percentile(0.99):.0f} ms; "
        f"{_show(full.statuses)} |",
        f"| {name} | half of that rate | {half.rate:.0f} releases/s; median {1000 * half.percentile(0.5):.0f} ms, "
        f"p99 {1000 * half.percentile(0.99):.0f} ms (asked under {1000 * P99:.0f} ms: {quick}); "
        f"{_show(half.statuses)} |",
        f"| {name} | overload, {FLOOD * TARGETS} connections | {flood.rate:.0f} releases/s; {_show(flood.statuses)}; "
        f"{answers} answers, {after['HELD']} paid, {after['RELEASED']} kept |",
    ]
    if requests:
        rows.append(
            f"| {name} | memory of all processes over {answered:,} releases | "
            + " → ".join(f"{one:.0f}" for one in grown)
            + f" MB; {last['HELD']} paid, {last['RELEASED']} kept |"
        )
    return rows


def _show(statuses: Counter[int]) -> str:
    return ", ".join(f"{number:,} with {status}" for status, number in sorted(statuses.items()))


ABOUT = """# The service under load

Written by `make load`: releases at epsilon 1 about papers of Cora (lists of some 330 candidates), asked on loopback
over HTTP with a key. The first row of each ledger is about nodes that nobody has asked about: whatever guides an answer
is prepared first, from public data, and that takes most of the time. The other rows, by `hey`, are about four nodes
that each process has prepared, so that they measure everything else. Two worker processes share two cores with the load
tool and, where there is one, the PostgreSQL server. Every release is charged durably, evaluated, drawn and kept
durably; requests that arrive together share a commit. There is no public answering time (`answer_seconds = "off"`):
with one, a process gives one answer in each such time, whatever the load.
{seconds:.0f} seconds each. `paid` and `kept` count the ledger's
rows after everything before. Machines differ, above all in how fast they sync.

| ledger | load | found |
|---|---|---|
"""


def main() -> None:
    """Both ledgers, one page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=50_000, help="for the course of memory; 0 leaves it out")
    parser.add_argument("--ledger", choices=["sqlite", "postgresql", "both"], default="both")
    parser.add_argument("--write", default="docs/load.md", help="the page, or - to print it")
    given = parser.parse_args()
    text = ABOUT.format(seconds=given.seconds)
    rows: list[str] = []
    if given.ledger != "postgresql":
        rows += trial("SQLite", "sqlite:///budget.db", given.seconds, given.requests)
    if given.ledger != "sqlite":
        with Postgres() as server:
            rows += trial("PostgreSQL", server.url, given.seconds, given.requests)
    text += "\n".join(rows) + "\n"
    put(text, given.write)


if __name__ == "__main__":
    main()
