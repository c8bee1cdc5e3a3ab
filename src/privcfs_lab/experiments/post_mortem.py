"""The post-mortem of the heuristic (the paper's appendix A): how far its release moves, and what an attack gains."""

from collections.abc import Mapping
from functools import partial
from math import sqrt

import dp_accounting
import numpy as np

from privcfs.embedded import NAMES
from privcfs_lab.audit.distinguish import gaussian_auc
from privcfs_lab.audit.post_mortem import GRAPHS, JUMP, MOVED, VARIANTS, WEIGHT, PostMortem
from privcfs_lab.baselines.privcf_out import DELTA, DEVIATION, EPSILON
from privcfs_lab.experiments import leakage
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.experiments.leakage import SCRATCH
from privcfs_lab.figures.page import Column, Page, Picture, Value
from privcfs_lab.figures.post_mortem import draw_post_mortem
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.study import Study

EDGES, WARM, PENALTIES = "edges alone", "warm start", ("gradient-norm penalty", "consistency penalty")
LOW = 1.5  # the paper's second price
CLEAR = 0.8  # an AUC above which the paper counts a pair of graphs as leaking
ROW_ZERO = "row zero: public guess"
METHODS = (ROW_ZERO, *VARIANTS)
Facts = dict[str, Value]
TOLD: Mapping[tuple[str, str], Mapping[str, Value]] = {
    ("cora", SCRATCH): {"own": 10.3, "L2": 104.6, "vector epsilon": "753 (elsewhere 573)"},
    ("citeseer", SCRATCH): {"own": 9.9, "L2": 35.5, "vector epsilon": "256"},
    **{(data, WARM): {"L-infinity": "<= 0.51", "vector epsilon": "300"} for data in NAMES},
}
TOLD_OF_BOTH: Mapping[str, Value] = {
    "identical": "91-93%",
    "jumps": "8-9%",
    "mean AUC": 0.54,
    "above 0.8": "8%",
    "own AUC": 1.0,
    f"own AUC @{LOW}": 0.93,
}
COLUMNS = (
    Column("data"),
    Column("method"),
    Column("pairs", "d"),
    Column("entries, mean", ".0f"),
    Column("identical", ".1%"),
    Column("paper's identical"),
    Column("jumps", ".1%"),
    Column("paper's jumps"),
    Column("same answer without noise", ".1%"),
    Column("largest own move", ".1f"),
    Column("paper's own", ".1f"),
    Column("largest L-infinity", ".2f"),
    Column("paper's L-infinity"),
    Column("mean L2", ".2f"),
    Column("largest L2", ".1f"),
    Column("paper's L2", ".1f"),
    Column("vector epsilon", ".0f"),
    Column("paper's vector epsilon"),
    Column("true epsilon", ".0f"),
    Column("mean AUC, shared entries"),
    Column("mean AUC, own entry"),
    Column("mean AUC, vector"),
    Column("paper's mean AUC", ".2f"),
    Column("largest AUC, shared entries"),
    Column("largest AUC, own entry"),
    Column("paper's own AUC", ".2f"),
    Column("largest AUC, vector"),
    Column("above 0.8, shared entries", ".1%"),
    Column("above 0.8, own entry", ".1%"),
    Column("above 0.8, vector", ".1%"),
    Column("paper's above 0.8"),
    Column(f"mean AUC, shared entries @{LOW}", shown=False),
    Column(f"mean AUC, own entry @{LOW}", shown=False),
    Column(f"mean AUC, vector @{LOW}"),
    Column(f"largest AUC, shared entries @{LOW}"),
    Column(f"largest AUC, own entry @{LOW}"),
    Column(f"paper's own AUC @{LOW}", ".2f"),
    Column(f"largest AUC, vector @{LOW}"),
    *(Column(f"above 0.8, {part} @{LOW}", ".1%", shown=False) for part in ("shared entries", "own entry", "vector")),
)
BRIEF = ("data", "method", "pairs", "identical", "jumps", "largest L2", "vector epsilon", "largest AUC, vector")


def page(study: Study) -> Page:
    """The deployed heuristic, its remedies, and row zero."""
    measured = study.measure(PostMortem(data, variant) for data in NAMES for variant in VARIANTS)
    found = {(work.data, work.variant): records for work, records in measured.items()}
    still = np.zeros(len(found["cora", SCRATCH]), MOVED)
    still["same"] = still["same_answer"] = True
    facts = {(data, method): _facts(found.get((data, method), still)) for data in NAMES for method in METHODS}
    rows = [
        [{"data": data, "method": method, **numbers, **_told(data, method)}.get(column.name) for column in COLUMNS]
        for (data, method), numbers in facts.items()
    ]
    words = (
        "Two panels: how far the vector of mask logits moves for every pair of neighbouring graphs, by variant, with "
        "the assumed 1 as a dashed line; and the largest AUC against the valid rate for each placement of the noise"
    )
    picture = Picture(words, partial(draw_post_mortem, found, leakage.points(study), JUMP))
    about = _about(study, facts)
    return Page("Post-mortem of the heuristic", about, COLUMNS, rows, (picture,), BRIEF)


