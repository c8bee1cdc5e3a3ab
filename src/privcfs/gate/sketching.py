"""A sketch of the hidden pairs: paid once, before an edge is read, and drawn once.

Zone: gate
Claim: pure epsilon-DP for graphs that differ in one edge, with epsilon the sum of both parts; the price is charged,
    durably, before an edge is read; for one price there is one draw, whatever happens to disk and process.
Why: every covered pair has one coin that owes nothing to the graph, and is shown as it is unless its coin turns it
    round, with probability at least 1 / (1 + e^epsilon) and below one half. One edge is one pair, and which pairs are
    covered is public; a pair belongs to one leaf. Counts have the difference of two geometric numbers added in every
    cell, whose ratio is at least e^(-epsilon / 2), and one edge moves two cells by one. All of this is in whole numbers
    out of 2^64. Coins follow from a key that is on disk before the charge and until the sketch is public, and the room
    for the file is taken before the charge.
Check: tests/gate/test_sketching.py::test_the_law_of_a_sketch_moves_by_at_most_its_price
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import ceil, sqrt
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError, SettingsError, SketchError
from privcfs.gate.coins import BLOCK, Coins, KeyFile
from privcfs.gate.contracts import Pure
from privcfs.gate.draft import Draft, Keep, Piece, at_once, draft_of, drop_draft
from privcfs.gate.ledger.ledger import ENTRIES, Ledger, Request
from privcfs.gate.mechanisms.decay import exponential_above
from privcfs.gate.randomness import Randomness
from privcfs.gate.snapshots import ONE_EDGE, WORD
from privcfs.gate.storing import Storing
from privcfs.private.graph import PrivateGraph
from privcfs.private.sketching import answers, answers_within, class_counts, hidden_pairs
from privcfs.public.beliefs.learning import learn_beliefs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.likeliest import Leaf, Likeliest, coverage
from privcfs.public.sketches.profiles import classes_of
from privcfs.public.sketches.sketch import (
    CHECKSUM,
    COUNT,
    LONGEST_HEADER,
    MOST_COUNT,
    MOST_NODES,
    MOST_SHOWN,
    PARTNERS,
    PIECE,
    Listed,
    Sketch,
    SketchPlan,
    header_of,
    lengths_of,
    read_sketch,
)
from privcfs.public.sketches.triangle import number_of_pairs, packed
from privcfs.tables.neighbours import Neighbours

Numbers = NDArray[np.int64]
Floats = NDArray[np.float32]
DIGEST = 64  # hexadecimal digits
# Nodes whose counts are drawn and kept together, where the sketch is drawn piece by piece.
COUNTED = 1 << 16
# What a piece keeps of each node of its leaves, and of each pair that is shown, in bytes.
NODE_BYTES, PAIR_BYTES = 8, 12


@final
class Parts(NamedTuple):
    """What is drawn; None for a part that is not there.

    Attributes:
        shown: The places of the pairs that randomised response for all pairs shows.
        counts: Noisy counts.
        listed: What randomised response for likeliest partners shows.
    """

    shown: Numbers | None
    counts: Numbers | None
    listed: Listed | None = None


def publish_sketch(
    graph: PrivateGraph,
    context: PublicContext,
    ledger: Ledger,
    plan: SketchPlan,
    worlds: Worlds,
    path: Path,
    progress: Callable[[str], None] = lambda _: None,
) -> Sketch:
    """Charges a sketch, draws it, and writes it; the same call again finishes what was begun, and pays nothing.

    Args:
        graph: The private graph.
        context: Its public context, without a sketch.
        ledger: The graph's ledger.
        plan: What the sketch consists of.
        worlds: What the owner believes of hidden pairs; written into the file, because beliefs follow from it.
        path: Where the sketch goes.
        progress: Is told which public step is going on. By default nobody is told.

    Returns:
        The sketch as everyone may read it.

    Raises:
        InputError: The graph has too many nodes for all pairs, or fewer than two.
        SettingsError: Graph, context or contract do not fit.
        SketchError: There is another file at the path, the file would be too large, or a sketch that was paid for is
            lost.
        BudgetExhausted: The price does not fit the limit; nothing was charged.
        LedgerError: The ledger cannot be read or written.
    """
    _refuse_misfits(graph, context, ledger, plan)
    graph.bind(ledger.graph_id)
    request = _request(context, plan)
    name = hashlib.sha256(request.request_id.encode()).hexdigest()[:16]
    keys = KeyFile(path.with_name(f"{path.name}.{name}.key"))
    known = ledger.look_up([request])[0]
    if known is None:
        _refuse_loss(request, ledger, path, keys)
        universe = covered_by(context, plan, worlds, progress)
        with draft_of(path, name, _room(plan, context, worlds)) as draft, Storing(ledger).claiming([request]) as kept:
            key = keys.key()
            kept.found(ledger.charge_all([request]))
            if kept.lacks(request):
                if not path.exists():  # the same coins on edges that have changed since would show the change
                    keep = draft.piece if universe is None else _dividing(draft, universe, progress)
                    parts = draw_sketch(graph, context, plan, _uses(key, request), universe, keep)
                    draft.room.publish(_content(context, plan, worlds, parts))
                kept.add(request, _made(path, context, plan).name)
            known = kept.stored()[0]
    found = read_sketch(path)
    if found.name != known:
        raise SketchError(f"{path.name} is not the sketch that was paid; name the file that was written then.")
    keys.remove()
    drop_draft(path, name)
    return found


def covered_by(
    context: PublicContext, plan: SketchPlan, worlds: Worlds, progress: Callable[[str], None] = lambda _: None
) -> Likeliest | None:
    """The pairs that a sketch covers, from public data; None where it covers all pairs, or counts alone."""
    if not (plan.is_listed and plan.responses):
        return None
    progress("finding the likeliest partners of all nodes")
    return Likeliest.of(context, learn_beliefs(context, worlds), plan.partners)


def _uses(key: bytes, request: Request) -> Callable[[str], Randomness]:
    return lambda use: Coins(key, f"{request.request_id}: {use}")


def _dividing(draft: Draft, universe: Likeliest, progress: Callable[[str], None]) -> Keep:
    """Keeps pieces in a draft, and tells how far it is."""
    draft.divide(universe.digest)

    def keep(name: str, make: Callable[[], Piece]) -> Piece:
        progress(f"drawing {name.replace('-', ', piece ')} of {universe.pieces}")
        return draft.piece(name, make)

    return keep


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
    graph: PrivateGraph,
    context: PublicContext,
    plan: SketchPlan,
    coins: Callable[[str], Randomness],
    universe: Likeliest | None = None,
    keep: Keep = at_once,
) -> Parts:
    """All parts. Coins are drawn first and owe nothing to the graph.

    Args:
        graph: The private graph.
        context: Its public context.
        plan: What is drawn.
        coins: Random words for each use.
        universe: The pairs that are covered; None, the default, for all pairs.
        keep: Keeps pieces of large sketches under their names, or gives back what was kept. By default nothing is kept.
    """
    nodes = context.number_of_nodes
    if plan.is_listed:
        counts = np.concatenate(list(_counts(graph, context, plan, coins, keep))) if plan.counts else None
        return Parts(None, counts, _listed(graph, context, plan, coins, universe, keep))
    turned = turned_pairs(number_of_pairs(nodes), plan.responses, coins) if plan.responses else None
    noise = laplace(nodes * context.number_of_classes, plan.counts / 2, coins("counts")) if plan.counts else None
    hidden = hidden_pairs(graph, context.disclosed) if turned is not None else None
    counts = None
    if noise is not None:
        said = snapshot_logits(context, np.arange(nodes)).argmax(axis=1)
        counts = class_counts(graph, context.disclosed, np.arange(nodes), said, context.number_of_classes)
        counts += noise.reshape(counts.shape)
    return Parts(None if turned is None or hidden is None else answers(hidden, turned, nodes), counts)


def _counts(
    graph: PrivateGraph, context: PublicContext, plan: SketchPlan, coins: Callable[[str], Randomness], keep: Keep
) -> Iterator[NDArray[np.int16]]:
    """Noisy counts of all nodes, some nodes at a time, as they are written."""
    classes = context.number_of_classes
    _, said = classes_of(context)
    for number, start in enumerate(range(0, context.number_of_nodes, COUNTED)):
        nodes = np.arange(start, min(start + COUNTED, context.number_of_nodes))

        def draw(number: int = number, nodes: Numbers = nodes) -> Piece:
            noise = laplace(len(nodes) * classes, plan.counts / 2, coins(f"counts of piece {number}"))
            counts = class_counts(graph, context.disclosed, nodes, said, classes) + noise.reshape(-1, classes)
            return {"counts": counts.clip(-MOST_COUNT, MOST_COUNT).astype(COUNT)}

        yield keep(f"counts-{number}", draw)["counts"]


def _listed(
    graph: PrivateGraph,
    context: PublicContext,
    plan: SketchPlan,
    coins: Callable[[str], Randomness],
    universe: Likeliest | None,
    keep: Keep,
) -> Listed:
    """Randomised response for the pairs of a universe, piece by piece; for none where responses have no price."""
    count = context.number_of_nodes
    sums, found, keys, logs = np.zeros(count, np.float32), 0, [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for number in range(universe.pieces if universe is not None else 0):

        def draw(number: int = number) -> Piece:
            assert universe is not None
            rate, randomness = turning(plan.responses), coins(f"responses of piece {number}")
            return _piece([_shown(graph, leaf, rate, randomness) for leaf in universe.piece(number)])

        piece = keep(f"responses-{number}", draw)
        sums[piece["nodes"]] += piece["sums"]
        found += int(piece["found"])
        keys.append(piece["pairs"] @ np.array([count, 1]))
        logs.append(piece["log_weights"])
    lists, weights = _in_order(keys, logs, count)
    likely = classes_of(context)[0] if universe is None else universe.vectors.likely
    covered = 0.0 if universe is None else coverage(found, len(universe.vectors.held_out))
    return Listed(lists, weights, sums, likely, covered)


def _in_order(keys: list[Numbers], logs: list[NDArray[np.float32]], count: int) -> tuple[Neighbours, Floats]:
    """Shown pairs as lists at their smaller nodes, and their log weights; the lists of pieces are emptied for room."""
    every, weights = np.concatenate(keys), np.concatenate(logs)
    keys.clear()
    logs.clear()
    order = np.argsort(every)
    every, weights = every[order], weights[order]
    del order
    starts = np.searchsorted(every, np.arange(count + 1) * count)
    return Neighbours(starts, np.remainder(every, count, out=every).astype(np.int32)), weights


def _shown(graph: PrivateGraph, leaf: Leaf, rate: int, randomness: Randomness) -> Piece:
    """Randomised response for the pairs of one leaf, each of which has one coin."""
    turned = randomness.words(len(leaf.first)) < np.uint64(rate)
    shown = answers_within(graph, leaf.nodes, (leaf.first, leaf.second), turned)
    ends = leaf.nodes[np.column_stack([leaf.first[shown], leaf.second[shown]])].astype(np.int32)
    nodes, found = leaf.nodes.astype(np.int32), np.array([leaf.found])
    return {"pairs": ends, "log_weights": leaf.log_weights[shown], "nodes": nodes, "sums": leaf.sums, "found": found}


def _piece(leaves: list[Piece]) -> Piece:
    """The leaves of a piece, put together."""
    whole = {name: np.concatenate([leaf[name] for leaf in leaves]) for name in leaves[0]}
    return whole | {"found": whole["found"].sum()}


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


def falling(epsilon: Fraction) -> int:
    """Out of 2^64, how often a number that was reached is passed: the least that is at least 2^64 e^-epsilon."""
    return min(ceil(WORD * exponential_above(epsilon)), WORD - 1)


def geometric(cells: int, epsilon: Fraction, randomness: Randomness) -> Numbers:
    """For each cell how many coins in a row come up, each with the least probability in 2^-64 that is >= e^-epsilon."""
    ratio = np.uint64(falling(epsilon))
    found, going = np.zeros(cells, np.int64), np.arange(cells)
    while len(going):
        going = going[randomness.words(len(going)) < ratio]
        found[going] += 1
    return found


def _request(context: PublicContext, plan: SketchPlan) -> Request:
    """The same for the same context and plan, so that nobody pays for one sketch twice."""
    name = f"{plan.name} of {context.digest}"
    return Request(ENTRIES, name, 0, plan.epsilon, context.digest, plan.name, ONE_EDGE, question="sketch", room=DIGEST)


def _content(context: PublicContext, plan: SketchPlan, worlds: Worlds, parts: Parts) -> Iterator[bytes]:
    """The file, piece by piece, with its checksum at the end."""
    hasher = hashlib.sha256()
    for piece in _written(context, plan, worlds, parts):
        hasher.update(piece)
        yield piece
    yield hasher.digest()


def _written(context: PublicContext, plan: SketchPlan, worlds: Worlds, parts: Parts) -> Iterator[bytes]:
    yield header_of(plan, context, worlds, parts.listed)
    if parts.shown is not None:
        yield packed(parts.shown, context.number_of_nodes)
    if parts.listed is not None:
        shown = parts.listed.shown
        yield from _bytes(shown.starts, "<i8")
        yield from _bytes(shown.others, "<i4")
        yield from _bytes(parts.listed.log_weights, "<f4")
        yield from _bytes(parts.listed.sums, "<f4")
    if parts.counts is not None:
        yield from _bytes(parts.counts.clip(-MOST_COUNT, MOST_COUNT).ravel(), COUNT)
    if parts.listed is not None:
        yield from _bytes(parts.listed.likely.ravel(), "u1")


def _bytes(array: NDArray[np.generic], kind: str) -> Iterable[bytes]:
    """The entries of an array, some at a time."""
    return (array[start : start + PIECE].astype(kind).tobytes() for start in range(0, len(array), PIECE))


def _room(plan: SketchPlan, context: PublicContext, worlds: Worlds) -> int:
    """Enough bytes for the sketch, and for the pieces that it is drawn in: a public number.

    Where pairs are listed, their number follows the draw: room is for many more than are expected.
    """
    nodes, classes = context.number_of_nodes, context.number_of_classes
    if not plan.is_listed:
        return LONGEST_HEADER + sum(lengths_of(plan, nodes, classes).values()) + CHECKSUM
    expected = shown_by_chance(plan, nodes)
    believed = nodes * worlds.mean_hidden_degree(len(context.snapshot.others) / nodes)
    most = ceil(expected + 10 * sqrt(expected) + believed)
    orders_of_all = 4 * nodes * NODE_BYTES
    lengths = lengths_of(plan, nodes, classes, most)
    return (
        LONGEST_HEADER + sum(lengths.values()) + CHECKSUM + orders_of_all + most * PAIR_BYTES + lengths.get("counts", 0)
    )


def shown_by_chance(plan: SketchPlan, nodes: int) -> float:
    """An upper bound on how many pairs that are no edges are expected to be shown where pairs are listed."""
    return nodes * plan.partners * turning(plan.responses) / WORD if plan.responses else 0.0


def _refuse_misfits(graph: PrivateGraph, context: PublicContext, ledger: Ledger, plan: SketchPlan) -> None:
    """Checks public facts before anything is charged."""
    if context.sketch is not None:
        raise SettingsError("the context knows a sketch already; leave it out of the vault file to make another one.")
    if graph.number_of_nodes != context.number_of_nodes:
        raise SettingsError("graph and context have different numbers of nodes; match them.")
    nodes = context.number_of_nodes
    if nodes < 2 or (nodes > MOST_NODES and not plan.is_listed):
        raise InputError(
            f"a sketch of all pairs is for 2 to {MOST_NODES:,} nodes; cover likeliest partners instead, for example "
            f"{PARTNERS} of each node."
        )
    if plan.is_listed and shown_by_chance(plan, nodes) > MOST_SHOWN:
        raise SketchError(
            f"the sketch would not fit: of {plan.partners} partners of each node about "
            f"{shown_by_chance(plan, nodes):,.0f} pairs would be shown by chance, and at most {MOST_SHOWN:,} can be "
            "listed. Take a larger epsilon, fewer partners, or counts alone. Nothing was charged."
        )
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
