"""The mechanism comparison: every system on the same targets, checked on the same true graph, with row zero beside."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from privcfs.embedded import NAMES
from privcfs_lab.baselines.baseline import ANY_GRAPHS
from privcfs_lab.baselines.comparison import CONTENDERS, OUTCOME, Accuracies, Compared
from privcfs_lab.experiments.cells import ARMS, EDGES, JOINT, ROW_ZERO, cell, seeds_of, verdict
from privcfs_lab.experiments.paper import COMPARED
from privcfs_lab.figures.page import MEAN, Column, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.study import Cell, Study
from privcfs_lab.measuring.summary import estimate, guesses

POPULATIONS = ("general", "borderline")
ZERO = {JOINT: "row zero: public guess", EDGES: "row zero: public guess, edges"}
# The rows of the paper's short table, ours as it is defined, and what bounds them on both sides.
SHORT = (
    *("CF-GNNExplainer", "greedy search", "RR-LDP", "DP-SGD backbone", "GAP backbone", "PrivCF-out (heuristic)"),
    *("PrivCF-SGD", "one coin a pair", "sequential", "ours, exponential, edges"),
    *("ours, exponential, edges, 0.7 disclosed", "ours, exponential", "ours, exponential, 0.7 disclosed"),
)
COLUMNS = (
    Column("data"),
    Column("population"),
    Column("method"),
    Column("noise at"),
    Column("operations"),
    Column("epsilon", ".2f"),
    Column("delta", ".0e"),
    Column("certified for"),
    Column("CSR"),
    Column("paper's CSR"),
    Column("verdict"),
    Column("names but does not flip", MEAN),
    Column("spurious", MEAN),
    Column("paper's spurious"),
    Column("pollution", MEAN),
    Column("paper's pollution"),
    Column("spurious that are polluted", ".0%"),
    Column("flips where it looked", MEAN),
    Column("size", ".2f"),
    Column("CSR of size <= 5", MEAN),
    Column("seconds", ".3f"),
)
BRIEF = ("data", "population", "method", "certified for", "CSR", "paper's CSR", "spurious", "pollution", "size")
READING = (
    "CSR: the answer flips the frozen model's prediction on the true graph; ± is the standard error over targets, "
    "pooled over seeds (the paper's ± is over seeds). Epsilon is the quoted price; certified for: the inputs between "
    "which the whole answer is bounded by it. A privatised graph, or a backbone with perturbed sums, answers every "
    "question for one price; explanation-level prices are for one answer. Where it looked: the method's own world, a "
    "noisy graph or model; spurious: it flips there and not on the true graph; pollution: the prediction there is "
    "another. Size counts deleted pairs and masked features. Ours is drawn with range 1, as the paper prints it, in "
    "the rows with edges alone, as are one coin a pair and sequential; with the proven range in the others. Seconds "
    "are of the run that measured the row, per target, one core, all targets of a seed together, with noise or "
    "training where the method needs them."
)


def full(study: Study) -> Page:
    """Every contender on both populations."""
    rows, measured = _rows(study, POPULATIONS, tuple(CONTENDERS))
    about = (
        f"Cora and CiteSeer, {seeds_of(study)}, half of the edges disclosed unless a row says otherwise. {READING} "
        f"{ROW_ZERO} {_notes(study, measured)}"
    )
    return Page("Mechanism comparison, all systems", about, COLUMNS, rows, brief=BRIEF)


def short(study: Study) -> Page:
    """The paper's table: borderline targets."""
    rows, _ = _rows(study, ("borderline",), SHORT)
    about = (
        f"Borderline targets of Cora and CiteSeer, {seeds_of(study)}, half of the edges disclosed unless a row says "
        f"otherwise. {READING} {ROW_ZERO} The page compare-full has all systems and both populations."
    )
    return Page("Mechanism comparison", about, COLUMNS, rows, brief=BRIEF)


def measure(study: Study, populations: Iterable[str], names: Iterable[str]) -> Mapping[Compared, Records]:
    """Contenders by data, population and name."""
    names = tuple(names)
    return study.measure(Compared(data, p, name) for data in NAMES for p in populations for name in names)


def row_zero(study: Study, populations: Iterable[str]) -> dict[Cell, Records]:
    """What is free, in the same form: the public guess at the mean size of a release."""
    found = study.measure(cell(data, p, 0.5, arm) for data in NAMES for p in populations for arm in ARMS)
    return {key: _as_outcome(records) for key, records in found.items()}


