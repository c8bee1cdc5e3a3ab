"""A real case with named features: clients whose loan is refused, and what they can change about themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.contracts import Pure
from privcfs.gate.method import GUIDED_RECOURSE, Method, constraints_of
from privcfs.gate.public_guess import public_guess, snapshot_guess
from privcfs.gate.questions.advice import Personal
from privcfs.gate.questions.question import PublicSide
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.reader import Reader
from privcfs.private.utilities.gated import Gated
from privcfs.public.assumptions import SIMULATED
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs.public.schema.of_node import encoded_changes
from privcfs_lab.baselines import dice
from privcfs_lab.datasets import german_credit
from privcfs_lab.datasets.german_credit import GRANTED
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work

Floats = NDArray[np.float64]
PRICE = Fraction(1)
NUMBER = 3  # answers to one client: the best one and two alternatives
MOST = 3  # changes in one answer
ANSWERS: Mapping[str, str] = {
    "zero": "row zero, the public guess",
    "snapshot": "the snapshot guess",
    "advice": "advice at price 0",
    "release": "a release at epsilon 1",
    "dice": "DiCE, not private",
}
FIELDS = ("answered", "valid", "obeyed", "size", "few", "cost", "cheapest", "near", "number", "apart", "confidence")
ANSWER = np.dtype([(name, np.float64) for name in FIELDS])
CLIENT = [(name, np.float64) for name in ("already", "flippable", "near")]
RECORD = np.dtype([*CLIENT, *((name, ANSWER) for name in ANSWERS)])
LEAST_VALID, MOST_RATIO = 0.90, 1.3  # asked of advice
ABOUT = (
    "German credit: clients of the test split whom the public model refuses on the public snapshot, which shows "
    "half of the pairs; the model is trained on the snapshot. At most three changes that the schema permits, "
    "towards a granted loan: of features alone, or of features and of pairs. The pairs were made from attributes by "
    "those who published them: an illustration of a secret, and none. The schema's costs and limits are judgements "
    "of ours. {counts}. All rows are about those for whom some candidate of the list grants the loan on the private "
    "graph, so that confidences there are lower than what comes true; every client counts once for each seed. Row "
    "zero is the public guess, from public data alone; the snapshot guess is version 0.1's. Advice reads the "
    "client's own pairs and costs no epsilon. Of a release, everything is the exact expectation over what may be "
    "drawn. DiCE is its authors' package with its random search, within the same ranges; it reads all pairs and all "
    "answers of the model, so it is not private, changes features alone, and cannot be told the rule between "
    "features or a cap on changes. `valid` is the share of clients whose first answer grants the loan on the "
    "private graph; `obeys` is the share of answers that keep to the constraints, and `at most 3` of those with at "
    "most three changes. `cost ratio` is the cost of a valid answer over that of the cheapest valid candidate, "
    "which only hindsight knows: the mean of ratios over valid answers. `near` is the distance of the client's "
    "encoded features, after the change, to the nearest other client whose loan was granted ({before:.2f} before "
    "it). `answers` is how many different answers a client gets, of three, and `apart` their mean distance from "
    "each other. That candidates within 95 % of the highest probability are nearly equally sure was chosen on "
    "clients of the training and validation splits; all else that beliefs rest on is learned from the snapshot. "
    "What a change moves the decision by is believed to within some hundredths of a logit, but where the decision "
    "stands without it depends on pairs of other people that nobody who asks may know; so a cheap change, which "
    "moves the decision just far enough, is seldom a sure one. That is why the cost ratio of advice misses its bar."
)


@final
@dataclass(frozen=True, slots=True)
class Loan(Work):
    """What each refused client gets; with `pairs`, her pairs may change too. `clients` are of the test split or not."""

    data: str = "german-credit"
    trained_on: TrainedOn = "snapshot"
    pairs: bool = False
    clients: Literal["test", "others"] = "test"

    @property
    def method(self) -> Method:
        """Towards a granted loan."""
        rule = Recourse(most=MOST, pairs=self.pairs).restricted(Restriction(desired=GRANTED))
        return replace(GUIDED_RECOURSE, candidates=rule, utility=Gated().towards(GRANTED))

    @property
    def title(self) -> str:
        return f"{self.data}, {'features and pairs' if self.pairs else 'features'}"

    def records(self, world: Simulation, most: int | None) -> Records:
        shown, split = world.snapshot(HALF), world.data.split
        schema = german_credit.schema()
        context = PublicContext(world.data.features, shown, world.model, assumptions=SIMULATED, schema=schema)
        decided = world.model.logits(world.data.features, shown).argmax(axis=1)
        clients = split.test if self.clients == "test" else np.concatenate([split.train, split.validation])
        refused = [int(node) for node in clients if decided[node] != GRANTED][:most]
        return np.concatenate([Case(world, context, self.method, node).record() for node in refused])


@final
@dataclass(frozen=True)
class Case:
    """One refused client, with everything that is needed to judge answers."""

    world: Simulation
    context: PublicContext
    method: Method
    node: int

    def record(self) -> Records:
        """Everything about her."""
        record = np.zeros(1, RECORD)
        record["already"], record["flippable"] = self._already, self._valid.any()
        if self._already:
            return record
        record["near"] = self._near(Intervention())
        self._add_guesses(record)
        self._add_release(record)
        self._add_advice(record)
        if dice.is_installed() and self._valid.any() and not self.method.candidates.caps.pairs:
            question = dice.Question(self.context, self.world.data.pairs, self.node, GRANTED, self.node)
            answers = dice.alternatives(question, NUMBER)
            valid = [self._grants(one) for one in answers]
            record["dice"] = self._judged({answers[0]: 1.0} if answers else {}, valid[:1], self._cheapest, answers)
            record["dice"]["confidence"] = np.nan
        return record

    @cached_property
    def _candidates(self) -> Candidates:
        return self.method.candidates.propose(self.context, self.node)

    @cached_property
    def _outcomes(self) -> Outcomes:
        return evaluate(self.world.graph, self.context, self._candidates, UNLIMITED)

    @property
    def _already(self) -> bool:
        return bool(self._outcomes.original() == GRANTED)

    @cached_property
    def _valid(self) -> NDArray[np.bool_]:
        return self.method.utility.valid(self._outcomes)

    @cached_property
    def _cheapest(self) -> float:
        """What the cheapest valid candidate costs."""
        costs = self.method.rehearsal.costs.of(self._candidates)
        return float(costs[self._valid].min()) if self._valid.any() else float("nan")

    def _add_guesses(self, record: Records) -> None:
        guess = public_guess(self.context, self._candidates, self.method)
        places = {"zero": guess.position, "snapshot": snapshot_guess(self.context, self._candidates)}
        for name, place in places.items():
            answer = self._candidates[place]
            record[name] = self._judged({answer: 1.0}, [self._valid[place]], self._cheapest, [answer])
        record["zero"]["confidence"], record["snapshot"]["confidence"] = guess.confidence, np.nan

    def _add_release(self, record: Records) -> None:
        prepared = self.method.prepare(self.context, self._candidates, PRICE)
        law = prepared.mechanism.probabilities(self.method.utility.score(self._outcomes), PRICE)
        (drawn,) = np.nonzero(law > 0)
        answers = {self._candidates[place]: float(law[place]) for place in drawn.tolist()}
        record["release"] = self._judged(answers, self._valid[drawn], self._cheapest, list(answers)[:1])
        record["release"]["confidence"] = prepared.expected

    def _add_advice(self, record: Records) -> None:
        """What the client herself is told, for no epsilon."""
        side = PublicSide(self.context, self.method, Pure(), Fraction(1, 100))
        personal = Personal(side, self.node, Reader(self.world.graph, self.context, UNLIMITED, (self.node,)))
        found, candidates = personal.best(NUMBER), personal.candidates
        valid = self.method.utility.valid(evaluate(self.world.graph, self.context, candidates, UNLIMITED))
        costs = self.method.rehearsal.costs.of(candidates)
        cheapest = float(costs[valid].min()) if valid.any() else np.nan
        best = found[0].intervention
        is_valid = [valid[list(candidates).index(best)]]
        record["advice"] = self._judged({best: 1.0}, is_valid, cheapest, [one.intervention for one in found])
        record["advice"]["confidence"] = found[0].confidence

    def _judged(
        self,
        chances: Mapping[Intervention, float],
        valid: Sequence[bool] | NDArray[np.bool_],
        cheapest: float,
        several: Sequence[Intervention],
    ) -> Records:
        """The mean of answers that come with some chances; `several` are all that the client is told."""
        found = np.zeros(1, ANSWER)
        constraints = constraints_of(self.method, self.context)
        weights = np.array(list(chances.values()))
        if not len(weights):
            return found
        costs = np.array([constraints.cost(self.node, one) for one in chances], np.float64)
        right = weights * np.array(valid, np.float64)
        found["answered"], found["valid"], found["cheapest"] = 1, right.sum(), cheapest
        found["obeyed"] = weights @ [not constraints.faults(self.node, one) for one in chances]
        found["size"] = weights @ [one.size for one in chances]
        found["few"] = weights @ [one.size <= MOST for one in chances]
        found["cost"] = right @ costs / right.sum() if right.sum() > 0 else np.nan
        found["near"] = weights @ [self._near(one) for one in chances]
        found["number"], found["apart"] = len(several), self._apart(several)
        return found

    def _row_after(self, intervention: Intervention) -> Floats:
        row: Floats = self.context.features[[self.node]].toarray()[0].astype(np.float64)
        for one in encoded_changes(self.context, self.node, intervention.change):
            row[list(one.columns)] = one.values
        return row

    def _near(self, intervention: Intervention) -> float:
        """The distance to the nearest other client whose loan was granted."""
        granted = np.flatnonzero(self.world.data.labels == GRANTED)
        others = self.context.features[granted[granted != self.node]].toarray().astype(np.float64)
        return float(np.sqrt(np.square(others - self._row_after(intervention)).sum(axis=1).min()))

    def _apart(self, answers: Sequence[Intervention]) -> float:
        """The mean distance between two answers; not a number for one alone."""
        rows = [self._row_after(one) for one in answers]
        apart = [np.linalg.norm(one - other) for place, one in enumerate(rows) for other in rows[:place]]
        return float(np.mean(apart)) if apart else float("nan")

    def _grants(self, intervention: Intervention) -> bool:
        """Whether changes of features grant the loan on the private graph."""
        row = self._row_after(intervention)[None].astype(np.float32)
        logits = self.context.model.responses(self.context.features, self.world.data.pairs, self.node, row)
        return bool(logits[0].argmax() == GRANTED)


def page(study: Study) -> Page:
    """One row for each way to an answer, with features alone and with pairs beside them."""
    study.at_hand(("german-credit",))
    found = study.measure([Loan(), Loan(pairs=True)])
    columns = (
        *(Column(name) for name in ("what may change", "answer")),
        Column("clients", "d"),
        *(Column(name) for name in ("valid", "confidence", "obeys", "at most 3")),
        *(Column(name, ".2f") for name in ("changes", "cost", "cost ratio", "near", "answers", "apart")),
        Column("asked"),
    )
    rows: list[list[Value]] = []
    for work, records in found.items():
        reached = records[(records["already"] == 0) & (records["flippable"] > 0)]
        for name in ANSWERS:
            if reached[name]["answered"].any():
                rows.append(_row("features and pairs" if work.pairs else "features", name, reached))
    counts = ". ".join(_counts(work, records) for work, records in found.items())
    reached = found[Loan()][found[Loan()]["flippable"] > 0]
    before = float(reached["near"][reached["already"] == 0].mean())
    about = ABOUT.format(counts=counts, before=before)
    return Page("Advice about a loan", f"{seeds_of(study).capitalize()}. {about}", columns, rows)


def _counts(work: Loan, records: Records) -> str:
    """How many clients a row is about, and why not all."""
    open_to = records[records["already"] == 0]
    what = "features and pairs" if work.pairs else "features alone"
    advice = open_to["advice"]
    return (
        f"By {what}: of {len(records)} refused clients, {records['already'].mean():.0%} are granted the loan on the "
        f"private graph without any change, and some candidate grants it to {open_to['flippable'].mean():.0%} of the "
        f"others; of all these others, advice is valid for {advice['valid'].mean():.1%}, and its mean confidence is "
        f"{advice['confidence'].mean():.1%}"
    )


def _row(what: str, name: str, reached: Records) -> list[Value]:
    records = reached[name]
    given, right = records[records["answered"] > 0], records[records["valid"] > 0]
    ratio = float((right["cost"] / right["cheapest"]).mean()) if len(right) else None
    confidence, apart = float(given["confidence"].mean()), given["apart"][~np.isnan(given["apart"])]
    return [
        what,
        ANSWERS[name],
        len(records),
        float(records["valid"].mean()),
        None if np.isnan(confidence) else confidence,
        *(float(given[field].mean()) for field in ("obeyed", "few", "size")),
        float(right["cost"].mean()) if len(right) else None,
        ratio,
        float(given["near"].mean()),
        None if name == "release" else float(records["number"].mean()),
        float(apart.mean()) if len(apart) else None,
        _asked(name, reached, ratio),
    ]


def _asked(name: str, reached: Records, ratio: float | None) -> str:
    """The bars, and what of them is missed."""
    valid, missed = float(reached[name]["valid"].mean()), []
    if name not in ("advice", "release"):
        return ""
    if reached[name]["obeyed"].min() < 1 - 1e-9:
        missed.append("every answer obeys")
    if name == "advice" and valid < LEAST_VALID:
        missed.append(f"valid {LEAST_VALID:.2f}")
    if name == "advice" and (ratio or 0) > MOST_RATIO:
        missed.append(f"cost ratio {MOST_RATIO}")
    if name == "release":
        guesses = max(float(reached[one]["valid"].mean()) for one in ("zero", "snapshot"))
        if valid <= guesses:
            missed.append(f"above the best public guess ({guesses:.3f})")
    return "met" if not missed else "missed: " + ", ".join(missed)
