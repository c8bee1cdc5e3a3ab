"""What is attacked: our release, the heuristic, graph-level noise, an open method, and nothing but public data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt
from typing import final

import numpy as np
import torch
from scipy.special import ndtr

from privcfs.gate.method import Method
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs_lab.attacks.attack import Answer, Element, Scores, Told, Victim
from privcfs_lab.audit.distinguish import Law, distinguish, gaussian_auc
from privcfs_lab.baselines.baseline import Pairs, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods
from privcfs_lab.baselines.privcf_out import DEVIATION, PrivCFOut
from privcfs_lab.baselines.rr_ldp import WRONG, randomised
from privcfs_lab.measuring.inspection import Inspection, inspect
from privcfs_lab.measuring.quality import release_law

BLIND, CERTAIN = Told(0.5, 0.0), Told(1.0, 1.0)
BUDGET = "7.2"  # what the compared systems quote


@final
@dataclass(frozen=True, slots=True)
class Released(Victim):
    """Our release: one draw for each question. With `whole`, the price is that of all questions together."""

    epsilon: str = BUDGET
    whole: bool = False
    method: Method = Method()

    @property
    def price(self) -> str:
        return f"{self.epsilon} in all" if self.whole else f"{self.epsilon} an answer"

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:
        rng = problem.rng("releases, features off" if switched_off else "releases")
        price = self._each(rounds * len(problem.targets))
        graph = _private(problem, problem.data.pairs)
        found = []
        for number, target in enumerate(problem.targets):
            context = _context(problem, switched_off[number] if switched_off else None)
            seen = inspect(graph, context, target, self.method)
            found.append(_named(seen.candidates[_draw(_law(seen, price), rng)]))
        return found

    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:
        found = distinguish(*self._laws(problem, target, (problem.data.pairs, other), self.epsilon))
        return Told(found.auc, found.advantage)

    def likelihoods(
        self, problem: Problem, target: int, graphs: Sequence[Pairs], truths: Sequence[int], answers: int
    ) -> Scores:
        laws = np.log(self._laws(problem, target, graphs, self._each(answers)))
        rng = problem.rng(f"reconstruction {target}")
        drawn = [rng.choice(laws.shape[1], answers, p=_whole(np.exp(laws[truth]))) for truth in truths]
        return np.array([laws[:, chosen].sum(axis=1) for chosen in drawn])

    def _each(self, questions: int) -> str:
        return f"{float(self.epsilon) / questions:.9f}" if self.whole else self.epsilon

    def _laws(self, problem: Problem, target: int, graphs: Sequence[Pairs], price: str) -> list[Law]:
        context = _context(problem, None)
        return [_law(inspect(_private(problem, one), context, target, self.method), price) for one in graphs]


@final
@dataclass(frozen=True, slots=True)
class Masks(Victim):
    """CF-GNNExplainer's mask logits with Gaussian noise on each, which is PrivCF-out; without noise, the open method.

    Kind to the victim: a likelihood is taken over the entries that all graphs share, although the list of entries
    itself says which pairs exist.
    """

    deviation: float = DEVIATION
    explainer: CFGNNExplainer = PrivCFOut().explainer

    @property
    def price(self) -> str:
        return f"{BUDGET} an entry, nothing certified" if self.deviation else "no protection"

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:  # noqa: ARG002
        rng = problem.rng("masks, features off" if switched_off else "masks")
        return [self._noisy(answer, rng) for answer in mask_logits(self.explainer, problem, switched_off)]

    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:
        here, there = self._explained(problem, target, (problem.data.pairs, other))
        distance = _distance(here, there)
        if not self.deviation:
            return CERTAIN if distance > 0 else BLIND
        return Told(float(gaussian_auc(distance, self.deviation)), float(2 * ndtr(distance / (2 * self.deviation)) - 1))

    def likelihoods(
        self, problem: Problem, target: int, graphs: Sequence[Pairs], truths: Sequence[int], answers: int
    ) -> Scores:
        explained = self._explained(problem, target, graphs)
        shared = sorted(set.intersection(*(set(one) for one in explained)))
        vectors = np.array([[one[name] for name in shared] for one in explained])
        noise = max(self.deviation, 1e-3)
        rng = problem.rng(f"reconstruction {target}")
        seen = [vectors[truth] + noise * rng.standard_normal((answers, len(shared))) for truth in truths]
        squares = [[((one - vector) ** 2).sum() for vector in vectors] for one in seen]
        return -np.array(squares) / (2 * noise**2)

    def _explained(self, problem: Problem, target: int, graphs: Sequence[Pairs]) -> list[Answer]:
        return [_logits_on(self.explainer, problem, target, pairs.tobytes()) for pairs in graphs]

    def _noisy(self, answer: Answer, rng: np.random.Generator) -> Answer:
        noise = self.deviation * rng.standard_normal(len(answer))
        return {name: value + float(extra) for (name, value), extra in zip(answer.items(), noise, strict=True)}


@final
@dataclass(frozen=True, slots=True)
class NoisyGraph(Victim):
    """Randomised response on every pair, once; what is explained, and all else, is post-processing of it."""

    explainer: CFGNNExplainer = CFGNNExplainer(epochs=100)

    @property
    def price(self) -> str:
        return f"{BUDGET} for the graph, one edge"

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:  # noqa: ARG002
        return mask_logits(self.explainer, problem.on(randomised(problem)), switched_off)

    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:  # noqa: ARG002
        return Told(1 - WRONG, 1 - 2 * WRONG)

    def likelihoods(
        self,
        problem: Problem,
        target: int,
        graphs: Sequence[Pairs],
        truths: Sequence[int],
        answers: int,  # noqa: ARG002
    ) -> Scores:
        """The noisy graph is drawn once, however often it is asked."""
        sets = [frozenset((int(u), int(w)) for u, w in pairs) for pairs in graphs]
        differing = sorted(frozenset[tuple[int, int]]().union(*sets) - sets[0].intersection(*sets))
        here = np.array([[pair in one for pair in differing] for one in sets])
        wrong = problem.rng(f"reconstruction {target}").random((len(truths), len(differing))) < WRONG
        lies = ((here[list(truths)] ^ wrong)[:, None] != here).sum(axis=2)
        fit: Scores = lies * log(WRONG / (1 - WRONG))
        return fit


@final
@dataclass(frozen=True, slots=True)
class Public(Victim):
    """Row zero: everyone knows the target's features and what the model says of it on the public snapshot."""

    @property
    def price(self) -> str:
        return "0"

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:  # noqa: ARG002
        found = []
        for number, target in enumerate(problem.targets):
            context = _context(problem, switched_off[number] if switched_off else None)
            scores = context.model.logits(context.features, problem.snapshot)[target].tolist()
            row: Answer = {("feature", int(name), 0): 1.0 for name in problem.data.features[[target]].indices}
            found.append(row | {("class", name, 0): score for name, score in enumerate(scores)})
        return found

    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:  # noqa: ARG002
        return BLIND

    def likelihoods(
        self,
        problem: Problem,  # noqa: ARG002
        target: int,  # noqa: ARG002
        graphs: Sequence[Pairs],
        truths: Sequence[int],
        answers: int,  # noqa: ARG002
    ) -> Scores:
        return np.zeros((len(truths), len(graphs)))


