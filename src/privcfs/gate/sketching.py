"""A sketch of the hidden pairs: paid once, before an edge is read, and drawn once.

Zone: gate
Claim: pure epsilon-DP for graphs that differ in one edge, with epsilon the sum of both parts; the price is charged,
    durably, before an edge is read; for one price there is one draw, whatever happens to disk and process.
Why: every pair of nodes has one coin that owes nothing to the graph, and is shown as it is unless its coin turns it
    round, with probability at least 1 / (1 + e^epsilon) and below one half. One edge is one pair. Counts have the
    difference of two geometric numbers added in every cell, whose ratio is at least e^(-epsilon / 2), and one edge
    moves two cells by one. All of this is in whole numbers out of 2^64. Coins follow from a key that is on disk before
    the charge and until the sketch is public, and the room for the file is taken before the charge.
Check: tests/gate/test_sketching.py::test_the_law_of_a_sketch_moves_by_at_most_its_price
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError, SettingsError, SketchError
from privcfs.gate.coins import BLOCK, Coins, KeyFile
from privcfs.gate.contracts import Pure
from privcfs.gate.ledger.ledger import ENTRIES, Ledger, Request
from privcfs.gate.ledger.reserve import allocate
from privcfs.gate.mechanisms.decay import exponential_above
from privcfs.gate.randomness import Randomness
from privcfs.gate.snapshots import ONE_EDGE, WORD
from privcfs.gate.storing import Storing
from privcfs.private.graph import PrivateGraph
from privcfs.private.sketching import answers, class_counts, hidden_pairs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.sketch import (
    CHECKSUM,
    COUNT,
    LONGEST_HEADER,
    MOST_COUNT,
    MOST_NODES,
    Sketch,
    SketchPlan,
    header_of,
    lengths_of,
    read_sketch,
)
from privcfs.public.sketches.triangle import number_of_pairs, packed
from privcfs.tables.store import sync_folder

Numbers = NDArray[np.int64]
DIGEST = 64  # hexadecimal digits


@final
class Parts(NamedTuple):
    """What is drawn: the places of the pairs that are shown, and noisy counts; None for a part that is not there."""

    shown: Numbers | None
    counts: Numbers | None


def publish_sketch(
    graph: PrivateGraph, context: PublicContext, ledger: Ledger, plan: SketchPlan, worlds: Worlds, path: Path
) -> Sketch:
    """Charges a sketch, draws it, and writes it; the same call again finishes what was begun, and pays nothing.

    Args:
        graph: The private graph.
        context: Its public context, without a sketch.
        ledger: The graph's ledger.
        plan: What the sketch consists of.
        worlds: What the owner believes of hidden pairs; written into the file, because beliefs follow from it.
        path: Where the sketch goes.

    Returns:
        The sketch as everyone may read it.

    Raises:
        InputError: The graph has too many nodes, or fewer than two.
        SettingsError: Graph, context or contract do not fit.
        SketchError: There is another file at the path, or a sketch that was paid for is lost.
        BudgetExhausted: The price does not fit the limit; nothing was charged.
        LedgerError: The ledger cannot be read or written.
    """
    _refuse_misfits(graph, context, ledger)
    graph.bind(ledger.graph_id)
    request = _request(context, plan)
    keys = KeyFile(path.with_name(f"{path.name}.{hashlib.sha256(request.request_id.encode()).hexdigest()[:16]}.key"))
    known = ledger.look_up([request])[0]
    if known is None:
        _refuse_loss(request, ledger, path, keys)
        with _room(path, plan, context) as room, Storing(ledger).claiming([request]) as kept:
            key = keys.key()
            kept.found(ledger.charge_all([request]))
            if kept.lacks(request):
                if not path.exists():  # the same coins on edges that have changed since would show the change
                    parts = draw_sketch(graph, context, plan, lambda use: Coins(key, f"{request.request_id}: {use}"))
                    _publish(_content(context, plan, worlds, parts), room, path)
                kept.add(request, _made(path, context, plan).name)
            known = kept.stored()[0]
    found = read_sketch(path)
    if found.name != known:
        raise SketchError(f"{path.name} is not the sketch that was paid; name the file that was written then.")
    keys.remove()
    return found


def _made(path: Path, context: PublicContext, plan: SketchPlan) -> Sketch:
    """The sketch at a path, which must be that of this context and plan."""
    found = read_sketch(path)
    if (found.context_digest, found.plan) != (context.digest, plan):
        raise SketchError(f"{path.name} is not the sketch that is paid; move it away, and ask again.")
    return found


def is_paid(context: PublicContext, ledger: Ledger, plan: SketchPlan) -> bool:
    """Whether this sketch of this context costs nothing more, because it is paid."""
    request = _request(context, plan)
    return bool(ledger.paid(request.analyst, [request.request_id]))


def refuse_unpaid_sketch(context: PublicContext, ledger: Ledger) -> None:
    """A vault takes no sketch that its ledger has not paid: the loss about an edge would not count it."""
    if context.base is None:
        return
    request = _request(context.base, context.sketch.plan)
    if ledger.released(request.analyst, request.request_id) != context.sketch.name:
        raise SettingsError(
            "the sketch of this context is not one that this ledger has paid for; leave it out, or name the file that "
            "privcfs sketch wrote for this vault."
        )


def draw_sketch(
    graph: PrivateGraph, context: PublicContext, plan: SketchPlan, coins: Callable[[str], Randomness]
) -> Parts:
    """Both parts. Coins are drawn first and owe nothing to the graph."""
    nodes, classes = context.number_of_nodes, context.number_of_classes
    turned = turned_pairs(number_of_pairs(nodes), plan.responses, coins) if plan.responses else None
    noise = laplace(nodes * classes, plan.counts / 2, coins("counts")) if plan.counts else None
    hidden = hidden_pairs(graph, context.disclosed)
    counts = None
    if noise is not None:
        said = snapshot_logits(context, np.arange(nodes)).argmax(axis=1)
        counts = class_counts(hidden, said, (nodes, classes)) + noise.reshape(nodes, classes)
    return Parts(None if turned is None else answers(hidden, turned, nodes), counts)


def turning(epsilon: Fraction) -> int:
    """Out of 2^64, how often a pair is turned round: at least 2^64 / (1 + e^epsilon), and below one half."""
    low = exponential_above(epsilon)
    return ceil(WORD * low / (1 + low))


def turned_pairs(pairs: int, epsilon: Fraction, coins: Callable[[str], Randomness]) -> Numbers:
    """The places of the pairs whose coins turn them round, ascending; each pair has a coin of its own."""
    rate, randomness = np.uint64(turning(epsilon)), coins("responses")
    starts = range(0, pairs, BLOCK)
    found = [start + np.flatnonzero(randomness.words(min(BLOCK, pairs - start)) < rate) for start in starts]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def laplace(cells: int, epsilon: Fraction, randomness: Randomness) -> Numbers:
    """Discrete Laplace noise for each cell: the difference of two geometric numbers of ratio at least e^-epsilon."""
    return geometric(cells, epsilon, randomness) - geometric(cells, epsilon, randomness)


def geometric(cells: int, epsilon: Fraction, randomness: Randomness) -> Numbers:
    """For each cell how many coins in a row come up, each with the least probability in 2^-64 that is >= e^-epsilon."""
    ratio = np.uint64(min(ceil(WORD * exponential_above(epsilon)), WORD - 1))
    found, going = np.zeros(cells, np.int64), np.arange(cells)
    while len(going):
        going = going[randomness.words(len(going)) < ratio]
        found[going] += 1
    return found


def _request(context: PublicContext, plan: SketchPlan) -> Request:
    """The same for the same context and plan, so that nobody pays for one sketch twice."""
    name = f"{plan.name} of {context.digest}"
    return Request(ENTRIES, name, 0, plan.epsilon, context.digest, plan.name, ONE_EDGE, question="sketch", room=DIGEST)


def _content(context: PublicContext, plan: SketchPlan, worlds: Worlds, parts: Parts) -> bytes:
    """The file, whose length follows from public numbers."""
    content = header_of(plan, context, worlds)
    if parts.shown is not None:
        content += packed(parts.shown, context.number_of_nodes)
    if parts.counts is not None:
        content += parts.counts.clip(-MOST_COUNT, MOST_COUNT).astype(COUNT).tobytes()
    return content + hashlib.sha256(content).digest()


@contextmanager
def _room(path: Path, plan: SketchPlan, context: PublicContext) -> Iterator[Path]:
    """A file beside the sketch, as long as the sketch will be, so that a full disk is noticed before the charge."""
    parts = lengths_of(plan, context.number_of_nodes, context.number_of_classes)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            allocate(file.fileno(), LONGEST_HEADER + sum(parts) + CHECKSUM)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise SketchError(f"{path.name} cannot be written: {error.strerror}. Nothing was charged.") from None
    try:
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def _publish(content: bytes, room: Path, path: Path) -> None:
    """Makes the sketch public: wholly or not at all, and durably."""
    try:
        with room.open("r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        room.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise SketchError(
            f"{path.name} is paid and could not be written: {error.strerror}. Ask again: it will be the same sketch, "
            "and costs nothing more."
        ) from None


def _refuse_misfits(graph: PrivateGraph, context: PublicContext, ledger: Ledger) -> None:
    """Checks public facts before anything is charged."""
    if context.sketch is not None:
        raise SettingsError("the context knows a sketch already; leave it out of the vault file to make another one.")
    if graph.number_of_nodes != context.number_of_nodes:
        raise SettingsError("graph and context have different numbers of nodes; match them.")
    if not 2 <= context.number_of_nodes <= MOST_NODES:
        raise InputError(f"a sketch is for 2 to {MOST_NODES:,} nodes: its file has a bit for every pair of nodes.")
    if not isinstance(ledger.limit.contract, Pure):
        raise SettingsError("a sketch needs the contract pure: its price is an epsilon.")


def _refuse_loss(request: Request, ledger: Ledger, path: Path, keys: KeyFile) -> None:
    """Refuses to overwrite a file, and to draw a second time what was paid and begun with a key that is lost."""
    if path.exists() and not keys.exists():
        raise SketchError(f"{path.name} exists and is not the sketch that would be paid now; name another file.")
    if not keys.exists() and ledger.paid(request.analyst, [request.request_id]):
        raise SketchError(
            f"this sketch is paid, and its key {keys.path.name} was lost before the sketch was written. It is not "
            "drawn a second time for one price: restore the key, or pay for a sketch at another epsilon."
        )
