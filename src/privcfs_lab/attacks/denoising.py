"""Denoises explanations and reconstructs the graph from them, after PrivX (Sahoo and others 2026) and ReconXF (2025).

What is rebuilt: noise of a known strength is one step of a diffusion, and the best way back is the posterior mean. The
attacker knows model, explainer and mechanism, rehearses all of it on the public snapshot, of which she hides a half
from herself, and so has clean explanations as a prior for the mean, and labelled pairs from which to learn how
explanations give edges away. Public data are read beside every answer, as the newest attacks do.
What is not: PrivX's trained diffusion network and ReconXF's graph learner, of which no code was public; a posterior
mean over rehearsed numbers and a linear rule for pairs take their places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.tables.neighbours import Neighbours
from privcfs_lab.attacks.attack import Answer, Attack, Guesses, Victim, balanced_pairs, drawn_pairs, problem_of
from privcfs_lab.baselines.baseline import Pairs, Problem
from privcfs_lab.measuring.simulate import HALF, Simulation

PAIRS = 160  # of the real graph, and as many of the rehearsed one
PRIOR = 400  # clean numbers that stand for all of one kind
RIDGE, STEPS = 1.0, 30
Floats = NDArray[np.float64]
Answers = Mapping[int, Answer]


@final
@dataclass(frozen=True, slots=True)
class Denoising(Attack):
    """Reads what is said of features and classes; with `names`, also which pairs an answer names."""

    names: bool = False

    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> Guesses:
        count = 8 * most if most else PAIRS
        pairs, truth = balanced_pairs(world, count)
        own, own_truth = drawn_pairs(*_rehearsed_edges(world), len(world.data.labels), count, _rng(world))
        rehearsal = _rehearsal(world, _nodes(own))
        clean = victim.quiet().answers(rehearsal)
        noisy = [_with_noise(answer, victim.noise, _rng(world, number)) for number, answer in enumerate(clean)]
        prior = _Prior.of(clean, victim.noise)
        seen = victim.answers(problem_of(world, _nodes(pairs)))
        learned = _read(rehearsal, own, prior.means(noisy), self.names)
        read = _read(problem_of(world, _nodes(pairs)), pairs, prior.means(seen), self.names)
        return Guesses(read @ _fitted(learned, own_truth), truth, np.arange(len(truth)))


@final
@dataclass(frozen=True, slots=True)
class _Prior:
    """Clean numbers by what they are about, and the noise that is known to lie on what is seen."""

    clean: Mapping[str, Floats]
    noise: float

    @classmethod
    def of(cls, answers: Sequence[Answer], noise: float) -> "_Prior":
        kinds: dict[str, list[float]] = {}
        for answer in answers:
            for (kind, _, _), value in answer.items():
                kinds.setdefault(kind, []).append(value)
        places = np.linspace(0, 1, PRIOR)
        return cls({kind: np.quantile(values, places) for kind, values in kinds.items()}, noise)

    def means(self, answers: Sequence[Answer]) -> list[Answer]:
        """The posterior mean of every number: where the way back from one step of noise leads."""
        return [{name: self._mean(name[0], value) for name, value in answer.items()} for answer in answers]

    def _mean(self, kind: str, value: float) -> float:
        if not self.noise or kind not in self.clean:
            return value
        likely = -((value - self.clean[kind]) ** 2) / (2 * self.noise**2)
        weights = np.exp(likely - likely.max())
        return float(weights @ self.clean[kind] / weights.sum())


def _read(problem: Problem, pairs: Pairs, answers: Sequence[Answer], names: bool) -> Floats:
    """What is known of each pair: from public data, from numbers of features and classes, and from names."""
    said = dict(zip(problem.targets, answers, strict=True))
    columns = [*_public(problem, pairs), *_of_kind(said, pairs, "feature"), *_of_kind(said, pairs, "class")]
    columns += _expected_classes(problem, said, pairs)
    if names:
        columns += _named(said, pairs)
    table = np.column_stack(columns)
    spread = table.std(axis=0)
    scaled: Floats = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scaled


def _public(problem: Problem, pairs: Pairs) -> list[Floats]:
    """Likeness of features and of decisions on the snapshot, common neighbours and degrees there."""
    u, w = pairs.T
    rows, logits = problem.data.features, problem.model.logits(problem.data.features, problem.snapshot)
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    lengths = np.sqrt(np.maximum(np.asarray(rows.multiply(rows).sum(axis=1)).ravel(), 1e-9))
    alike = np.asarray(rows[u].multiply(rows[w]).sum(axis=1)).ravel() / (lengths[u] * lengths[w])
    known = Neighbours.of_pairs(problem.snapshot, rows.shape[0])
    sets = {int(node): set(known.neighbours(int(node))) for node in np.unique(pairs)}
    common = np.array([len(sets[int(a)] & sets[int(b)]) for a, b in pairs], np.float64)
    degrees = np.array([len(sets[int(a)]) * len(sets[int(b)]) for a, b in pairs], np.float64)
    return [alike, np.log1p(common), (likely[u] * likely[w]).sum(axis=1), np.log1p(degrees)]


def _of_kind(said: Answers, pairs: Pairs, kind: str) -> list[Floats]:
    """Likeness of two answers in their numbers about features or about classes: the cosine, and the product."""
    vectors = {node: {name[1]: v for name, v in one.items() if name[0] == kind} for node, one in said.items()}
    return list(_likeness(vectors, pairs))


def _named(said: Answers, pairs: Pairs) -> list[Floats]:
    """Whether the pair is named, with which number, and whether both answers name the same nodes, or each other."""
    about: dict[int, dict[int, float]] = {node: {} for node in said}
    for node, answer in said.items():
        for (kind, a, b), value in answer.items():
            if kind == "pair":
                for end in (a, b):
                    about[node][end] = about[node].get(end, 0.0) + value
    both = [[said[int(end)].get(("pair", int(u), int(w))) for end in (u, w)] for u, w in pairs]
    counts = np.array([sum(value is not None for value in values) for values in both], np.float64)
    values = np.array([sum(value or 0.0 for value in one) for one in both])
    each = np.array([about[int(u)].get(int(w), 0.0) + about[int(w)].get(int(u), 0.0) for u, w in pairs])
    return [counts, values, each, *_likeness(about, pairs)]


def _expected_classes(problem: Problem, said: Answers, pairs: Pairs) -> list[Floats]:
    """What each answer says of the class that the other end seems to have."""
    classes = problem.model.logits(problem.data.features, problem.snapshot).argmax(axis=1)
    ends = [(int(u), int(w)) for u, w in pairs]
    told = [
        said[u].get(("class", int(classes[w]), 0), 0.0) + said[w].get(("class", int(classes[u]), 0), 0.0)
        for u, w in ends
    ]
    return [np.array(told)]


def _likeness(vectors: Mapping[int, Mapping[int, float]], pairs: Pairs) -> tuple[Floats, Floats]:
    """The cosine and the product of both ends' sparse vectors."""
    lengths = {node: sum(value**2 for value in one.values()) ** 0.5 for node, one in vectors.items()}
    products = np.array(
        [sum(v * vectors[int(w)].get(n, 0.0) for n, v in vectors[int(u)].items()) for u, w in pairs], np.float64
    )
    scales = np.array([lengths[int(u)] * lengths[int(w)] for u, w in pairs])
    return products / np.where(scales > 0, scales, 1), products


