"""Measures what strangers and refused analysts can do to the service, on loopback, default settings, two workers.

python -m tools.stranger              about 4 minutes; writes docs/stranger.md
python -m tools.stranger --seconds 3 --write -   a short look, printed

Every loop ends by itself: after its seconds, or after a stated number of requests.
"""

import argparse
import csv
import http.client
import io
import json
import multiprocessing
import os
import selectors
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from tests.service.served import Served
from tests.shell import Shell

from privcfs.embedded import load_dataset
from privcfs.service.pace import MOST_WAITING, REFUSED_PER_SECOND
from privcfs_lab.datasets.vault_folder import write_vault
from tools.load import memory
from tools.page import put

WORKERS = 2
SLOW = 64  # clients that send a byte a second
CHUNK = b"a" * (1 << 20)
WHOLE_HEAD = 1 << 30  # bytes of one head, if it were read
BATCHES = 40  # in flight
BATCH = 100  # questions
FLOOD = 25  # connections of each `hey`
WIDE_FLOOD = 120  # more than may wait for a refusal
SMALL_CAP = "0.5"  # less than one question costs
HEALTH_SECONDS, RELEASE_FACTOR, MEMORY_MB, PROCESSOR_SECONDS = 0.25, 2.0, 50.0, 0.02
QUESTION = {"epsilon": "1"}
spawn = multiprocessing.get_context("spawn")


def targets() -> Iterator[str]:
    """The test nodes, each once: an analyst's ordinary question is about a node that nobody has asked about."""
    return iter([str(node) for node in load_dataset("cora").test])


@dataclass(frozen=True, slots=True)
class Place:
    """Where to send requests, the keys of two analysts (that of the second is capped), and nodes to ask about."""

    port: int
    analyst: str
    capped: str
    targets: Iterator[str] = field(default_factory=targets)


@dataclass(slots=True)
class Seen:
    """What a prober and an analyst saw during one attack."""

    health: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    releases: list[float] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)
    grown: float = 0.0  # MB at the peak

    @property
    def p99(self) -> float:
        """Seconds of /health."""
        return float(np.quantile(self.health, 0.99))

    @property
    def median(self) -> float:
        """Seconds of a release."""
        return float(np.median(self.releases)) if self.releases else float("inf")


def ask(place: Place, method: str, path: str, key: str | None = None, body: Any = None) -> int:
    """The status of one request on a connection of its own; 0 where there is no answer."""
    headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
    with closing(http.client.HTTPConnection("127.0.0.1", place.port, timeout=120)) as connection:
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return 0
        return answer.status


@contextmanager
def served() -> Iterator[tuple[Served, Place]]:
    """The real service over Cora; the service itself chooses the answering time."""
    with tempfile.TemporaryDirectory() as folder:
        write_vault(Path(folder), "sqlite:///budget.db", "1000000000", answer_seconds=None)
        service = Served(Shell(Path(folder)), "--workers", str(WORKERS))
        try:
            place = Place(service.port, service.key("analyst"), service.key("capped", "--cap", SMALL_CAP))
            yield service, place
        finally:
            _end(service)


