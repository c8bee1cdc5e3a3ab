"""Everything that the experiments want to know of one target, in one record: computed once, read by every table."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import Method
from privcfs.gate.public_guess import lowest_margin
from privcfs.private.allowance import Allowance
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.gated import Gated
from privcfs.public.context import PublicContext, Readable
from privcfs_lab.measuring.inspection import Inspection, inspect
from privcfs_lab.measuring.quality import quality, release_law
from privcfs_lab.variants import LAWS

GRID = ("0.1", "0.5", "1", "2", "4", "8")
DRAWS = 100  # Monte-Carlo draws per cell in the paper
LARGEST = 5  # sizes up to which the public guess is recorded

RECORD = np.dtype(
    [
        ("seed", np.int64),
        ("target", np.int64),
        ("margin", np.float64),
        ("near", np.int64),  # nodes within two steps
        ("support", np.int64),  # candidates
        ("overlap", np.int64),  # public pairs that are private edges
        ("pairs", np.int64),  # public pairs
        ("ceiling", np.float64),  # some candidate flips (the paper's starCF)
        ("ceiling_targeted", np.float64),
        ("smallest", np.int64),  # elements of the smallest flip, 0 where there is none
        ("uniform", np.float64),  # the share of candidates that flip: what a draw at epsilon 0 achieves
        (
            "guess",
            np.float64,
            LARGEST,
        ),  # the guess of lowest margin on the snapshot, of at most 1, 2, ... elements, flips
        ("guess_targeted", np.float64, LARGEST),
        ("guess_size", np.float64, LARGEST),
        (
            "best",
            np.float64,
            LARGEST,
        ),  # the best public guess of at most 1, 2, ... elements flips; guided methods alone
        ("best_size", np.float64, LARGEST),
        ("polluted", np.float64),  # the snapshot graph's prediction is not the private graph's
        ("spurious", np.float64, LARGEST),  # the guess flips the snapshot graph's prediction, not the private graph's
        ("valid", np.float64, len(GRID)),  # with the range that is printed in the paper, like all that follow
        ("targeted", np.float64, len(GRID)),
        ("empty", np.float64, len(GRID)),
        ("size", np.float64, len(GRID)),
        ("regret", np.float64, len(GRID)),
        ("regret_95", np.float64, len(GRID)),
        ("collision", np.float64, len(GRID)),
        ("drawn", np.float64, len(GRID)),  # valid share of 100 draws
        ("excess", np.float64, len(GRID)),  # elements of a valid release beyond the smallest flip
        ("ours", np.float64, len(GRID)),  # valid with the proven range
    ]
)
Records = NDArray[np.void]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The private graph, the public side, and the public side's graph in the private one's place."""

    graph: PrivateGraph
    context: PublicContext
    snapshot: PrivateGraph
    readable: Readable  # what decides on the private graph: the context itself, unless more than edges is secret

    @classmethod
    def of(cls, graph: PrivateGraph, context: PublicContext, readable: Readable | None = None) -> "Scene":
        """With the snapshot as a graph of its own."""
        snapshot = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=context.number_of_nodes)
        return cls(graph, context, snapshot, readable or context)


def measure(scene: Scene, target: int, method: Method, law: str = "one draw", seed: int = 0) -> Records:
    """One record, drawn with the range that the paper prints."""
    return measure_with(printed_range(method), scene, target, method, law, seed)


def measure_with(
    printed: Fraction | None, scene: Scene, target: int, method: Method, law: str = "one draw", seed: int = 0
) -> Records:
    """One record, drawn with this range; with the proven one if there is none."""
    found = inspect(scene.graph, scene.context, target, method, scene.readable)
    record = np.zeros(1, RECORD)
    row = record[0]
    row["seed"], row["target"], row["support"] = seed, target, len(found.candidates)
    row["near"] = nodes_within_two_steps(scene.graph, target)
    row["pairs"] = len(found.candidates.deletions)
    row["overlap"] = int(scene.graph.has_edges(np.array(found.candidates.deletions, np.int64).reshape(-1, 2)).sum())
    row["ceiling"], row["uniform"] = found.flips.any(), found.flips.mean()
    row["ceiling_targeted"] = (found.flips & (found.predictions == found.runner_up)).any()
    _record_guesses(row, scene, found)
    sizes = found.candidates.sizes
    row["smallest"] = sizes[found.flips].min(initial=int(sizes.max())) if found.flips.any() else 0
    rng = np.random.default_rng([seed, target])
    for column, price in enumerate(GRID):
        chances = LAWS[law](found, price, printed)
        measured = quality(found, chances)
        for name in ("valid", "targeted", "empty", "size", "regret", "regret_95", "collision"):
            row[name][column] = getattr(measured, name)
        row["excess"][column] = (chances * found.flips) @ (sizes - row["smallest"]) / max(measured.valid, 1e-300)
        row["drawn"][column] = found.flips[rng.choice(len(chances), DRAWS, p=chances / chances.sum())].mean()
        row["ours"][column] = (
            measured.valid
            if found.method.guide or law != "one draw"
            else float(release_law(found, price) @ found.flips)
        )
    return record


def _record_guesses(row: np.void, scene: Scene, found: Inspection) -> None:
    outcomes = evaluate(scene.snapshot, scene.context, found.candidates, Allowance(found.method.evaluation_seconds))
    guesses = public_guesses(outcomes)
    row["guess"] = found.flips[guesses]
    row["guess_targeted"] = found.flips[guesses] & (found.predictions[guesses] == found.runner_up)
    row["guess_size"] = found.candidates.sizes[guesses]
    if isinstance(found.method.guide, Rehearsal):
        belief = found.method.guide.belief(scene.context, found.candidates, found.method.utility)
        best = [belief.guess(most) for most in range(1, LARGEST + 1)]
        row["best"], row["best_size"] = found.flips[best], found.candidates.sizes[best]
    row["polluted"] = outcomes.original() != found.original
    row["spurious"] = outcomes.flips()[guesses] & ~found.flips[guesses]


def public_guesses(on_snapshot: Outcomes) -> list[int]:
    """The positions of the public guesses of at most one element, at most two, and so on up to the largest size."""
    margins, sizes = on_snapshot.margins(), on_snapshot.candidates.sizes
    return [lowest_margin(margins, sizes, most) for most in range(1, LARGEST + 1)]


def printed_range(method: Method) -> Fraction:
    """The paper's sensitivity: 1 for the gated utility; for the soft one, as for any other, its proven range."""
    return Fraction(1) if isinstance(method.utility, Gated) else method.utility.grid(method.candidates.caps).range


def nodes_within_two_steps(graph: PrivateGraph, target: int) -> int:
    """The target left out."""
    near = graph.neighbours(target)
    _, beyond = graph.neighbours_of(near)
    return len(np.union1d(np.union1d(near, beyond), [target])) - 1
