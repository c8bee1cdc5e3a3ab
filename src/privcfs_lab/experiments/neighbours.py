"""The newest neighbours beside the paper's list: what each method protects or certifies, and what it achieves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from privcfs.embedded import NAMES
from privcfs.gate.public_guess import snapshot_guess
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs_lab.baselines import BASELINES, ROBUST
from privcfs_lab.baselines.baseline import Problem, predictions
from privcfs_lab.baselines.greedy import touching
from privcfs_lab.experiments.cells import ARMS, EDGES, seeds_of
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.figures.style import NAMES as LABELS
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.quality import release_law
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.measuring.targets import POPULATIONS

ZERO, OURS = "row zero: public guess", "ours, epsilon 8"
RECORD = np.dtype(
    [
        ("target", np.int64),
        ("valid", np.float64),  # the answer flips the decision on the true graph
        ("stands", np.float64),  # ... also after any one other pair nearby is deleted
        ("size", np.float64),
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Standing(Work):
    """Whether the answers of one method flip the decision, and stand one further deletion; in exact expectation."""

    data: str
    method: str
    population: str = "borderline"
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.method}, {self.data}"

    def records(self, world: Simulation, most: int | None) -> Records:
        targets = tuple(POPULATIONS[self.population](world)[:most])
        problem = Problem(world.data, world.model, targets, world.seed, world.snapshot(HALF))
        context, before = problem.context(), predictions(problem)
        records = np.zeros(len(targets), RECORD)
        for row, target, answers in zip(records, targets, _answers(self.method, world, problem), strict=True):
            row["target"] = target
            for chance, answer in answers:
                valid, stands = judged(world.graph, context, target, answer, int(before[target]))
                row["valid"] += chance * valid
                row["stands"] += chance * stands
                row["size"] += chance * answer.size
        return records


def _answers(method: str, world: Simulation, problem: Problem) -> list[list[tuple[float, Intervention]]]:
    """What a method may answer about each target, with probabilities."""
    if method in REBUILT:
        draws = REBUILT[method].draws
        asked = Problem(
            problem.data,
            problem.model,
            tuple(target for target in problem.targets for _ in range(draws)),
            problem.seed,
            problem.snapshot,
        )
        found = [one.intervention for one in REBUILT[method].explain(asked)]
        return [[(1 / draws, one) for one in found[at : at + draws]] for at in range(0, len(found), draws)]
    context, arm, answers = world.context(HALF), ARMS[EDGES], []
    for target in problem.targets:
        seen = inspect(world.graph, context, target, arm)
        if method == ZERO:
            answers.append([(1.0, seen.candidates[snapshot_guess(context, seen.candidates)])])
        else:
            law = release_law(seen, "8")
            answers.append([(float(chance), seen.candidates[number]) for number, chance in enumerate(law)])
    return answers


def judged(
    graph: PrivateGraph, context: PublicContext, target: int, answer: Intervention, before: int
) -> tuple[bool, bool]:
    """Whether an answer flips the decision, and also does so whichever other pair near the target is deleted too."""
    pairs = tuple(dict.fromkeys((*answer.delete, *touching(graph, target))))
    named = tuple(range(len(answer.delete)))
    sets = (named, *((*named, number) for number in range(len(named), len(pairs))))
    masks = tuple(range(len(answer.mask)))
    candidates = Candidates(target, Caps(99, 99), pairs, (), answer.mask, sets, (masks,))
    flips = evaluate(graph, context, candidates, UNLIMITED).logits.argmax(axis=0) != before
    return bool(flips[0]), bool(flips.all())


class Neighbour(NamedTuple):
    """One method: what it protects, what it certifies, whether it is rebuilt here, and how it is measured."""

    protects: str
    certifies: str
    rebuilt: str
    measured: str = ""  # its name in REBUILT, or one of ours


NOTHING = "nothing"
REBUILT = {**BASELINES, **ROBUST}
METHODS: Mapping[str, Neighbour] = {
    ZERO: Neighbour("every private edge", "the answer is the same on every private graph", "ours", ZERO),
    OURS: Neighbour(
        "every private edge, from whoever sees the answer",
        "its law moves by at most e^8 between any two graphs",
        "ours",
        OURS,
    ),
    "ours, advice": Neighbour(
        "other people's edges, from the person who asks", "the same on all graphs with her own edges", "page advice"
    ),
    "ours, a sketch": Neighbour(
        "each hidden pair, once for all questions",
        "its law moves by at most e^epsilon with one edge",
        "page population",
    ),
    "CF-GNNExplainer": Neighbour(NOTHING, NOTHING, "yes", "CF-GNNExplainer, edges"),
    "PNS": Neighbour(NOTHING, NOTHING, "yes", "PNS, edges"),
    "RCExplainer": Neighbour(NOTHING, NOTHING, "yes", "RCExplainer, edges"),
    "COMBINEX": Neighbour(NOTHING, NOTHING, "yes", "COMBINEX, edges"),
    "greedy search": Neighbour(NOTHING, NOTHING, "yes", "greedy search, edges"),
    "RoboGExp (2404.19519)": Neighbour(
        "the explanation, from changes of the graph",
        "it stays counterfactual, and the witness factual, under k changed pairs",
        "in part: one deletion nearby, checked one by one",
        "RoboGExp, one deletion",
    ),
    "XGNNCert (2502.04224)": Neighbour(
        "the explanation, from changes of the graph",
        "most explaining edges stay, and the vote of its own classifier, under a bounded number of changed pairs",
        "no: it votes over parts of the complete graph on all nodes, which suits graphs of tens of nodes, and replaces "
        "the model that is explained; its edges explain, and flip nothing",
    ),
    "DiCE": Neighbour(
        NOTHING, NOTHING, "on the page loan, as a package: it changes rows of a table and knows no edges"
    ),
    "CARLA's recourse": Neighbour(NOTHING, NOTHING, "no: methods for tables, and packages of another generation"),
    "PCR (2410.13812)": Neighbour(
        "the row of the person who asks, from the database",
        "the database learns nothing of her row, in the sense of information theory",
        "no: it retrieves rows of a table, and the private thing is the question, not the data",
    ),
    "functional mechanism (2022)": Neighbour(
        "rows of training data", "epsilon-DP of class prototypes for one row", "no: for tables"
    ),
    "NaiveDP, LapDP": Neighbour(
        "each pair, once for all questions", "one edge, at the quoted price", "page compare-full"
    ),
    "RR-LDP": Neighbour("each pair, once for all questions", "one edge, at 7.2", "yes", "RR-LDP, edges"),
    "DP-SGD backbone": Neighbour(
        "labels of training nodes", "one training node's loss, no edge", "yes", "DP-SGD backbone, edges"
    ),
    "GAP backbone": Neighbour("each edge, once for all questions", "one edge, at (7.2, 1e-5)", "page compare-full"),
    "PrivCF-out": Neighbour(
        "the numbers of an answer", "nothing: one entry of a longer vector", "yes", "PrivCF-out (heuristic), edges"
    ),
    "PrivCF-SGD": Neighbour("every private edge", "any two graphs, at (7.16, 1e-5)", "yes", "PrivCF-SGD, edges"),
}
COLUMNS = (
    Column("method"),
    Column("protects"),
    Column("certifies"),
    Column("rebuilt here"),
    *(Column(f"{what}, {name}") for name in NAMES for what in ("valid", "stands a deletion")),
    Column("size", ".2f"),
)


def page(study: Study) -> Page:
    """One row for each method, measured where it is rebuilt."""
    works = {
        (name, data): Standing(data, one.measured) for name, one in METHODS.items() if one.measured for data in NAMES
    }
    found = study.measure(works.values())
    rows: list[list[Value]] = []
    for name, one in METHODS.items():
        told: list[Value] = [name, one.protects, one.certifies, one.rebuilt]
        records = [found[works[name, data]] for data in NAMES] if one.measured else []
        for mine in records:
            told += [estimate(mine["valid"]), estimate(mine["stands"])]
        size = float(np.concatenate([mine["size"] for mine in records]).mean()) if records else None
        rows.append([*told, *([] if records else [None] * 2 * len(NAMES)), size])
    about = (
        f"Borderline targets of {' and '.join(LABELS[name] for name in NAMES)}, {seeds_of(study)}, half of the edges "
        "disclosed; all methods delete pairs and do nothing else. `valid` is the share of targets whose decision the "
        "answer flips on the true graph, ± standard error; `stands a deletion` the share where it also does so after "
        "any one other pair at the target or at a neighbour is deleted, whichever that is. Ours is in exact "
        "expectation over the release, with the proven range; row zero is the public guess, the candidate of lowest "
        "margin on the snapshot. Robustness and privacy are two things: a robust explanation stays right when the "
        "graph changes, and may tell every pair of it; a private one tells little about the graph, and may be wrong on "
        "another. RoboGExp is rebuilt for one deletion and a GCN: the paper's check of several changes needs a model "
        "of personalised PageRank. What is not rebuilt is described from its paper. The attacks of PrivX (2605.03388) "
        "and ReconXF (2506.02134) are on the page audit-attacks."
    )
    return Page("What neighbouring methods protect and certify", about, COLUMNS, rows, brief=BRIEF)


BRIEF = ("method", *(f"{what}, {name}" for name in NAMES for what in ("valid", "stands a deletion")))