def _as_outcome(records: Records) -> Records:
    outcome = np.zeros(len(records), OUTCOME)
    outcome["seed"], outcome["target"] = records["seed"], records["target"]
    outcome["valid"] = outcome["small"] = guesses(records)
    outcome["size"], outcome["spurious"] = guesses(records, "guess_size"), guesses(records, "spurious")
    outcome["idle"] = np.where(outcome["size"] > 0, 1 - outcome["valid"], 0)
    outcome["polluted"] = records["polluted"]
    outcome["both"] = outcome["spurious"] * outcome["polluted"]
    outcome["believed"] = outcome["seconds"] = np.nan
    return outcome


def _rows(
    study: Study, populations: Sequence[str], names: Sequence[str]
) -> tuple[list[list[Value]], Mapping[Compared, Records]]:
    free, measured = row_zero(study, populations), measure(study, populations, names)
    rows: list[list[Value]] = []
    for data in NAMES:
        for population in populations:
            for arm, title in ZERO.items():
                what = "edges" if arm == EDGES else "edges and features"
                facts: list[Value] = [data, population, title, "-", what, 0.0, 0.0, ANY_GRAPHS]
                rows.append([*facts, *_numbers(free[cell(data, population, 0.5, arm)], None)])
            for name in names:
                contender, printed = CONTENDERS[name], COMPARED[population, data].get(name)
                promise = contender.certificate
                facts = [data, population, name, contender.placement, contender.operations.value]
                facts += [promise.epsilon, promise.delta if promise.epsilon is not None else None, promise.covers]
                rows.append([*facts, *_numbers(measured[Compared(data, population, name)], printed)])
    return rows, measured


def _numbers(found: Records, printed: tuple[float, float, float] | None) -> list[Value]:
    valid, spurious, polluted = printed or (None, None, None)
    csr, wrong = estimate(found["valid"]), float(found["spurious"].mean())
    both = float(found["both"].mean()) / wrong if wrong else None
    believed = None if np.isnan(found["believed"]).any() else estimate(found["believed"])
    seconds = None if np.isnan(found["seconds"]).any() else float(found["seconds"].mean())
    return [
        *(csr, valid, verdict(csr, valid), estimate(found["idle"]), estimate(found["spurious"]), spurious),
        *(estimate(found["polluted"]), polluted, both, believed),
        *(float(found["size"].mean()), estimate(found["small"]), seconds),
    ]


def _notes(study: Study, measured: Mapping[Compared, Records]) -> str:
    """What single rows need to be read rightly."""
    naive = CONTENDERS["NaiveDP, as printed"].certificate
    believed = " / ".join(
        f"{measured[Compared(data, 'general', 'DP-SGD backbone')]['believed'].mean():.3f}" for data in NAMES
    )
    return (
        "NaiveDP as printed uses the paper's formula, which is a theorem for epsilon up to 1 only; its deviation, "
        f"with one draw mirrored to both entries of a pair, really gives epsilon {naive.proven:.2f} for one edge; the "
        "calibrated row has the smallest deviation that gives the quoted price. On general targets our spurious rates "
        "of NaiveDP and LapDP are about two to three and a half times the paper's: a flip of so dense a graph deletes "
        "half of all pairs at the target and few of its features, and often leaves the true one as it was. DP-SGD's "
        "price covers one training node's loss, there or not, with all edges public, and no edge. The paper's CSR of "
        "that row is above one minus its spurious rate, so it must be the rate on the noisy model itself: ours is in "
        f"`flips where it looked` (general targets: {believed}). {_accuracies(study)} PrivCF-SGD is our definition "
        "(the paper has none), 20 draws a target. COMBINEX here only switches features off and keeps the lowest loss "
        "that leaves an edge. PrivCF-out quotes a price for one entry of a longer vector: page post-mortem."
    )


def _accuracies(study: Study) -> str:
    """How good the private models are: part of their pollution is their architecture, not the noise."""
    found = study.measure(Accuracies(data) for data in NAMES)
    words = [
        f"{work.data} {records['frozen'].mean():.3f}, {records['dp_sgd'].mean():.3f}, {records['gap'].mean():.3f} "
        f"({records['gap_without_noise'].mean():.3f} without noise)"
        for work, records in found.items()
    ]
    return f"Test accuracy of the frozen model, DP-SGD and the GAP backbone: {'; '.join(words)}."
