"""Beyond the paper: whether the confidence that is printed on a release is right."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.method import GUIDED
from privcfs.gate.public_guess import public_guess
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.public.context import PublicContext
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.figures.confidence import draw_reliability
from privcfs_lab.figures.page import Column, Page, Picture, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.study import Study, Work
from privcfs_lab.measuring.targets import POPULATIONS

Floats = NDArray[np.float64]
DATA = ("cora", "citeseer", "pubmed", "coauthor-cs", "facebook")
HALF, PRICE, BINS = 0.5, Fraction(1), 10
FORECASTS = 200  # of a perfect forecaster
RECORD = np.dtype([(name, np.float64) for name in ("confidence", "valid", "weight", "zero")])
ASKED_ERROR, ASKED_BRIER = 0.05, 0.75
ABOUT = (
    "Releases at epsilon 1, at most two changes, half of the edges disclosed, up to 1,000 test nodes a seed. Each "
    "candidate that may be drawn counts with its probability on the private graph. The expected calibration error is "
    "the mean distance between confidence and valid rate in ten bins of equal mass; a perfect forecaster, whose "
    "confidences are right by construction, has the error beside it, because bins are finite. The Brier score is the "
    "mean squared error; the constant's is that of always saying the mean valid rate. Row zero is the public guess: "
    "its confidence costs nothing. All confidences are computed from public data alone, and calibrated on the "
    "snapshot, of which a part was hidden; what the snapshot hides may be harder to predict than what was hidden in it."
    " How graphs are imagined and confidences calibrated was chosen by looking at such errors on these data sets, last "
    "on seeds 3 to 5 alone."
)


@final
@dataclass(frozen=True, slots=True)
class Confident(Work):
    """Confidence and validity of everything that a release may be."""

    data: str
    trained_on: TrainedOn = "all edges"

    def records(self, world: Simulation, most: int | None) -> Records:
        context = world.context(HALF)
        targets = POPULATIONS["everyone"](world)[:most]
        return np.concatenate([_record(world, context, target) for target in targets])


def _record(world: Simulation, context: PublicContext, target: int) -> Records:
    candidates = GUIDED.candidates.propose(context, target)
    outcomes = evaluate(world.graph, context, candidates, UNLIMITED)
    prepared = GUIDED.prepare(context, candidates, PRICE)
    law = prepared.mechanism.probabilities(GUIDED.utility.score(outcomes), PRICE)
    drawn = np.flatnonzero(law > 0)
    record = np.zeros(len(drawn), RECORD)
    record["confidence"] = np.array(prepared.confidences)[drawn]
    record["valid"], record["weight"] = outcomes.flips()[drawn], law[drawn]
    record["zero"] = outcomes.flips()[public_guess(context, candidates, GUIDED).position]
    return record


def page(study: Study) -> Page:
    """One row for each data set, and a reliability diagram."""
    works = [Confident(name) for name in study.at_hand(DATA)]
    found = {work.data: records for work, records in study.measure(works).items()}
    columns = (
        Column("data"),
        Column("targets", "d"),
        *(Column(name) for name in ("row zero", "mean confidence", "valid", "calibration error", "perfect forecaster")),
        *(Column(name) for name in ("Brier score", "constant's Brier score", "Brier ratio")),
        Column("asked"),
    )
    rows = [_row(name, records) for name, records in found.items()]
    words = "Valid rate against confidence in ten bins of equal mass, one panel per data set, with the diagonal"
    picture = Picture(words, partial(draw_reliability, {name: reliability(one) for name, one in found.items()}))
    return Page("How sure a release may be", f"{seeds_of(study).capitalize()}. {ABOUT}", columns, rows, (picture,))


def _row(name: str, found: Records) -> list[Value]:
    weight = found["weight"]
    fields = ("valid", "confidence", "zero")
    valid, confidence, zero = (float(np.average(found[field], weights=weight)) for field in fields)
    error, perfect = calibration_error(found), _perfect(found)
    brier = float(np.average(np.square(found["confidence"] - found["valid"]), weights=weight))
    constant = valid * (1 - valid)
    missed = [f"error {ASKED_ERROR}"] if error > ASKED_ERROR else []
    missed += [f"Brier ratio {ASKED_BRIER}"] if brier > ASKED_BRIER * constant else []
    asked = "met" if not missed else "missed: " + ", ".join(missed)
    return [
        name,
        round(weight.sum()),
        zero,
        confidence,
        valid,
        error,
        perfect,
        brier,
        constant,
        brier / constant,
        asked,
    ]


def reliability(found: Records) -> tuple[Floats, Floats]:
    """Mean confidence and valid rate in bins of equal mass."""
    order = np.argsort(found["confidence"], kind="stable")
    mass = np.cumsum(found["weight"][order]) / found["weight"].sum()
    bins = np.minimum((mass * BINS).astype(np.int64), BINS - 1)
    totals = np.bincount(bins, found["weight"][order], BINS)
    confidence, valid = (
        np.bincount(bins, found["weight"][order] * found[name][order], BINS) / totals
        for name in ("confidence", "valid")
    )
    return confidence, valid


def calibration_error(found: Records) -> float:
    """The mean distance between confidence and valid rate over bins of equal mass."""
    confidence, valid = reliability(found)
    return float(np.abs(confidence - valid).mean())


def _perfect(found: Records) -> float:
    """The calibration error of a forecaster whose confidences are right."""
    rng, copy = np.random.default_rng(0), found.copy()
    errors = []
    for _ in range(FORECASTS):
        copy["valid"] = rng.random(len(found)) < found["confidence"]
        errors.append(calibration_error(copy))
    return float(np.mean(errors))
