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
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
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
CONNECTIONS = 32  # of the requests about distinct nodes
TARGETS = 4  # one `hey` each
FULL, HALF, FLOOD = 8, 4, 160  # connections of each `hey`
ASKED = {"SQLite": 100, "PostgreSQL": 80}  # releases a second, each about another node
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
def served(
    ledger: str, workers: int = WORKERS, answer_seconds: str | None = "off", limit_per_node: str | None = None
) -> Iterator[Served]:
    """The real service over Cora, with a budget that nothing here exhausts; None: with its own answering time."""
    with tempfile.TemporaryDirectory() as folder:
        place, limit = Path(folder), "1000000000"
        write_vault(place, ledger, limit, answer_seconds=answer_seconds, limit_per_node=limit_per_node)
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


def ask_once_each(service: Served, key: str, nodes: list[int], *, rate: float = 0, seconds: float = 60) -> Load:
    """Releases at epsilon 1 about nodes that nobody has asked about, each once: at most at a rate, and so long.

    `hey` can only repeat one request. Connections stay open here, as they do there, and cost the machine little.
    """
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    started, todo = time.monotonic(), iter(enumerate(nodes))

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        for number, node in todo:
            time.sleep(max(0.0, started + number / rate - time.monotonic()) if rate else 0)
            if (asked := time.monotonic()) > started + seconds:
                break
            connection.request("POST", "/v1/releases", json.dumps({"target": str(node), "epsilon": "1"}), headers)
            answer = connection.getresponse()
            answer.read()
            latencies.append(time.monotonic() - asked)
            statuses[answer.status] += 1
        connection.close()

    threads = [Thread(target=ask) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def trial(name: str, urls: list[str], seconds: float, requests: int) -> list[str]:
    """Rows of the page for one kind of ledger, with one address for each service."""
    url, default_url, accounts_url = urls
    nodes = [node for node in range(load_dataset("cora").features.shape[0]) if node not in targets()]
    half_of_them = len(nodes) // 2
    with served(default_url, answer_seconds=None) as service:
        default = ask_once_each(service, service.key("load"), nodes, seconds=seconds)
    with served(accounts_url, limit_per_node="1000000") as service:
        own = ask_once_each(service, service.key("load"), nodes, seconds=seconds)
    with served(url) as service:
        key = service.key("load")
        new = ask_once_each(service, key, nodes[:half_of_them], seconds=seconds)
        calm = ask_once_each(service, key, nodes[half_of_them:], rate=new.rate / 2, seconds=seconds)
        press(service, key, HALF, requests=40 * TARGETS)  # each process prepares each target once
        full = press(service, key, FULL, seconds=seconds)
        flood = press(service, key, FLOOD, seconds=seconds)
        after = kept(service, url)
        grown, answered = [sum(memory(service)) / 1024], 0
        while answered < requests:
            answered += press(service, key, FULL, requests=requests // 10).statuses[200]
            grown.append(sum(memory(service)) / 1024)
        time.sleep(1)
        last = kept(service, url)
    answers = sum(load.statuses[200] for load in (new, calm, full, flood)) + 40 * TARGETS
    enough = f"asked {ASKED[name]}: {'met' if new.rate >= ASKED[name] else 'missed'}"
    quick = f"asked under {1000 * P99:.0f} ms: {'met' if calm.percentile(0.99) < P99 else 'missed'}"
    rows = [
        _row(name, f"every request about another node, {CONNECTIONS} connections", new, rate=enough),
        _row(name, "... at half of that rate", calm, tail=quick),
        _row(name, "... at full load with the service's own answering time", default),
        _row(name, "... at full load, by own edges and from accounts of nodes", own),
        _row(name, f"four nodes again and again, {FULL * TARGETS} connections", full),
        _row(name, f"... overload, {FLOOD * TARGETS} connections", flood)[:-2]
        + f"; {answers} answers, {after['HELD']} paid, {after['RELEASED']} kept |",
    ]
    if requests:
        rows.append(
            f"| {name} | memory of all processes over {answered:,} releases | "
            + " → ".join(f"{one:.0f}" for one in grown)
            + f" MB; {last['HELD']} paid, {last['RELEASED']} kept |"
        )
    return rows


def _row(ledger: str, what: str, load: Load, rate: str = "", tail: str = "") -> str:
    middle, late = (f"{1000 * load.percentile(share):.0f} ms" for share in (0.5, 0.99))
    return (
        f"| {ledger} | {what} | {load.rate:.1f} releases/s{rate and f' ({rate})'}; median {middle}, "
        f"p99 {late}{tail and f' ({tail})'}; {_show(load.statuses)} |"
    )


def _show(statuses: Counter[int]) -> str:
    return ", ".join(f"{number:,} with {status}" for status, number in sorted(statuses.items()))


ABOUT = """# The service under load

Written by `make load`: releases at epsilon 1 about papers of Cora (lists of some 330 candidates), asked on loopback
over HTTP with a key, by the default method. In the first rows of each ledger every request is about another node, which
nobody has asked about before: whatever guides an answer is prepared first, from public data. One row has answers that
read the target's own edges alone and are paid from its account: their plans take more imagined graphs. The rows about
four nodes, by `hey`, leave that out, because each process has prepared them before. Two worker processes share two
cores with the load tool and, where there is one, the PostgreSQL server. Every release is charged durably, evaluated,
drawn and kept durably; requests that arrive together share a commit. There is no public answering time
(`answer_seconds = "off"`) except in the row that says so: with one, a process gives one answer in each such time,
whatever the load.
At most {seconds:.0f} seconds each. `paid` and `kept` count the ledger's rows after everything before. Machines differ,
above all in how fast they sync.

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
        rows += trial("SQLite", ["sqlite:///budget.db"] * 3, given.seconds, given.requests)
    if given.ledger != "sqlite":
        with Postgres() as first, Postgres() as second, Postgres() as third:
            rows += trial("PostgreSQL", [one.url for one in (first, second, third)], given.seconds, given.requests)
    text += "\n".join(rows) + "\n"
    put(text, given.write)


if __name__ == "__main__":
    main()
