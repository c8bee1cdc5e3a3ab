"""A model with perturbed aggregation, in the style of GAP (Sajadmanesh and others 2023), and a search on it.

Certifies: (epsilon, delta)-DP for one edge, of the model and of every explanation. Edges are read once: the sum of unit
embeddings over each node's neighbours, with Gaussian noise. One edge changes two sums by a unit vector each, hence a
sensitivity of the root of 2; all else is post-processing.
Operations: delete public pairs at the target, mask the target's features, or both.
"""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, final

import dp_accounting
import numpy as np
import torch
from numpy.typing import NDArray

from privcfs.public.interventions import Intervention, Pair
from privcfs_lab.baselines.baseline import ONE_EDGE, Baseline, Certificate, Explanation, Operations, Problem

EPSILON, DELTA = 7.2, 1e-5
Array = NDArray[np.float32]


def deviation_of(epsilon: float) -> float:
    """The deviation of the noise on sums."""
    return sqrt(2) * float(dp_accounting.get_sigma_gaussian(epsilon, DELTA))


DEVIATION = deviation_of(EPSILON)


class _Model(NamedTuple):
    """An encoder of features, the noisy sums, and a linear head on both."""

    encoder: Array
    sums: Array
    head: Array

    def embed(self, rows: Array) -> Array:
        """Unit vectors; nothing stays nothing."""
        values = rows @ self.encoder
        embedded: Array = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-6)
        return embedded

    def logits(self, rows: Array, sums: Array) -> Array:
        """Class scores from the features and the summed embeddings of the neighbours."""
        scores: Array = np.concatenate([self.embed(rows), sums], axis=1) @ self.head
        return scores


@final
@dataclass(frozen=True, slots=True)
class GAP(Baseline):
    """One perturbed hop; explanations by greedy search, at most `most` operations."""

    operations: Operations = Operations.BOTH
    most: int = 15
    epsilon: float = EPSILON

    placement = "model"

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.epsilon, DELTA, ONE_EDGE)

    def explain(self, problem: Problem) -> list[Explanation]:
        model = train(problem, deviation_of(self.epsilon))
        return [self._search(model, problem, target) for target in problem.targets]

    def _search(self, model: _Model, problem: Problem, target: int) -> Explanation:
        state = _State(problem.data.features[[target]].toarray().astype(np.float32), model.sums[[target]])
        original = int(model.logits(*state)[0].argmax())
        left = self._choices(model, problem, target)
        taken: list[_Choice] = []
        for _ in range(min(self.most, len(left))):
            trials = [state.after(choice) for choice in left]
            scores = model.logits(*(np.concatenate(parts) for parts in zip(*trials, strict=True)))
            best = int((scores[:, original] - np.delete(scores, original, 1).max(axis=1)).argmin())
            taken.append(left.pop(best))
            state = trials[best]
            if scores[best].argmax() != original:
                pairs = tuple(choice.pair for choice in taken if choice.pair)
                masks = tuple(choice.feature for choice in taken if choice.feature is not None)
                return Explanation(Intervention(pairs, (), masks), original, True)
        return Explanation(Intervention(), original, False)

    def _choices(self, model: _Model, problem: Problem, target: int) -> list["_Choice"]:
        choices: list[_Choice] = []
        if self.operations is not Operations.FEATURES:
            near = problem.snapshot[(problem.snapshot == target).any(axis=1)]
            units = model.embed(problem.data.features[near.sum(axis=1) - target].toarray().astype(np.float32))
            choices += [_Choice((int(u), int(w)), unit) for (u, w), unit in zip(near, units, strict=True)]
        if self.operations is not Operations.EDGES:
            choices += [_Choice(feature=int(number)) for number in problem.data.features[[target]].indices]
        return choices


class _Choice(NamedTuple):
    """One pair to delete, with the embedding that its end adds to the target's sum; or one feature to mask."""

    pair: Pair | None = None
    unit: Array = np.zeros(0, np.float32)
    feature: int | None = None


class _State(NamedTuple):
    """What the head reads of the target: one row of features, one row of sums."""

    row: Array
    sums: Array

    def after(self, choice: _Choice) -> "_State":
        """With one more operation."""
        if choice.feature is None:
            return _State(self.row, self.sums - choice.unit)
        row = self.row.copy()
        row[0, choice.feature] = 0
        return _State(row, self.sums)


def train(problem: Problem, deviation: float = DEVIATION) -> _Model:
    """The encoder sees features and labels, the head also the noisy sums."""
    data, generator = problem.data, torch.Generator().manual_seed(problem.seed)
    inputs = torch.from_numpy(data.features.toarray().astype(np.float32))
    known, labels = torch.from_numpy(data.split.train), torch.from_numpy(data.labels)
    encoder = _fit(inputs[known], labels[known], data.number_of_classes, generator)
    model = _Model(encoder, np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32))
    units = model.embed(inputs.numpy())
    sums = deviation * problem.rng("aggregation noise").standard_normal(units.shape, dtype=np.float32)
    first, second = data.pairs.T
    np.add.at(sums, first, units[second])
    np.add.at(sums, second, units[first])
    both = torch.from_numpy(np.concatenate([units, sums], axis=1))
    return _Model(encoder, sums, _fit(both[known], labels[known], data.number_of_classes, generator))


def _fit(inputs: torch.Tensor, labels: torch.Tensor, classes: int, generator: torch.Generator) -> Array:
    """A linear classifier."""
    weight = torch.nn.init.xavier_uniform_(torch.empty(inputs.shape[1], classes), generator=generator)
    optimiser = torch.optim.Adam([weight.requires_grad_()], lr=0.01, weight_decay=1e-3)
    for _ in range(300):
        loss = torch.nn.functional.cross_entropy(inputs @ weight, labels)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    fitted: Array = weight.detach().numpy()
    return fitted
