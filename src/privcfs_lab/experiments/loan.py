"""A real case with named features: clients whose loan is refused, and what they can change about themselves."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.contracts import Pure
from privcfs.gate.method import GUIDED_RECOURSE, Method, constraints_of
from privcfs.gate.public_guess import public_guess, snapshot_guess
from privcfs.gate.questions.advice import Personal
from privcfs.gate.questions.question import PublicSide
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.reader import Reader
from privcfs.private.utilities.gated import Gated
from privcfs.public.assumptions import SIMULATED
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs.public.schema.of_node import encoded_changes
from privcfs_lab.datasets import german_credit
from privcfs_lab.datasets.german_credit import GRANTED
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.figures.page import Column, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work

Floats = NDArray[np.float64]
PRICE = Fraction(1)
FIELDS = (
    *("already", "flippable", "zero", "zero confidence", "snapshot guess", "advice", "advice confidence"),
    *("cost", "cheapest", "changes", "released", "expected", "obeyed", "alternatives", "near before", "near after"),
)
RECORD = np.dtype([(name, np.float64) for name in FIELDS])
ABOUT = (
    "German credit: clients of the test split whom the public model refuses on the public snapshot, which shows half "
    "of the pairs; the model is trained on the snapshot. At most three changes that the schema permits, towards a "
    "granted loan. The pairs were made from attributes by those who published them: an illustration of a secret, and "
    "none. The schema's costs and limits are judgements of ours. `granted already` is the share whose loan is granted "
    "on the private graph without any change; `flips at all` is the share of the others for whom some candidate of "
    "the list flips the decision there. All columns to the right are about those for whom one does. `row zero` is the "
    "public guess, from public data alone; the snapshot guess is version 0.1's. Advice reads the client's own pairs "
    "and costs no epsilon; `@1` is the probability that a release at epsilon 1 is valid; `obeyed` is the probability "
    "that it keeps to the constraints. The cost ratio is the cost of valid advice over that of the cheapest valid "
    "candidate, which only hindsight knows; a mean of ratios. `near` is the distance of a client's encoded features "
    "to the nearest client whose loan was granted, before and after the advised change. Every client counts once for "
    "each seed. DiCE is not compared: its package is not part of the laboratory."
)


@final
@dataclass(frozen=True, slots=True)
class Loan(Work):
    """What each refused client gets by changes of features; nobody is told to change whom she resembles."""

    data: str = "german-credit"
    trained_on: TrainedOn = "snapshot"

    @property
    def method(self) -> Method:
        """Towards a granted loan."""
        rule = Recourse(pairs=False).restricted(Restriction(desired=GRANTED))
        return replace(GUIDED_RECOURSE, candidates=rule, utility=Gated().towards(GRANTED))

    def records(self, world: Simulation, most: int | None) -> Records:
        shown, data = world.snapshot(HALF), world.data
        schema = german_credit.schema()
        context = PublicContext(data.features, shown, world.model, assumptions=SIMULATED, schema=schema)
        decided = world.model.logits(data.features, shown).argmax(axis=1)
        refused = [int(node) for node in data.split.test if decided[node] != GRANTED][:most]
        return np.concatenate([_record(world, context, self.method, node) for node in refused])


def _record(world: Simulation, context: PublicContext, method: Method, node: int) -> Records:
    record = np.zeros(1, RECORD)
    candidates = method.candidates.propose(context, node)
    outcomes = evaluate(world.graph, context, candidates, UNLIMITED)
    valid = method.utility.valid(outcomes)
    record["already"], record["flippable"] = outcomes.original() == GRANTED, valid.any()
    if not valid.any():
        return record
    guess = public_guess(context, candidates, method)
    record["zero"], record["zero confidence"] = valid[guess.position], guess.confidence
    record["snapshot guess"] = valid[snapshot_guess(context, candidates)]
    prepared = method.prepare(context, candidates, PRICE)
    law = prepared.mechanism.probabilities(method.utility.score(outcomes), PRICE)
    record["released"], record["expected"] = law @ valid, prepared.expected
    constraints = constraints_of(method, context)
    record["obeyed"] = sum(
        law[place] for place in np.flatnonzero(law > 0) if not constraints.faults(node, candidates[int(place)])
    )
    _add_advice(record, world, context, method, node)
    return record


def _add_advice(record: Records, world: Simulation, context: PublicContext, method: Method, node: int) -> None:
    """What the client herself is told, for no epsilon."""
    side = PublicSide(context, method, Pure(), Fraction(1, 100))
    personal = Personal(side, node, Reader(world.graph, context, UNLIMITED, (node,)))
    best, *others = personal.best(3)
    costs = method.rehearsal.costs.of(personal.candidates)
    valid = method.utility.valid(evaluate(world.graph, context, personal.candidates, UNLIMITED))
    chosen = list(personal.candidates).index(best.intervention)
    record["advice"], record["advice confidence"] = valid[chosen], best.confidence
    record["cost"], record["cheapest"] = costs[chosen], costs[valid].min() if valid.any() else np.nan
    record["changes"], record["alternatives"] = best.intervention.size, len(others)
    granted = context.features[np.flatnonzero(world.data.labels == GRANTED)].toarray().astype(np.float64)
    rows = (context.features[[node]].toarray()[0], _row_after(context, node, best.intervention))
    for name, row in zip(("near before", "near after"), rows, strict=True):
        record[name] = np.sqrt(np.square(granted - row).sum(axis=1).min())


def _row_after(context: PublicContext, node: int, intervention: Intervention) -> Floats:
    row: Floats = context.features[[node]].toarray()[0].astype(np.float64)
    for one in encoded_changes(context, node, intervention.change):
        row[list(one.columns)] = one.values
    return row


def page(study: Study) -> Page:
    """One row for all clients of all seeds."""
    study.at_hand(("german-credit",))
    found = study.measure([Loan()])
    columns = (
        Column("data"),
        Column("refused clients", "d"),
        *(Column(name) for name in ("granted already", "flips at all", "row zero", "row zero's confidence")),
        *(Column(name) for name in ("snapshot guess", "advice", "advice's confidence", "@1", "expected @1", "obeyed")),
        *(Column(name, ".2f") for name in ("changes", "cost", "cost ratio", "alternatives")),
        *(Column(name, ".2f") for name in ("near before", "near after")),
    )
    rows = [_row(work.data, records) for work, records in found.items()]
    return Page("Advice about a loan", f"{seeds_of(study).capitalize()}. {ABOUT}", columns, rows)


def _row(name: str, records: Records) -> list[Value]:
    open_to = records[records["already"] == 0]
    some = open_to[open_to["flippable"] > 0]
    advised = some[some["advice"] > 0]

    def mean(field: str) -> float:
        return float(some[field].mean())

    return [
        name,
        len(records),
        float(records["already"].mean()),
        float(open_to["flippable"].mean()),
        *(mean(one) for one in ("zero", "zero confidence", "snapshot guess", "advice", "advice confidence")),
        *(mean(one) for one in ("released", "expected", "obeyed", "changes", "cost")),
        float((advised["cost"] / advised["cheapest"]).mean()),
        *(mean(one) for one in ("alternatives", "near before", "near after")),
    ]
