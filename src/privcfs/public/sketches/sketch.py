"""A sketch as everyone may know it: what was released of the hidden pairs, and the file that holds it.

Hidden pairs are the private edges that the snapshot does not show. A sketch has one kind of release or both. Randomised
response shows each pair of nodes outside the snapshot: an edge as an edge, and any other pair as none, except that each
is turned round with probability 1 / (1 + e^epsilon). Of large graphs it does so for each node's likeliest partners
alone. Counts say for each node and class how many hidden pairs lead from the node to nodes of that class of the public
model, with discrete Laplace noise.

The file ends with a checksum. If it covers all pairs, it has one bit for each, and its length follows from public
numbers alone. If it covers likeliest partners, it lists the pairs that are shown, so that its length says how many
these are, and has what public data say of the covered pairs, so that nobody has to find them again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import PrivcfsError, SketchError
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.sketches.triangle import number_of_pairs, pair_at, unpacked
from privcfs.tables.neighbours import Neighbours

Numbers = NDArray[np.int64]
MAGIC = b"privcfs sketch 1\n"
LONGEST_HEADER = 1 << 12
CHECKSUM = 32  # bytes at the end of the file
ALIGNED = 64  # the header of a file in which pairs are listed is a multiple of so many bytes long
# Counts are stored as whole numbers between these.
COUNT, MOST_COUNT = "<i2", 32_767
# All pairs of so many nodes can be covered: one bit for each is written, and one random word for each is drawn.
MOST_NODES = 40_000
# Of larger graphs so many likeliest partners of each node are covered by default.
PARTNERS = 100
# At most so many pairs can be expected to be shown where likeliest partners are covered.
MOST_SHOWN = 1 << 26
# Bytes that are read at a time.
PIECE = 1 << 24
NONE = Fraction(0)
# The most that counts cost by default.
MOST_COUNTS = Fraction(2)


@final
@dataclass(frozen=True, slots=True)
class SketchPlan:
    """What a sketch consists of, and what each part costs.

    Attributes:
        responses: The epsilon of randomised response; 0 for none.
        counts: The epsilon of counts by class; 0 for none.
        partners: How many likeliest partners of each node randomised response covers; 0 if it covers all pairs.
    """

    responses: Fraction
    counts: Fraction = NONE
    partners: int = 0

    def __post_init__(self) -> None:
        if not (self.responses >= 0 and self.counts >= 0 and self.epsilon > 0):
            raise SketchError("a sketch needs a part whose epsilon is above 0, and none below 0.")
        if self.partners < 0:
            raise SketchError(f"partners is {self.partners}; cover at least one likeliest partner of each node.")

    @classmethod
    def of(cls, epsilon: Fraction, partners: int = 0) -> "SketchPlan":
        """The default at a price: counts up to MOST_COUNTS, which serve best at low prices, and responses beyond."""
        counts = min(epsilon, MOST_COUNTS)
        return cls(epsilon - counts, counts, partners)

    @property
    def epsilon(self) -> Fraction:
        """What the whole costs, for two graphs that differ in one edge."""
        return self.responses + self.counts

    @property
    def name(self) -> str:
        """As a ledger states it."""
        covered = f" for {self.partners} likeliest partners of each node" if self.partners and self.responses else ""
        parts = {"randomised response": (self.responses, covered), "counts by class": (self.counts, "")}
        return "sketch: " + ", ".join(f"{name} at {show(price)}{of}" for name, (price, of) in parts.items() if price)

    @property
    def is_listed(self) -> bool:
        """Whether pairs are listed, because likeliest partners alone are covered, and not all pairs."""
        return self.partners > 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What randomised response for likeliest partners shows, with what public data say of the pairs that it covers.

    Attributes:
        shown: For each node the partners with larger numbers with which it is shown, true or not, as neighbour lists.
        log_weights: For each entry of `shown.others` the log weight of the pair, without the popularity of its ends.
        sums: For each node the sum of the weights of its covered pairs, times the popularity of the other end.
        likely: The public model's class probabilities, in parts of 255: (nodes, classes).
        covered: The share of hidden pairs that are covered, estimated from public pairs that were held out; None where
            there were too few.
    """

    shown: Neighbours
    log_weights: NDArray[np.float32]
    sums: NDArray[np.float32]
    likely: NDArray[np.uint8]
    covered: float | None


@final
@dataclass(frozen=True, eq=False)
class Sketch:
    """What a sketch says.

    Attributes:
        plan: What it consists of.
        context_digest: The public context that it was made for, without any sketch.
        worlds: What the owner believed of hidden pairs when it was made.
        nodes: The number of nodes.
        classes: The number of classes.
        shown: The places of the pairs that randomised response for all pairs shows, ascending; None without it.
        counts: Noisy counts (nodes, classes); None without counts.
        listed: What randomised response for likeliest partners shows; None without it.
        name: The digest of the file, by which a vault names its sketch; empty before it is written.
    """

    plan: SketchPlan
    context_digest: str
    worlds: Worlds
    nodes: int
    classes: int
    shown: Numbers | None
    counts: NDArray[np.integer] | None
    listed: Listed | None = None
    name: str = ""

    @cached_property
    def shown_pairs(self) -> Neighbours:
        """The pairs that randomised response shows, true or not."""
        places = np.empty(0, np.int64) if self.shown is None else self.shown
        return Neighbours.of_pairs(pair_at(places, self.nodes), self.nodes)


