"""Stores larger than memory: importing them, and releases that touch the target's neighbourhood alone."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TypeVar, final

import numpy as np
from threadpoolctl import threadpool_limits

from privcfs.embedded import Dataset
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.context import PublicContext
from privcfs_lab.bench.part import SMALLEST, Extent, Part, Row
from privcfs_lab.bench.rings import PERIOD, STEPS, ring_model, stride, write_ring, write_ring_features
from privcfs_lab.bench.timing import RUN_PRIVCFS, Spent, once, spent, status_megabytes
from privcfs_lab.figures.bench import Sized, draw_sizes
from privcfs_lab.figures.page import Picture

TARGETS = 40
AGAIN = 7
GUIDED_TARGETS = 20
Measured = TypeVar("Measured")


@final
class Guided(NamedTuple):
    """Seconds of a vault's opening and first guided release; later ones and advice, about other nodes; memory."""

    first: float
    later: Spent
    advice: Spent
    megabytes: float


def large_part(_: Dataset, extent: Extent) -> Part:
    """The same surroundings in larger and larger graphs."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        sizes = [_sized(nodes, Path(folder)) for nodes in extent.sizes()]
        for nodes in extent.sizes():
            in_a_process(_guided, Path(folder), nodes)  # leaves in the page cache what the same answers touch again
        guided = {nodes: in_a_process(_guided, Path(folder), nodes) for nodes in extent.sizes()}
    smallest, largest = sizes[0], sizes[-1]
    touched, from_disk = largest.touched / smallest.touched, largest.from_disk / smallest.from_disk
    importing = f"{largest.importing:.0f} s, {largest.importing_megabytes:.0f} MB"
    rows = [
        *(_row(one) for one in sizes),
        (f"time at {largest.nodes:,} nodes over {SMALLEST:,}, warm", f"{largest.over_smallest:.2f}", "at most 1.3"),
        ("... at first touch, file cached", f"{touched:.2f}", "-"),
        ("... at first touch, from disk", f"{from_disk:.2f}", "-"),
        (f"peak resident memory on {largest.edges:,} edges", f"{largest.megabytes:.0f} MB", "under 1,000 MB"),
        (f"import of {largest.edges:,} edges from CSV", importing, "under 1,800 s"),
        *(row for nodes, found in guided.items() for row in _guided_rows(nodes, found)),
    ]
    words = "Time and memory against the number of nodes: both stay."
    return Part(rows, [Picture(words, lambda: draw_sizes(sizes))])


def _guided_rows(nodes: int, found: Guided) -> list[Row]:
    return [
        (f"{nodes:,} nodes: first guided release of a vault, with learning", f"{found.first:.1f} s", "-"),
        (f"{nodes:,} nodes: guided release about another node, warm", str(found.later), "at most 40 ms"),
        (f"{nodes:,} nodes: advice about another node, warm", str(found.advice), "at most 60 ms"),
        (f"{nodes:,} nodes: most memory of all this", f"{found.megabytes:,.0f} MB resident", "under 600 MB"),
    ]


def _row(one: Sized) -> Row:
    return (
        f"{one.nodes:,} nodes, {one.edges:,} edges: propose and evaluate",
        f"{one.warm:.2f} ms warm, {one.touched:.2f} at first touch, {one.from_disk:.1f} from disk",
        "-",
    )


def _sized(nodes: int, folder: Path) -> Sized:
    """Makes, imports and measures one graph; `folder` keeps it, and the smallest one."""
    seconds, megabytes = _made(folder, nodes)
    _made(folder, SMALLEST)
    from_disk, _ = in_a_process(_first_touch, folder, nodes, True)
    touched, resident = in_a_process(_first_touch, folder, nodes, False)
    warm, ratio = _warm(folder, nodes)
    return Sized(nodes, nodes * len(STEPS), warm, ratio, touched, from_disk, resident, seconds, megabytes)


def _made(folder: Path, nodes: int) -> tuple[float, float]:
    """The graph's stores: seconds and peak megabytes of `privcfs import` from CSV; nothing where they are there."""
    place = folder / str(nodes)
    if (place / "edges.store").exists():
        return 0.0, 0.0
    place.mkdir(parents=True)
    write_ring(place / "edges.csv", nodes)
    write_ring_features(place / "features.store", nodes)
    command = [sys.executable, "-c", RUN_PRIVCFS, "import", str(place), "--edges", str(place / "edges.csv"), "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (place / "edges.csv").unlink()
    return time.perf_counter() - started, int(done.stderr) / 1024


def _opened(folder: Path, nodes: int) -> tuple[PrivateGraph, PublicContext]:
    """All edges are public too, for this purpose, so that lists have their full length."""
    place, model = folder / str(nodes), ring_model()
    graph = PrivateGraph.from_store(place / "edges.store", number_of_nodes=nodes)
    return graph, PublicContext(place / "features.store", place / "edges.store", model, assumptions=SIMULATED)


def _targets(nodes: int) -> list[int]:
    """The same places of every ring."""
    places = np.random.default_rng(1).choice(PERIOD, TARGETS, replace=False)
    targets: list[int] = (places * stride(nodes) % nodes).tolist()
    return targets


def _ask(graph: PrivateGraph, context: PublicContext, target: int) -> None:
    evaluate(graph, context, Method().candidates.propose(context, target), UNLIMITED)


def in_a_process(measure: Callable[..., Measured], *given: object) -> Measured:
    """In one of its own, which has touched nothing."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, given)


def _first_touch(folder: Path, nodes: int, uncached: bool) -> tuple[float, float]:
    """Milliseconds at each target's first touch, and the most megabytes after releases."""
    for file in (folder / str(nodes)).glob("*/*.bin") if uncached else ():
        number = os.open(file, os.O_RDONLY)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(number)
    graph, context = _opened(folder, nodes)
    _ask(graph, context, nodes // 2)
    seconds = [once(lambda t=target: _ask(graph, context, t)) for target in _targets(nodes)]  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as ledgers:
        url = f"sqlite:///{Path(ledgers) / 'bench.db'}"
        vault = Vault(graph, context, ledger=url, limit="100000", simulation=True, method=Method())
        vault.release_all([(target, "1", f"bench/{target}") for target in _targets(nodes)])
    return 1e3 * float(np.median(seconds)), status_megabytes("VmHWM")


def _guided(folder: Path, nodes: int) -> Guided:
    """In a process that has touched nothing; pages of targets are mapped before they are asked about."""
    graph, context = _opened(folder, nodes)
    with tempfile.TemporaryDirectory() as ledgers, threadpool_limits(1):
        url, targets = f"sqlite:///{Path(ledgers) / 'bench.db'}", _targets(nodes)
        started = time.perf_counter()
        vault = Vault(graph, context, ledger=url, limit="100", simulation=True, people_know_their_edges=True)
        vault.release(targets[0], "1")
        first, released, advised = time.perf_counter() - started, targets[1:GUIDED_TARGETS], targets[GUIDED_TARGETS:]
        vault.advise(targets[0])
        for target in targets:
            _ask(graph, context, target)
        later = [spent(partial(vault.release, target, "1")) for target in released]
        advice = [spent(partial(vault.advise, target)) for target in advised]
    return Guided(first, Spent.median(later), Spent.median(advice), status_megabytes("VmHWM"))


def _warm(folder: Path, nodes: int) -> tuple[float, float]:
    """Milliseconds once everything was touched, and over those of the smallest graph, asked in turns."""
    both = {size: _opened(folder, size) for size in (SMALLEST, nodes)}
    seconds: dict[int, list[float]] = {size: [] for size in both}
    for pair in zip(*(_targets(size) for size in (SMALLEST, nodes)), strict=True):
        targets = dict(zip((SMALLEST, nodes), pair, strict=True))
        rounds: dict[int, list[float]] = {size: [] for size in both}
        for _ in range(AGAIN + 1):
            for size, (graph, context) in both.items():
                rounds[size].append(once(lambda g=graph, c=context, t=targets[size]: _ask(g, c, t)))  # type: ignore[misc]
        for size in both:
            seconds[size].append(float(np.median(rounds[size][1:])))
    medians = {size: float(np.median(found)) for size, found in seconds.items()}
    return 1e3 * medians[nodes], medians[nodes] / medians[SMALLEST]