VICTIMS: Mapping[str, Victim] = {
    "public data alone": Public(),
    "ours, 7.2 in all": Released(whole=True),
    "ours, 7.2 an answer": Released(),
    "PrivCF-out": Masks(),
    "RR-LDP": NoisyGraph(),
    "CF-GNNExplainer": Masks(deviation=0.0),
}


def mask_logits(explainer: CFGNNExplainer, problem: Problem, switched_off: Sequence[int] = ()) -> list[Answer]:
    """The final mask logits of every target, named."""
    batch = Neighbourhoods.of(problem)
    if switched_off:
        batch = replace(batch, inputs=_without_inputs(batch, switched_off))
    _, edges, features = explainer.search(batch)
    found: list[Answer] = [{} for _ in problem.targets]
    for owner, (u, w), value in zip(batch.owner.tolist(), batch.pairs.tolist(), edges.tolist(), strict=True):
        found[owner]["pair", u, w] = value
    owners = batch.feature_owner.tolist()
    for owner, feature, value in zip(owners, batch.features.tolist(), features.tolist(), strict=True):
        found[owner]["feature", feature, 0] = value
    return found


@lru_cache(maxsize=1024)
def _logits_on(explainer: CFGNNExplainer, problem: Problem, target: int, pairs: bytes) -> Answer:
    """One target on one graph; the same graphs come up for every number of answers."""
    graph = np.frombuffer(pairs, np.int64).reshape(-1, 2)
    return mask_logits(explainer, replace(problem.on(graph), targets=(target,)))[0]


def _without_inputs(batch: Neighbourhoods, nodes: Sequence[int]) -> torch.Tensor:
    """The batch's inputs when one node near each target has no features."""
    at = batch.pairs == np.array(nodes)[batch.owner][:, None]
    inputs = batch.inputs.clone()
    inputs[batch.ends.T[torch.from_numpy(at)]] = 0
    return inputs


def _distance(one: Answer, other: Answer) -> float:
    """Over the entries that both have, and the start value 1 for an entry that only one of them has."""
    names: set[Element] = set(one) | set(other)
    return sqrt(sum((one.get(name, 1.0) - other.get(name, 1.0)) ** 2 for name in names))


def _named(chosen: Intervention) -> Answer:
    pairs: Answer = {("pair", u, w): 1.0 for u, w in chosen.delete + chosen.add}
    return pairs | {("feature", feature, 0): 1.0 for feature in chosen.mask}


def _law(seen: Inspection, price: str) -> Law:
    return release_law(seen, price)


def _draw(law: Law, rng: np.random.Generator) -> int:
    return int(rng.choice(len(law), p=_whole(law)))


def _whole(law: Law) -> Law:
    """Summing to 1 as closely as NumPy demands."""
    whole: Law = law / law.sum()
    return whole


def _private(problem: Problem, pairs: Pairs) -> PrivateGraph:
    return PrivateGraph.from_edges(pairs, number_of_nodes=len(problem.data.labels))


def _context(problem: Problem, switched_off: int | None) -> PublicContext:
    if switched_off is None:
        return problem.context()
    features = problem.data.features.copy()
    start, stop = features.indptr[switched_off], features.indptr[switched_off + 1]
    features.data[start:stop] = 0
    return replace(problem, data=replace(problem.data, features=features)).context()