def _end(service: Served) -> None:
    """Stops the server, and by force where its workers are still busy with what an attack left."""
    workers = _workers(service)
    try:
        service.stop()
    except subprocess.TimeoutExpired:
        for pid in (*workers, service.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        service.process.wait(timeout=30)


def _workers(service: Served) -> list[int]:
    parent = service.process.pid
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def watch(service: Served, place: Place, seconds: float) -> Seen:
    """Asks for /health 20 times a second, and for a release about one new node after another, for some seconds."""
    seen, over = Seen(), Event()
    before = sum(memory(service)) / 1024

    def probe() -> None:
        while not over.is_set():
            started = time.monotonic()
            seen.statuses[ask(place, "GET", "/health")] += 1
            seen.health.append(time.monotonic() - started)
            over.wait(max(0.05 - seen.health[-1], 0))

    def release() -> None:
        while not over.is_set():
            started, target = time.monotonic(), next(place.targets)
            status = ask(place, "POST", "/v1/releases", place.analyst, {"target": target, **QUESTION})
            if status == 200:
                seen.releases.append(time.monotonic() - started)
            else:
                seen.refused[status] += 1

    threads = [Thread(target=probe), Thread(target=release)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.2)
        seen.grown = max(seen.grown, sum(memory(service)) / 1024 - before)
    over.set()
    for thread in threads:
        thread.join()
    return seen


def slow_clients(place: Place, seconds: float) -> None:
    """Heads and bodies that come a byte a second; half of the clients have a valid key. They come back when closed."""
    end = time.monotonic() + seconds
    wires: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as closed:
        while time.monotonic() < end:
            for number in range(SLOW):
                if number not in wires:
                    wires[number] = _slow_client(place, number)
                    closed.register(wires[number], selectors.EVENT_READ, number)
                with suppress(OSError):
                    wires[number].send(b"a")
            for found, _ in closed.select(0.0):
                closed.unregister(found.fileobj)
                wires.pop(found.data).close()
            time.sleep(1)
    for wire in wires.values():
        wire.close()


def _slow_client(place: Place, number: int) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", place.port), timeout=10)
    key = f"Authorization: Bearer {place.analyst}\r\n" if number % 2 else ""
    rest = "X: " if number % 4 < 2 else "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    wire.sendall(f"POST /v1/releases HTTP/1.1\r\nHost: x\r\n{key}{rest}".encode())
    return wire


def endless_head(place: Place, seconds: float) -> None:
    """One connection that sends a head of a gigabyte as fast as it goes; the next one when it is closed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", place.port), timeout=10) as wire:
            wire.sendall(b"GET / HTTP/1.1\r\nX: ")
            for _ in range(WHOLE_HEAD // len(CHUNK)):
                wire.sendall(CHUNK)
                if time.monotonic() > end:
                    break


def batch() -> dict[str, Any]:
    """Questions about different nodes, which together do not fit below a small cap."""
    return {"questions": [{"target": str(node), **QUESTION} for node in load_dataset("cora").test[:BATCH]]}


def refused_batches(place: Place, seconds: float) -> None:
    """Many at once, again and again, by a key whose cap none of them fits."""
    end, body = time.monotonic() + seconds, batch()

    def again() -> None:
        while time.monotonic() < end:
            ask(place, "POST", "/v1/releases/batch", place.capped, body)

    threads = [Thread(target=again, daemon=True) for _ in range(BATCHES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end + 1 - time.monotonic(), 0))


def flood(place: Place, seconds: float, connections: int = FLOOD) -> Counter[int]:
    """Requests without a key, as many as five `hey` can send, each on so many connections: the statuses they saw."""
    body = ["-T", "application/json", "-d", json.dumps({"target": "1", **QUESTION})]
    kinds = [
        ["-m", "GET", "/v1/me"],
        [*body, "-m", "POST", "/v1/releases"],
        [*body, "-m", "PUT", "/v1/releases"],
        ["-H", f"Authorization: Bearer privcfs_{'0' * 12}_{'a' * 43}", "-m", "GET", "/v1/budget"],
        ["-m", "GET", "/nowhere"],
    ]
    running = [
        subprocess.Popen(
            [
                "hey",
                "-o",
                "csv",
                "-z",
                f"{seconds}s",
                "-c",
                str(connections),
                *options,
                f"http://127.0.0.1:{place.port}{path}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for *options, path in kinds
    ]
    found = [one.communicate()[0] for one in running]
    return Counter(int(row["status-code"]) for text in found for row in csv.DictReader(io.StringIO(text)))


def attacked(service: Served, place: Place, seconds: float, attack: Callable[[Place, float], object] | None) -> Seen:
    """What others see while an attack goes on in a process of its own."""
    if attack is None:
        return watch(service, place, seconds)
    attacker = spawn.Process(target=attack, args=(place, seconds + 2))
    attacker.start()
    time.sleep(2)  # its start, and the first requests
    try:
        return watch(service, place, seconds)
    finally:
        attacker.join(30)
        if attacker.is_alive():
            attacker.kill()
            attacker.join()


def keyless_rows(service: Served) -> int:
    """Lines of the log of requests that belong to no key."""
    time.sleep(1.5)
    with closing(sqlite3.connect(service.shell.folder / "service.db")) as raw:
        query = "SELECT COUNT(*) FROM service_log WHERE key NOT IN (SELECT name FROM service_keys)"
        return int(raw.execute(query).fetchone()[0])


def processor_seconds(service: Served) -> float:
    """That the worker processes have used so far, by the system's count."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in _workers(service)]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def cost(service: Served, place: Place, number: int, asked: tuple[str, str, str | None, Any]) -> tuple[int, float]:
    """How many requests were sent, one after another and at most for 30 seconds, and processor time for each."""
    ask(place, *asked)
    before, end, sent = processor_seconds(service), time.monotonic() + 30, 0
    while sent < number and time.monotonic() < end:
        status = ask(place, *asked)
        if status not in (401, 429):
            raise SystemExit(f"a request that should be refused got {status}")
        sent += 1
    return sent, (processor_seconds(service) - before) / sent


ATTACKS: dict[str, Callable[[Place, float], object]] = {
    f"{SLOW} slow clients, heads and bodies, half of them with a key": slow_clients,
    "one connection that sends a head of 1 GB, again and again": endless_head,
    f"a flood without keys, {5 * FLOOD} connections": flood,
    f"{BATCHES} refused batches of {BATCH} questions in flight": refused_batches,
    f"not asked for: the flood on {5 * WIDE_FLOOD} connections, from the address of the other clients": partial(
        flood, connections=WIDE_FLOOD
    ),
}


def verdict(good: bool) -> str:
    """In a word."""
    return "met" if good else "**missed**"


def row(name: str, seen: Seen, quiet: Seen | None) -> str:
    """Of the page's first table."""
    healthy = set(seen.statuses) == {200} and seen.p99 <= HEALTH_SECONDS
    bars = [verdict(healthy)]
    if quiet is not None:
        bars += [verdict(seen.median <= RELEASE_FACTOR * quiet.median), verdict(seen.grown < MEMORY_MB)]
    others = ", ".join(f"{number} with {status}" for status, number in seen.statuses.items() if status != 200)
    return (
        f"| {name} | {1000 * seen.p99:.0f} ms ({len(seen.health)} asked{others and '; ' + others}) | "
        f"{1000 * seen.median:.0f} ms ({len(seen.releases)}) | {seen.grown:.0f} MB | {', '.join(bars)} |"
    )


def refusals(service: Served, place: Place, number: int) -> list[str]:
    """Of the page's second table."""
    one = {"target": "1", **QUESTION}
    kinds: dict[str, tuple[str, str, str | None, Any]] = {
        "no key": ("POST", "/v1/releases", None, one),
        "an unknown key": ("POST", "/v1/releases", f"privcfs_{'0' * 12}_{'a' * 43}", one),
        "one question beyond the cap": ("POST", "/v1/releases", place.capped, one),
        f"a batch of {BATCH} beyond the cap": ("POST", "/v1/releases/batch", place.capped, batch()),
    }
    found = []
    for name, asked in kinds.items():
        sent, seconds = cost(service, place, number, asked)
        found.append(f"| {name} | {sent} | {1000 * seconds:.1f} ms | {verdict(seconds <= PROCESSOR_SECONDS)} |")
    return found


ABOUT = """# The service under a stranger's hand

For whoever runs the service and wants to know what others can do to it. Written by `make stranger`: a server on Cora
with default settings (a public answering time of 0.25 s) and {workers} worker processes, on loopback. First nothing
happens; then each attack lasts {seconds:.0f} seconds. Meanwhile a separate client asks for /health 20 times a second,
each time on a new connection, and an analyst asks for one release after another, each about a node that nobody has
asked about before, so that its answer is prepared first; nothing is prepared beforehand. Attackers, clients and server
share {cores} cores. Whoever is refused more than {per_second} times a second, by key or by address, gets each further
refusal a second later, as long as no more than {waiting} requests of a process wait for theirs.

Asked: /health answers 200 within {health:.0f} ms at the 99th percentile; the analyst's release takes at most
{factor:.0f} times its quiet time at the median; all processes together grow by less than {memory:.0f} MB at their peak.
The last column says of each in this order whether it was met.

| attack | /health, 99th percentile | a release, median | memory grown | asked |
|---|---|---|---|---|
"""
REFUSALS = """
Lines of the log of requests that belong to no key, after all attacks: {rows} (asked: 0, {verdict}).

Processor time of the workers for one refused request, sent alone, one after another (asked: at most {limit:.0f} ms):

| refused for | sent | processor time | asked |
|---|---|---|---|
"""


def main() -> None:
    """One server, all attacks, one page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--requests", type=int, default=200, help="for the processor time of each kind of refusal")
    parser.add_argument("--write", default="docs/stranger.md", help="the page, or - to print it")
    given = parser.parse_args()
    with served() as (service, place):
        costs = refusals(service, place, given.requests)
        settle(place)
        quiet = attacked(service, place, given.seconds, None)
        rows = [row("none", quiet, None)]
        for name, attack in ATTACKS.items():
            rows.append(row(name, attacked(service, place, given.seconds, attack), quiet))
            print(rows[-1], flush=True)
            settle(place)
        kept = keyless_rows(service)
    text = ABOUT.format(
        workers=WORKERS,
        seconds=given.seconds,
        cores=os.cpu_count(),
        health=1000 * HEALTH_SECONDS,
        factor=RELEASE_FACTOR,
        memory=MEMORY_MB,
        per_second=REFUSED_PER_SECOND,
        waiting=MOST_WAITING,
    )
    text += "\n".join(rows) + "\n"
    text += REFUSALS.format(rows=kept, verdict=verdict(kept == 0), limit=1000 * PROCESSOR_SECONDS)
    put(text + "\n".join(costs) + "\n", given.write)


def settle(place: Place) -> None:
    """Until /health answers quickly again, at most two minutes: what an attack left is not the next one's."""
    end = time.monotonic() + 120
    quick = 0
    while quick < 20 and time.monotonic() < end:
        started = time.monotonic()
        ask(place, "GET", "/health")
        quick = quick + 1 if time.monotonic() - started < HEALTH_SECONDS / 5 else 0
        time.sleep(0.05)


if __name__ == "__main__":
    main()
