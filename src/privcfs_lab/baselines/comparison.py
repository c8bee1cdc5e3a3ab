"""Every contender measured alike: what it answers is checked on the true graph with the frozen model.

A contender is a compared method, or our own release in exact expectation. Row zero stands in the records of our own
cells (`lab/measure.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import final

import numpy as np

from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.method import Method
from privcfs.public.candidates import RULES
from privcfs.public.candidates.product import Product
from privcfs_lab.baselines import BASELINES
from privcfs_lab.baselines.baseline import (
    ANY_GRAPHS,
    Baseline,
    Certificate,
    Explanation,
    Operations,
    Problem,
    prediction_after,
    predictions,
)
from privcfs_lab.baselines.dp_sgd import DPSGD
from privcfs_lab.baselines.gap import train as train_gap
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Records, printed_range
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Work
from privcfs_lab.measuring.targets import POPULATIONS
from privcfs_lab.variants import LAWS

SMALL = 5  # the most elements of one of our own releases
OUTCOME = np.dtype(
    [
        ("seed", np.int64),
        ("target", np.int64),
        ("valid", np.float64),  # the answer flips the true graph's prediction
        ("small", np.float64),  # ... with at most five elements
        ("idle", np.float64),  # something is named, and it does not flip
        ("believed", np.float64),  # it flips where the method looked
        ("spurious", np.float64),  # it flips there and not on the true graph
        ("polluted", np.float64),  # the prediction there is not the true one
        ("both", np.float64),  # spurious, on a polluted target
        ("size", np.float64),
        ("seconds", np.float64),
    ]
)

ACCURACY = np.dtype([(name, np.float64) for name in ("frozen", "dp_sgd", "gap", "gap_without_noise")])


class Contender(ABC):
    """One row of the comparison."""

    __slots__ = ()

    @property
    @abstractmethod
    def placement(self) -> str:
        """Where the noise is."""

    @property
    @abstractmethod
    def operations(self) -> Operations:
        """What it may do to the graph."""

    @property
    @abstractmethod
    def certificate(self) -> Certificate:
        """What it promises."""

    @abstractmethod
    def outcomes(self, world: Simulation, targets: Sequence[int]) -> Records:
        """One record for each target."""


@final
@dataclass(frozen=True, slots=True)
class Explained(Contender):
    """A compared method."""

    method: Baseline

    @property
    def placement(self) -> str:
        return self.method.placement

    @property
    def operations(self) -> Operations:
        return self.method.operations

    @property
    def certificate(self) -> Certificate:
        return self.method.certificate

    def outcomes(self, world: Simulation, targets: Sequence[int]) -> Records:
        asked = tuple(target for target in targets for _ in range(self.method.draws))
        problem = Problem(world.data, world.model, asked, world.seed, world.snapshot(HALF))
        start = perf_counter()
        answers = self.method.explain(problem)
        seconds = (perf_counter() - start) / len(asked)
        before = predictions(problem)
        rows = np.array([_judged(problem, before[t], t, one) for t, one in zip(asked, answers, strict=True)])
        means = rows.reshape(len(targets), self.method.draws, -1).mean(axis=1)
        records = np.zeros(len(targets), OUTCOME)
        records["target"], records["seconds"] = targets, seconds
        for column, name in enumerate(JUDGED):
            records[name] = means[:, column]
        return records


JUDGED = ("valid", "small", "idle", "believed", "spurious", "polluted", "both", "size")


def _judged(problem: Problem, before: int, target: int, answer: Explanation) -> list[float]:
    """The fields of JUDGED for one answer."""
    size = answer.intervention.size
    valid = size > 0 and prediction_after(problem, target, answer.intervention) != before
    polluted, spurious = answer.prediction != before, answer.flips and not valid
    small, idle = valid and size <= SMALL, size > 0 and not valid
    return [float(x) for x in (valid, small, idle, answer.flips, spurious, polluted, spurious and polluted, size)]


@final
@dataclass(frozen=True, slots=True)
class Drawn(Contender):
    """Our own release, or a variant of its draw: exact expectations; its world is the true graph."""

    method: Method
    law: str = "one draw"
    epsilon: str = "8"
    disclosed: float = HALF
    printed: bool = False  # drawn with the range that the paper prints

    @property
    def placement(self) -> str:
        return "explanation"

    @property
    def operations(self) -> Operations:
        """By what the candidate list may hold."""
        return Operations.BOTH if self.method.candidates.caps.features else Operations.EDGES

    @property
    def certificate(self) -> Certificate:
        """Pure, for the whole graph."""
        return Certificate(float(self.epsilon), 0.0, ANY_GRAPHS)

    def outcomes(self, world: Simulation, targets: Sequence[int]) -> Records:
        context, graph = world.context(self.disclosed), world.graph
        records = np.zeros(len(targets), OUTCOME)
        for row, target in zip(records, targets, strict=True):
            start = perf_counter()
            found = inspect(graph, context, target, self.method)
            law = LAWS[self.law](found, self.epsilon, printed_range(self.method) if self.printed else None)
            row["seconds"] = perf_counter() - start
            sizes = found.candidates.sizes
            row["target"], row["valid"], row["size"] = target, law @ found.flips, law @ sizes
            row["small"] = law @ (found.flips & (sizes <= SMALL))
            row["idle"] = law @ (~found.flips & (sizes > 0))
            row["believed"] = row["valid"]
        return records


_EDGES, _JOINT = Method(candidates=RULES["edges-only"]), Method()
_EVERY_SET = Method(candidates=Product(most_pairs=12, most_features=0))
CONTENDERS: Mapping[str, Contender] = {
    **{name: Explained(method) for name, method in BASELINES.items()},
    "one coin a pair": Drawn(_EVERY_SET, "per edge", printed=True),
    "sequential": Drawn(_EDGES, "sequential", printed=True),
    "ours, exponential, edges": Drawn(_EDGES, printed=True),
    "ours, exponential, edges, 0.7 disclosed": Drawn(_EDGES, printed=True, disclosed=0.7),
    "ours, exponential": Drawn(_JOINT),
    "ours, exponential, 0.7 disclosed": Drawn(_JOINT, disclosed=0.7),
    "ours, permute-and-flip": Drawn(Method(mechanism=PermuteAndFlip())),
    "ours, exponential, epsilon 1": Drawn(_JOINT, epsilon="1"),
}


@final
@dataclass(frozen=True, slots=True)
class Compared(Work):
    """One contender on one population."""

    data: str
    population: str
    contender: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.contender}, {self.data}, {self.population}"

    def records(self, world: Simulation, most: int | None) -> Records:
        records = CONTENDERS[self.contender].outcomes(world, POPULATIONS[self.population](world)[:most])
        records["seed"] = world.seed
        return records


@final
@dataclass(frozen=True, slots=True)
class Accuracies(Work):
    """How often the private models are right on test nodes, beside the frozen one."""

    data: str
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"accuracy of private models, {self.data}"

    def records(self, world: Simulation, most: int | None) -> Records:  # noqa: ARG002
        data, test = world.data, world.data.split.test
        problem = Problem(data, world.model, (0,), world.seed, world.snapshot(HALF))
        features = data.features.toarray().astype(np.float32)
        noisy, plain = train_gap(problem), train_gap(problem, deviation=0.0)
        scores = (
            world.model.logits(data.features, data.pairs),
            DPSGD().train(problem).logits(data.features, data.pairs),
            noisy.logits(features, noisy.sums),
            plain.logits(features, plain.sums),
        )
        shares = tuple(float((one.argmax(axis=1) == data.labels)[test].mean()) for one in scores)
        return np.array([shares], ACCURACY)
