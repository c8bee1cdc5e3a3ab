"""A snapshot released with differential privacy, for owners who have no public pairs to begin with.

Zone: gate
Claim: pure epsilon-DP for graphs that differ in one edge; the price is charged, durably, before an edge is read.
Why: every pair of nodes is noised by itself, by whole numbers out of 2**64, and for each noisy value the numbers that
    an edge and a missing edge give it differ by a factor of at most e**epsilon (`levels`); what is kept is a function
    of noisy values. One edge is one pair, so one edge costs epsilon, a node its degree times that. What is stored has
    one bit for each pair, so that its length says nothing, and is drawn once (storing.py).
Check: tests/gate/test_snapshots.py::test_one_edge_moves_each_noisy_value_by_at_most_its_price
"""

import base64
import json
import secrets
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError, SettingsError
from privcfs.gate.ledger.ledger import ENTRIES, Ledger, Request
from privcfs.gate.mechanisms.decay import exponential_above
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.randomness import Randomness, SystemRandomness
from privcfs.gate.storing import Storing
from privcfs.private.graph import PrivateGraph
from privcfs.public.epsilon import Price, parse_epsilon
from privcfs.public.sketches.triangle import packed, pair_at, place_of, unpacked

ONE_EDGE = "two private graphs that differ in one edge"
WORD = 1 << 64
LARGEST = 40_000  # nodes: every pair of them gets its own random word
HEIGHTS = 64  # noisy values on either side
RESPONSE = SubsetSelection(Fraction(1, 2))
Pairs = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """How a snapshot is made: EdgeRand keeps what randomised response says, LapGraph the `pairs` highest noisy values.

    `pairs`, how many to publish, is a public number of the owner's choice; without it the noise is EdgeRand's.
    """

    pairs: int | None = None

    def __post_init__(self) -> None:
        if self.pairs is not None and self.pairs < 1:
            raise SettingsError(f"pairs is {self.pairs}; publish at least one, or leave it out.")

    @property
    def name(self) -> str:
        """As literature calls it."""
        return "EdgeRand" if self.pairs is None else f"LapGraph, {self.pairs} pairs"


def publish_snapshot(
    graph: PrivateGraph, ledger: Ledger, epsilon: Price, noise: Noise, *, request_id: str | None = None
) -> Pairs:
    """Noisy pairs, charged to the graph's ledger first; the same request id returns the same pairs."""
    if not 2 <= graph.number_of_nodes <= LARGEST:
        raise InputError(f"a private snapshot is for 2 to {LARGEST:,} nodes; name public pairs instead.")
    price = parse_epsilon(epsilon)
    graph.bind(ledger.graph_id)
    name, cost = request_id or secrets.token_hex(16), ledger.limit.contract.cost(RESPONSE, price)
    room = len(_written(np.empty((0, 2), np.int64), graph.number_of_nodes))
    request = Request(ENTRIES, name, 0, price, "", noise.name, ONE_EDGE, cost, question="snapshot", room=room)
    with Storing(ledger).claiming([request]) as answers:
        answers.found(ledger.charge_all([request]))
        if answers.lacks(request):
            drawn = draw_snapshot(graph, price, noise, SystemRandomness())
            answers.add(request, _written(drawn, graph.number_of_nodes))
        return _read(answers.stored()[0], graph.number_of_nodes)


def _written(pairs: Pairs, nodes: int) -> str:
    """One bit for each pair of nodes: as long for every snapshot of so many nodes."""
    return json.dumps({"pairs": base64.b64encode(packed(place_of(pairs, nodes), nodes)).decode()})


def _read(text: str, nodes: int) -> Pairs:
    """The inverse; version 0.1 wrote the pairs themselves."""
    fields = json.loads(text)
    if "snapshot" in fields:
        return np.array(fields["snapshot"], np.int64).reshape(-1, 2)
    return pair_at(unpacked(base64.b64decode(fields["pairs"])), nodes)


def draw_snapshot(graph: PrivateGraph, epsilon: Fraction, noise: Noise, randomness: Randomness) -> Pairs:
    """The noisy pairs, in order."""
    frequency = levels(epsilon, 1 if noise.pairs is None else HEIGHTS)
    borders = np.array([sum(frequency[: end + 1]) for end in range(len(frequency) - 1)], np.uint64)
    found: list[tuple[Pairs, NDArray[np.int64]]] = []
    for node in range(graph.number_of_nodes - 1):
        others = np.arange(node + 1, graph.number_of_nodes)
        there = np.isin(others, graph.neighbours(node))
        value = np.searchsorted(borders, randomness.words(len(others)), side="right")
        height = np.where(there, len(borders) - value, value)
        kept = height >= len(frequency) // 2
        found.append((np.column_stack([np.full(kept.sum(), node), others[kept]]), height[kept]))
    pairs, heights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if noise.pairs is not None:
        best = np.lexsort((randomness.words(len(heights)), -heights))[: noise.pairs]
        pairs = pairs[np.sort(best)]
    return pairs


def levels(epsilon: Fraction, heights: int) -> list[int]:
    """Out of 2**64, how often a missing edge gets each noisy value, from the lowest to the highest.

    An edge gets them in reverse. There are `heights` values below the middle and as many above; each one above has at
    least e**-epsilon of the one that mirrors it, so that the two never differ by more.
    """
    low = exponential_above(epsilon)
    shape = [low**height for height in range(heights)]
    share = WORD / (sum(shape) * (1 + low))
    below = [max(int(share * part), 1) for part in shape[1:]]
    above = [ceil(part * low) for part in below]
    left = WORD - sum(below) - sum(above)
    middle = int(left / (1 + low))
    return [*below[::-1], middle, left - middle, *above]
