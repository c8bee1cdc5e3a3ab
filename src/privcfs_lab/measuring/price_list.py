"""The price list: what a release is likely to achieve for a public list of targets, before any budget is spent.

Computed on private edges it is for the owner's eyes, and acting on it discloses something that no budget pays for. The
public list puts the snapshot in the private graph's place: safe to act on and to publish.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError, SettingsError
from privcfs.owner.vault_file import VaultFile
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.candidates import RULES
from privcfs.public.context import PublicContext
from privcfs_lab.figures.frontier import draw_frontier
from privcfs_lab.figures.page import Column, Page, Picture, Value
from privcfs_lab.measuring.measure import GRID, Records, Scene, measure_with
from privcfs_lab.measuring.summary import estimate, guesses, rate

Pairs = NDArray[np.int64]
OWNER_ONLY = (
    "FOR THE OWNER'S EYES. This list is computed on private edges and no ledger pays for it. Choosing a disclosure, an "
    "epsilon, a support or targets by it tells others something about those edges. With --public the same list is "
    "computed on the snapshot alone: safe to act on and to publish."
)
SAFE = "Computed on the public snapshot alone, in the private graph's place: safe to act on and to publish."
HOW = (
    "mean ± standard error over them; the vault's utility, mechanism and proven range; exact expectations, nothing is "
    "drawn and nothing is charged. The public guess costs nothing: with a rehearsed mechanism it is the candidate that "
    "flips on most imagined graphs, otherwise the one of lowest margin on the graph of the disclosed pairs. In each "
    "row it has the mean size of the release beside it, but at least one element (guesses of two sizes are mixed to "
    "meet it). A rehearsed release at epsilon 0.1 is all but the public guess; without a rehearsal it is nearly a "
    "uniform draw. Worth paying: what clearly beats the guess at its own size."
)
OWNER_ABOUT = (
    f"{OWNER_ONLY} The vault as it is configured is the row `the snapshot` with its own support. `all edges` is an "
    "upper reference: a list made from private edges is no public list, and there the guess sees everything."
)
PUBLIC_ABOUT = (
    f"{SAFE} It describes releases on that sparser graph, not on yours: levels can be far off, the order of supports "
    "and prices is a hint. Read `half of the snapshot` as a rehearsal of what disclosing half of a graph achieves on "
    "the whole of it; at `the snapshot` nothing is hidden from the guess."
)
SUPPORTS = ("small-sets", "ladders", "one-hop", "edges-only")
HALF, SNAPSHOT, MORE, ALL = 0.5, 1.0, 1.5, 2.0  # 1 stands for the snapshot, 2 for all edges
LEVELS = {
    HALF: "half of the snapshot",
    SNAPSHOT: "the snapshot",
    MORE: "the snapshot and half of the rest",
    ALL: "all edges",
}
COLUMNS = (
    Column("disclosed"),
    Column("support"),
    Column("epsilon"),
    Column("candidates", ",.0f"),
    Column("ceiling"),
    Column("public guess"),
    Column("guess size", ".2f"),
    Column("valid"),
    Column("size", ".2f"),
    Column("empty", ".1%"),
    Column("list", shown=False),
)


@final
@dataclass(frozen=True, slots=True)
class Question:
    """Which targets and supports, and whether on the public side alone."""

    targets: Sequence[str]
    supports: Sequence[str] = SUPPORTS
    public: bool = False

    def __post_init__(self) -> None:
        if len(set(self.targets)) < 2 or len(set(self.targets)) < len(self.targets):
            raise InputError("a price list needs at least two targets, each named once, one a line.")
        unknown = [name for name in self.supports if name not in RULES]
        if unknown:
            raise InputError(f"support {unknown[0]!r} is unknown; choose from {', '.join(RULES)}.")


def read_targets(path: Path) -> list[str]:
    """One node a line; blank lines are skipped."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise SettingsError(f"target file {path} cannot be read: {error}.") from None


def price_list(file: VaultFile, question: Question, progress: Callable[[str], None]) -> Page:
    """Ceiling, public guess, valid rate, size and empty rate by disclosure, support and epsilon."""
    context = file.context()
    targets = [context.node(target) for target in question.targets]
    nodes = context.number_of_nodes
    if question.public:
        graph = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=nodes)
    else:
        graph = file.graph(context)
    secrets = None if question.public else file.secrets(context)
    title = "public price list" if question.public else "for the owner's eyes"
    measured: dict[tuple[str, str, float], Records] = {}
    for level, pairs in _disclosures(context, None if question.public else graph).items():
        shown = PublicContext(context.features, pairs, context.model, assumptions=SIMULATED)
        scene = Scene.of(graph, shown, secrets)
        for support in question.supports:
            progress(f"{LEVELS[level]}, {support}")
            configured = file.method(context)
            method = replace(configured, candidates=RULES[support])
            found = np.concatenate([measure_with(None, scene, target, method) for target in targets])
            measured[title, support, level] = found
    return _page(measured, question, len(targets))


def _disclosures(context: PublicContext, graph: PrivateGraph | None) -> Mapping[float, Pairs]:
    """Nested lists of pairs: part of the snapshot, the snapshot and, for the owner, more of the private edges."""
    shown = np.array(context.snapshot.pairs, np.int64).reshape(-1, 2)
    levels = {HALF: _half(shown), SNAPSHOT: shown}
    if graph is not None:
        owner, other = graph.neighbours_of(np.arange(context.number_of_nodes))
        edges = np.column_stack([owner, other])[owner < other]
        known = {(int(u), int(w)) for u, w in shown}
        rest = np.array([(u, w) for u, w in edges.tolist() if (u, w) not in known], np.int64).reshape(-1, 2)
        levels[MORE] = np.concatenate([shown, _half(rest)])
        levels[ALL] = np.concatenate([shown, rest])
    return levels


def _half(pairs: Pairs) -> Pairs:
    chosen: Pairs = pairs[np.sort(np.random.default_rng(0).permutation(len(pairs))[: len(pairs) // 2])]
    return chosen


def _page(measured: Mapping[tuple[str, str, float], Records], question: Question, targets: int) -> Page:
    rows: list[list[Value]] = []
    which = "public" if question.public else "private: for the owner's eyes"
    for (_, support, level), found in measured.items():
        top, kind = estimate(found["ceiling"]), "best" if found["best_size"].any() else "guess"
        for price in GRID:
            zero, size = (guesses(found, name, price) for name in (kind, f"{kind}_size"))
            row: list[Value] = [LEVELS[level], support, price, float(found["support"].mean()), top, estimate(zero)]
            row += [float(size.mean()), rate(found, "valid", price)]
            rows.append([*row, rate(found, "size", price).mean, rate(found, "empty", price).mean, which])
    about = f"{PUBLIC_ABOUT if question.public else OWNER_ABOUT} {targets} targets; {HOW}"
    levels = {level: LEVELS[level] for _, _, level in measured}
    words = "Valid rate against epsilon, one panel per support, one curve per disclosure, public guess at epsilon 0"
    titles = [title for title, _, _ in measured][:1]
    draw = partial(
        draw_frontier, measured, titles, list(question.supports), levels, lambda _, values: estimate(values).error
    )
    brief = ("disclosed", "support", "epsilon", "ceiling", "public guess", "guess size", "valid", "size")
    return Page("Price list", about, COLUMNS, rows, (Picture(words, draw),), brief)
