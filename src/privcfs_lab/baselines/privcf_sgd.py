"""PrivCF-SGD: masks of public elements, learned by noisy gradient steps on the private graph. Our definition.

The paper names this row without defining it. Here: one logit for each public pair and public feature of the target; at
every step the gradient of the loss of CF-GNNExplainer is clipped to length C and noised; after 100 steps the elements
whose logit is below zero are released, unseen: no best iterate, no check of validity.

Certifies: (epsilon, delta)-DP for any two graphs. A vector of length C can become any other, so a step's sensitivity is
2C and noise 7 needs a deviation of 14C.
Operations: delete public pairs, mask public features: the elements of our own candidate list.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from privcfs.public.candidates.pairs import OneHop
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs.public.interventions import Intervention
from privcfs_lab.baselines.baseline import ANY_GRAPHS, Baseline, Certificate, Explanation, Operations, Problem
from privcfs_lab.baselines.dp_sgd import DELTA, EPSILON, NOISE, STEPS
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods


@final
@dataclass(frozen=True, slots=True)
class PrivCFSGD(Baseline):
    """Logits start at 1; the step is so short that noise alone moves a logit by about 1.4 in all."""

    operations: Operations = Operations.BOTH
    clip: float = 0.1
    rate: float = 0.1

    placement = "explanation"
    certificate = Certificate(EPSILON, DELTA, ANY_GRAPHS)
    draws = 20

    def explain(self, problem: Problem) -> list[Explanation]:
        batch = Neighbourhoods.of(problem)
        public = _Public.of(problem, batch, self.operations)
        original, rng = batch.original(), problem.rng("mask steps")
        logits = torch.ones(len(public.owner), requires_grad=True)
        for _ in range(STEPS):
            scores = torch.log_softmax(batch.logits(*public.masks(torch.sigmoid(logits))), dim=1)
            kept = batch.logits(*public.masks((logits >= 0).float())).argmax(dim=1) == original
            (gradient,) = torch.autograd.grad((scores.gather(1, original[:, None])[:, 0] * kept).sum(), logits)
            noise = torch.from_numpy(rng.standard_normal(len(logits), dtype=np.float32))
            step = public.clipped(gradient, self.clip) + 2 * NOISE * self.clip * noise
            logits = (logits - self.rate * step).detach().requires_grad_()
        after = batch.logits(*public.masks((logits >= 0).float())).argmax(dim=1)
        removed = public.interventions(logits < 0)
        return [
            Explanation(one, int(old), bool(old != new)) for one, old, new in zip(removed, original, after, strict=True)
        ]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Public:
    """The public elements of all targets: pairs (u, w) and features (number,), whether or not they exist."""

    elements: list[tuple[int, ...]]
    owner: torch.Tensor  # which target each element belongs to
    place: torch.Tensor  # where it stands among the batch's pairs and features; behind all of them if it does not exist
    sizes: tuple[int, int, int]  # targets, the batch's pairs, the batch's features

    @classmethod
    def of(cls, problem: Problem, batch: Neighbourhoods, operations: Operations) -> "_Public":
        """The universes of our own candidate list."""
        context = problem.context()
        existing: list[tuple[int, ...]] = list(zip(batch.owner.tolist(), *batch.pairs.T.tolist(), strict=True))
        existing += zip(batch.feature_owner.tolist(), batch.features.tolist(), strict=True)
        places = {key: number for number, key in enumerate(existing)}
        keys: list[tuple[int, ...]] = []
        for number, target in enumerate(problem.targets):
            if operations is not Operations.FEATURES:
                keys += [(number, *pair) for pair in OneHop().pairs(context, target)]
            if operations is not Operations.EDGES:
                keys += [(number, feature) for feature in TopInfluence().features(context, target)]
        return cls(
            [key[1:] for key in keys],
            torch.tensor([key[0] for key in keys], dtype=torch.long),
            torch.tensor([places.get(key, len(existing)) for key in keys], dtype=torch.long),
            (len(problem.targets), len(batch.pairs), len(batch.features)),
        )

    def masks(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The batch's masks when every public element counts by its value; what does not exist changes nothing."""
        _, pairs, features = self.sizes
        whole = torch.ones(pairs + features + 1).index_put((self.place,), values)
        return whole[:pairs], whole[pairs : pairs + features]

    def clipped(self, gradient: torch.Tensor, most: float) -> torch.Tensor:
        """Every target's gradient at most `most` long."""
        length = torch.zeros(self.sizes[0]).index_add(0, self.owner, gradient**2).sqrt()
        return gradient * (most / length.clamp(min=most))[self.owner]

    def interventions(self, chosen: torch.Tensor) -> list[Intervention]:
        """What is released: chosen elements, existing or not."""
        named: list[list[tuple[int, ...]]] = [[] for _ in range(self.sizes[0])]
        for number in torch.nonzero(chosen)[:, 0].tolist():
            named[int(self.owner[number])].append(self.elements[number])
        return [
            Intervention(
                delete=tuple((element[0], element[1]) for element in elements if len(element) == 2),
                mask=tuple(element[0] for element in elements if len(element) == 1),
            )
            for elements in named
        ]