def _facts(found: Records) -> Facts:
    furthest = float(found["distance"].max())
    facts: Facts = {
        "pairs": len(found),
        "entries, mean": float(found["entries"].mean()) or None,
        "identical": float(found["same"].mean()),
        "jumps": float(found["jumped"].mean()),
        "same answer without noise": float(found["same_answer"].mean()),
        "largest own move": float(found["own"].max()),
        "largest L-infinity": float(found["largest"].max()),
        "mean L2": float(found["distance"].mean()),
        "largest L2": furthest,
        "vector epsilon": EPSILON * furthest,
        "true epsilon": _true_epsilon(furthest),
    }
    parts = {
        "shared entries": found["distance"],
        "own entry": found["own"],
        "vector": np.hypot(found["distance"], found["own"]),
    }
    for price, mark in ((EPSILON, ""), (LOW, f" @{LOW}")):
        for part, moves in parts.items():
            auc = gaussian_auc(moves, DEVIATION * EPSILON / price)
            facts[f"mean AUC, {part}{mark}"] = float(auc.mean())
            facts[f"largest AUC, {part}{mark}"] = float(auc.max())
            facts[f"above 0.8, {part}{mark}"] = float((auc > CLEAR).mean())
    return facts


def _told(data: str, method: str) -> Facts:
    both = TOLD_OF_BOTH if method == SCRATCH else {}
    return {f"paper's {name}": value for name, value in {**both, **TOLD.get((data, method), {})}.items()}


def _true_epsilon(distance: float) -> float:
    """What the Gaussian noise really guarantees between two vectors that far apart."""
    return float(dp_accounting.get_epsilon_gaussian(DEVIATION / distance, DELTA)) if distance else 0.0


def _about(study: Study, facts: Mapping[tuple[str, str], Facts]) -> str:
    return (
        f"Cora and CiteSeer, {seeds_of(study)}, {GRAPHS} test nodes for each seed by a public draw; for every one the "
        "graph without one private pair within two steps of it, drawn by chance. PrivCF-out releases CF-GNNExplainer's "
        "final mask logits, an entry for each such pair and for each feature of the target, with noise as if an entry "
        f"moved by at most {JUMP:.0f} (epsilon {EPSILON}, delta {DELTA:.0e}). Shared entries are those of both "
        "graphs, without the pair's own; L2 and L-infinity are over them. Identical: none moves by more than 1e-6; "
        f"jump: one moves by more than {JUMP:.0f}. The pair's own entry exists on one side; on the other its untouched "
        "start stands for it: 1, or with a warm start what was found on the graph. Edges alone: entries of features "
        "stay at 1, pairs follow plain descent. Warm start: the neighbour's search starts where the graph's ended. "
        "The penalties add to the loss, on both graphs and from scratch, the squared norm of its gradient in the soft "
        "masks, or its squared change when another pair of the target, drawn at each step, is dropped; weight "
        f"{WEIGHT} each, the kindest of 0.1, 1 and 10 on a slice. "
        "AUC is that of the likelihood-ratio attack on two Gaussians, exactly; the vector is the shared entries and "
        f"the own one. Vector epsilon is {EPSILON} times the largest L2, which is how the paper's figures come about "
        "(104.6 x 7.2 = 753, 35.5 x 7.2 = 256). It is too small: the loss of Gaussian noise grows with the square of "
        f"the distance; true epsilon is what the noise guarantees between those two vectors at delta {DELTA:.0e}. "
        f"{_findings(facts)} "
        "No attack is needed, though: the length of the vector and the names of its entries are private too. An entry "
        "exists if and only if its pair does, which tells the removed pair with AUC 1 in every row but row zero. What "
        "the comparison takes from the vector, the elements below zero, is no better: to name a pair proves it. A "
        "guess from public data does not move: AUC 0.5. The right panel's numbers are on the page leakage."
    )


def _findings(facts: Mapping[tuple[str, str], Facts]) -> str:
    """What agrees with the paper and what does not."""

    def both(method: str, name: str, form: str) -> str:
        return " / ".join(Column(name, form).text(facts[data, method][name]) for data in NAMES)

    remedies = [f"{name} {both(name, 'jumps', '.0%')}" for name in PENALTIES]
    whole = EPSILON * 0.51 * sqrt(5278 + 1433)
    return (
        f"As deployed, {both(SCRATCH, 'identical', '.1%')} of the vectors stay identical (Cora / CiteSeer): a pair "
        "less changes degrees and with them every gradient, and Adam's steps do not shrink with the gradient. The own "
        "entry moves nearly always, since Adam pushes every entry at one pace until the prediction flips: its mean AUC "
        f"is {both(SCRATCH, 'mean AUC, own entry', '.2f')}, so the average pair leaks, not the worst alone. Two of our "
        "rows come near the paper's average figures. With a warm start, a target whose masks flip the neighbour too "
        f"has no loss left and stays: {both(WARM, 'identical', '.1%')} identical, {both(WARM, 'jumps', '.1%')} jumps, "
        f"mean AUC {both(WARM, 'mean AUC, vector', '.2f')}, {both(WARM, 'above 0.8, vector', '.1%')} above 0.8. With "
        "edges alone, the arm that the paper's tables fit elsewhere, few vectors are identical, but "
        f"{both(EDGES, 'same answer without noise', '.1%')} of the answers are, and {both(EDGES, 'jumps', '.1%')} "
        f"jump; its mean AUC is {both(EDGES, 'mean AUC, vector', '.2f')}. The paper's bound "
        f"of 0.51 for warm starts does not hold here; its 300 equals 7.2 x 0.51 x the root of 5278 + 1433 "
        f"({whole:.0f}), which would mean an entry for every pair and every feature of Cora. Its 0.93 at epsilon "
        "1.5 belongs to a move of 6.7, not to its 10.3. "
        f"From scratch {both(SCRATCH, 'jumps', '.0%')} jump, with a penalty as many ({', '.join(remedies)}): "
        "as in the paper, neither closes the gap."
    )
