"""Sketches of larger and larger graphs: making one, what follows from it, and answers that know it."""

import tempfile
import time
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from privcfs.embedded import Dataset
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.sketching import publish_sketch
from privcfs.gate.vault import Vault
from privcfs.owner.kept_sketch import recall_or_believe
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.sketches.sketch import PARTNERS, SketchPlan
from privcfs_lab.bench.large import in_a_process
from privcfs_lab.bench.part import Extent, Part, Row
from privcfs_lab.bench.rings import PERIOD, STEPS, ring_model, stride, write_ring_features, write_ring_store
from privcfs_lab.bench.timing import Spent, spent, status_megabytes

EPSILON = Fraction(6)
GUESSES = 20
MEGABYTE = 1 << 20


@final
class Made(NamedTuple):
    """A sketch of one graph: seconds and peak megabytes of making it, its size on disk, and its coverage."""

    seconds: float
    megabytes: float
    size: float
    covered: float


@final
class Known(NamedTuple):
    """Seconds until what follows from a sketch is kept; later guesses; peak megabytes of each."""

    seconds: float
    believing: float
    guess: Spent
    megabytes: float


def sketches_part(_: Dataset, extent: Extent) -> Part:
    """Half of the pairs are public; each step runs in a process of its own."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in extent.sizes():
            place = Path(folder) / str(nodes)
            _write(place, nodes)
            made = in_a_process(_make, place, nodes)
            known = in_a_process(_know, place, nodes)
            rows += _rows(nodes, made, known)
    return Part(rows)


def _rows(nodes: int, made: Made, known: Known) -> list[Row]:
    what = f"{nodes:,} nodes: sketch of {PARTNERS} likeliest partners at epsilon {EPSILON}"
    making = f"{made.seconds:.0f} s, {made.megabytes:,.0f} MB resident"
    following = f"{known.seconds:.0f} s, {known.believing:,.0f} MB resident"
    return [
        (f"{what}, two cores", making, "under 3,600 s and 2,000 MB"),
        ("... its file, and the share of hidden pairs covered", f"{made.size:,.1f} MB, {made.covered:.0%}", "-"),
        ("... what follows from it, once", following, "under 2,000 MB"),
        ("... guess about another node, warm", str(known.guess), "at most 60 ms"),
        ("... most memory of guesses", f"{known.megabytes:,.0f} MB resident", "-"),
    ]


def _write(place: Path, nodes: int) -> None:
    """All pairs, every other one of which is public, and features."""
    place.mkdir()
    write_ring_store(place / "edges.store", nodes)
    write_ring_store(place / "snapshot.store", nodes, STEPS[::2])
    write_ring_features(place / "features.store", nodes)


def _context(place: Path) -> PublicContext:
    return PublicContext(place / "features.store", place / "snapshot.store", ring_model(), assumptions=SIMULATED)


def _make(place: Path, nodes: int) -> Made:
    context = _context(place)
    graph = PrivateGraph.from_store(place / "edges.store", number_of_nodes=nodes)
    ledger = SqliteLedger(place / "budget.db", Limit.of("10"))
    path, started = place / "sketch.bin", time.perf_counter()
    made = publish_sketch(graph, context, ledger, SketchPlan.of(EPSILON, PARTNERS), Worlds(), path)
    seconds = time.perf_counter() - started
    assert made.listed is not None
    return Made(
        seconds,
        status_megabytes("VmHWM"),
        path.stat().st_size / MEGABYTE,
        np.nan if made.listed.covered is None else made.listed.covered,
    )


def _know(place: Path, nodes: int) -> Known:
    started = time.perf_counter()
    context = recall_or_believe(_context(place), place / "sketch.bin")
    seconds, believing = time.perf_counter() - started, status_megabytes("VmHWM")
    graph = PrivateGraph.from_store(place / "edges.store", number_of_nodes=nodes)
    vault = Vault(graph, context, ledger=SqliteLedger(place / "budget.db", Limit.of("10")), simulation=True)
    places = np.random.default_rng(1).choice(PERIOD, GUESSES + 1, replace=False)
    first, *targets = (places * stride(nodes) % nodes).tolist()
    vault.guess(first)
    for target in targets:
        vault.propose(target)  # pages of its surroundings are mapped before it is asked about
    guesses = Spent.median([spent(partial(vault.guess, one)) for one in targets])
    return Known(seconds, believing, guesses, status_megabytes("VmHWM"))
