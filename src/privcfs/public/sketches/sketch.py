"""A sketch as everyone may know it: what was released of the hidden pairs, and the file that holds it.

Hidden pairs are the private edges that the snapshot does not show. A sketch has one kind of release or both. Randomised
response shows each pair of nodes outside the snapshot: an edge as an edge, and any other pair as none, except that each
is turned round with probability 1 / (1 + e^epsilon). Counts say for each node and class how many hidden pairs lead from
the node to nodes of that class of the public model, with discrete Laplace noise.

The length of the file follows from public numbers alone. It ends with a checksum.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, final

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
# Counts are stored as whole numbers between these.
COUNT, MOST_COUNT = "<i2", 32_767
# One bit for each pair of nodes is written, and one random word for each is drawn.
MOST_NODES = 40_000
NONE = Fraction(0)
# The most that counts cost by default.
MOST_COUNTS = Fraction(2)


@final
@dataclass(frozen=True, slots=True)
class SketchPlan:
    """What a sketch consists of, and what each part costs.

    Attributes:
        responses: The epsilon of randomised response for all pairs of nodes; 0 for none.
        counts: The epsilon of counts by class; 0 for none.
    """

    responses: Fraction
    counts: Fraction = NONE

    def __post_init__(self) -> None:
        if not (self.responses >= 0 and self.counts >= 0 and self.epsilon > 0):
            raise SketchError("a sketch needs a part whose epsilon is above 0, and none below 0.")

    @classmethod
    def of(cls, epsilon: Fraction) -> "SketchPlan":
        """The default at a price: counts up to MOST_COUNTS, which serve best at low prices, and responses beyond."""
        counts = min(epsilon, MOST_COUNTS)
        return cls(epsilon - counts, counts)

    @property
    def epsilon(self) -> Fraction:
        """What the whole costs, for two graphs that differ in one edge."""
        return self.responses + self.counts

    @property
    def name(self) -> str:
        """As a ledger states it."""
        parts = {"randomised response": self.responses, "counts by class": self.counts}
        return "sketch: " + ", ".join(f"{name} at {show(price)}" for name, price in parts.items() if price)


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
        shown: The places of the pairs that randomised response shows, ascending; None without randomised response.
        counts: Noisy counts (nodes, classes); None without counts.
        name: The digest of the file, by which a vault names its sketch; empty before it is written.
    """

    plan: SketchPlan
    context_digest: str
    worlds: Worlds
    nodes: int
    classes: int
    shown: Numbers | None
    counts: Numbers | None
    name: str = ""

    @cached_property
    def shown_pairs(self) -> Neighbours:
        """The pairs that randomised response shows, true or not."""
        places = np.empty(0, np.int64) if self.shown is None else self.shown
        return Neighbours.of_pairs(pair_at(places, self.nodes), self.nodes)


def header_of(plan: SketchPlan, context: PublicContext, worlds: Worlds) -> bytes:
    """The beginning of a sketch file, which follows from public data."""
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
    return MAGIC + json.dumps(fields).encode() + b"\n"


def lengths_of(plan: SketchPlan, nodes: int, classes: int) -> tuple[int, int]:
    """How many bytes the two parts of a file have."""
    responses = (number_of_pairs(nodes) + 7) // 8 if plan.responses else 0
    return responses, nodes * classes * np.dtype(COUNT).itemsize if plan.counts else 0


def read_sketch(path: str | Path) -> Sketch:
    """Reads a sketch that `privcfs sketch` made.

    Args:
        path: The file.

    Returns:
        What it says.

    Raises:
        SketchError: The file is missing, damaged, no sketch, or of another version.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise SketchError(f"sketch {path} does not exist; make it with privcfs sketch.") from None
    except OSError as error:
        raise SketchError(f"sketch {path.name} cannot be read: {error.strerror or error}.") from None
    return _parsed(content, path.name)


def _parsed(content: bytes, name: str) -> Sketch:
    """The content of a file, checked from the outside in."""
    if not content.startswith(MAGIC):
        is_other = content.startswith(MAGIC.split(b"1")[0])
        what = "was written by another version of privcfs" if is_other else "is not a sketch"
        raise SketchError(f"sketch {name} {what}; name the file that privcfs sketch wrote.")
    damaged = SketchError(f"sketch {name} is damaged; restore it from a backup: it cannot be drawn again.")
    end = content.find(b"\n", len(MAGIC), LONGEST_HEADER) + 1
    if not end or hashlib.sha256(content[:-CHECKSUM]).digest() != content[-CHECKSUM:]:
        raise damaged
    try:
        fields: Mapping[str, Any] = json.loads(content[len(MAGIC) : end])
        plan = SketchPlan(_part(fields["responses"]), _part(fields["counts"]))
        nodes, classes = int(fields["nodes"]), int(fields["classes"])
        worlds = Worlds(int(fields["number"]), float(fields["disclosed"]), float(fields["degree"]))
        digest = str(fields["context"])
    except (KeyError, TypeError, ValueError, PrivcfsError):
        raise damaged from None
    responses, counts = lengths_of(plan, nodes, classes)
    if len(content) != end + responses + counts + CHECKSUM:
        raise damaged
    shown = unpacked(content[end : end + responses]) if responses else None
    table = np.frombuffer(content, COUNT, nodes * classes, end + responses).astype(np.int64) if counts else None
    reshaped = None if table is None else table.reshape(nodes, classes)
    return Sketch(plan, digest, worlds, nodes, classes, shown, reshaped, hashlib.sha256(content).hexdigest())


def _part(text: str) -> Fraction:
    """A price that may be 0."""
    return NONE if text == "0" else parse_epsilon(text)