def _fitted(table: Floats, truth: NDArray[np.bool_]) -> Floats:
    """Weights of a logistic rule, by Newton's method with a ridge; columns are centred, so no constant is needed."""
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (chances - truth) + RIDGE * weights
        curvature = (table.T * (chances * (1 - chances))) @ table + RIDGE * np.eye(len(weights))
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights


def _with_noise(answer: Answer, noise: float, rng: np.random.Generator) -> Answer:
    return {name: value + noise * float(rng.standard_normal()) for name, value in answer.items()} if noise else answer


def _rehearsed_edges(world: Simulation) -> tuple[Pairs, Pairs]:
    """The snapshot, which plays the private graph, and the half of it that plays the snapshot."""
    return world.snapshot(HALF), world.snapshot(HALF / 2)


def _rehearsal(world: Simulation, nodes: Sequence[int]) -> Problem:
    graph, shown = _rehearsed_problem(world)
    return replace(graph, targets=tuple(nodes), snapshot=shown)


@lru_cache(maxsize=4)
def _rehearsed_problem(world: Simulation) -> tuple[Problem, Pairs]:
    """The same objects each time, so that what is computed about them can be kept."""
    graph, shown = _rehearsed_edges(world)
    return problem_of(world).on(graph), shown


def _nodes(pairs: Pairs) -> list[int]:
    return sorted({int(node) for node in pairs.ravel()})


def _rng(world: Simulation, number: int = 0) -> np.random.Generator:
    return np.random.default_rng([world.seed, 101, number])