def header_of(plan: SketchPlan, context: PublicContext, worlds: Worlds, listed: Listed | None = None) -> bytes:
    """The beginning of a sketch file, which follows from public data and, if pairs are listed, from their number."""
    fields = {
        "context": context.digest,
        "nodes": context.number_of_nodes,
        "classes": context.number_of_classes,
        "responses": show(plan.responses),
        "counts": show(plan.counts),
        "disclosed": worlds.disclosed,
        "degree": worlds.degree,
        "number": worlds.number,
    }
    if plan.partners:
        fields |= {"partners": plan.partners}
    if listed is None:
        return MAGIC + json.dumps(fields).encode() + b"\n"
    head = MAGIC + json.dumps(fields | {"covered": listed.covered, "shown": len(listed.shown.others)}).encode()
    return head.ljust(-(-(len(head) + 1) // ALIGNED) * ALIGNED - 1) + b"\n"


def lengths_of(plan: SketchPlan, nodes: int, classes: int, shown: int = 0) -> dict[str, int]:
    """How many bytes each part of a file has, in their order; `shown` pairs are listed where pairs are listed."""
    layout: dict[str, int] = {}
    if plan.is_listed:  # wide numbers come first, so that all of them stand at places that their width divides
        layout |= {"starts": 8 * (nodes + 1), "others": 4 * shown, "log_weights": 4 * shown, "sums": 4 * nodes}
    elif plan.responses:
        layout |= {"responses": (number_of_pairs(nodes) + 7) // 8}
    if plan.counts:
        layout |= {"counts": nodes * classes * np.dtype(COUNT).itemsize}
    return layout | ({"likely": nodes * classes} if plan.is_listed else {})


def read_sketch(path: str | Path) -> Sketch:
    """Reads a sketch that `privcfs sketch` made.

    Args:
        path: The file.

    Returns:
        What it says; lists and tables of large graphs are mapped, and read where they are touched.

    Raises:
        SketchError: The file is missing, damaged, no sketch, or of another version.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            head, size = file.read(LONGEST_HEADER), path.stat().st_size
            _refuse_others(head, path.name)
            name = _checked_name(file, size)
        content = np.memmap(path, np.uint8, "r")  # touched where it is read, and not while it is checked
    except FileNotFoundError:
        raise SketchError(f"sketch {path} does not exist; make it with privcfs sketch.") from None
    except OSError as error:
        raise SketchError(f"sketch {path.name} cannot be read: {error.strerror or error}.") from None
    if name is None:
        raise _damaged(path.name)
    return _parsed(content, head, path.name, name)


def _refuse_others(head: bytes, name: str) -> None:
    """Refuses what does not begin as a sketch of this version."""
    if not head.startswith(MAGIC):
        is_other = head.startswith(MAGIC.split(b"1")[0])
        what = "was written by another version of privcfs" if is_other else "is not a sketch"
        raise SketchError(f"sketch {name} {what}; name the file that privcfs sketch wrote.")


def _damaged(name: str) -> SketchError:
    return SketchError(f"sketch {name} is damaged; restore it from a backup: it cannot be drawn again.")


def _checked_name(file: BinaryIO, size: int) -> str | None:
    """The digest of a file, read piece by piece; None where the checksum at its end is another."""
    hasher, left = hashlib.sha256(), max(size - CHECKSUM, 0)
    file.seek(0)
    while left and (piece := file.read(min(PIECE, left))):
        hasher.update(piece)
        left -= len(piece)
    checksum = file.read()
    if hasher.digest() != checksum:
        return None
    hasher.update(checksum)
    return hasher.hexdigest()


def _parsed(content: NDArray[np.uint8], head: bytes, file: str, name: str) -> Sketch:
    """The content of a file whose checksum is right, checked from the outside in."""
    end = head.find(b"\n", len(MAGIC)) + 1
    try:
        fields: Mapping[str, Any] = json.loads(head[len(MAGIC) : end])
        plan = SketchPlan(_part(fields["responses"]), _part(fields["counts"]), int(fields.get("partners", 0)))
        nodes, classes = int(fields["nodes"]), int(fields["classes"])
        worlds = Worlds(int(fields["number"]), float(fields["disclosed"]), float(fields["degree"]))
        digest, covered = str(fields["context"]), fields.get("covered")
        lengths = lengths_of(plan, nodes, classes, int(fields.get("shown", 0)))
    except (KeyError, TypeError, ValueError, PrivcfsError):
        raise _damaged(file) from None
    if not end or len(content) != end + sum(lengths.values()) + CHECKSUM:
        raise _damaged(file)
    parts: dict[str, NDArray[np.uint8]] = {}
    for part, length in lengths.items():
        parts[part], end = content[end : end + length], end + length
    shown = unpacked(parts["responses"].tobytes()) if "responses" in parts else None
    listed = _listed(parts, (nodes, classes), covered) if plan.is_listed else None
    counts = parts["counts"].view(COUNT).reshape(nodes, classes) if "counts" in parts else None
    if counts is not None and listed is None:
        counts = counts.astype(np.int64)
    return Sketch(plan, digest, worlds, nodes, classes, shown, counts, listed, name)


def _listed(parts: Mapping[str, NDArray[np.uint8]], shape: tuple[int, int], covered: float | None) -> Listed:
    """The parts of a file in which pairs are listed."""
    return Listed(
        Neighbours(parts["starts"].view("<i8"), parts["others"].view("<i4")),
        parts["log_weights"].view("<f4"),
        parts["sums"].view("<f4"),
        parts["likely"].reshape(shape),
        covered,
    )


def _part(text: str) -> Fraction:
    """A price that may be 0."""
    return NONE if text == "0" else parse_epsilon(text)
