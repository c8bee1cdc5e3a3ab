"""What is attacked: our release, advice, a sketch, other protections, an open method, and nothing but public data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import exp, log, sqrt
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr

from privcfs.gate.coins import Coins
from privcfs.gate.contracts import Pure
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.method import Method
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.gate.questions.advice import Personal
from privcfs.gate.questions.question import PublicSide
from privcfs.gate.sketching import Parts, draw_sketch
from privcfs.private.allowance import UNLIMITED
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs.public.models.gcn import GCN
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.sketch import SketchPlan
from privcfs.public.sketches.triangle import pair_at
from privcfs_lab.attacks.attack import Answer, Element, Scores, Told, Victim
from privcfs_lab.audit.distinguish import Law, distinguish, gaussian_auc
from privcfs_lab.baselines.baseline import Pairs, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods
from privcfs_lab.baselines.privcf_out import DEVIATION, PrivCFOut
from privcfs_lab.baselines.rr_ldp import WRONG, randomised
from privcfs_lab.datasets.dataset import Dataset
from privcfs_lab.measuring.inspection import Inspection, inspect
from privcfs_lab.measuring.quality import release_law
from privcfs_lab.measuring.simulate import HALF
from privcfs_lab.models.deep_gcn import DeepGCN

BLIND, CERTAIN = Told(0.5, 0.0), Told(1.0, 1.0)
BUDGET = "7.2"  # what the compared systems quote
FARTHEST = 60  # noisy counts beyond it are as good as impossible


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
        if not self.deviation:
            return "no protection"
        return f"{float(BUDGET) * DEVIATION / self.deviation:g} an entry, nothing certified"

    @property
    def noise(self) -> float:
        return self.deviation

    def quiet(self) -> "Masks":
        return replace(self, deviation=0.0)

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


class _Blind(Victim):
    """One whose answers have the same law on all the graphs that are guessed."""

    __slots__ = ()

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


@final
@dataclass(frozen=True, slots=True)
class Public(_Blind):
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


@final
@dataclass(frozen=True, slots=True)
class AdviceToOthers(_Blind):
    """Advice as an outsider may come to know it: what a friend of the target, by the snapshot, was told about herself.

    Nobody sees the target's own advice but the target, so a friend is the nearest accomplice. She is at no end of the
    pairs that are guessed, which the snapshot does not have. No law of her advice moves with such a pair.
    """

    @property
    def price(self) -> str:
        return "0"

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:  # noqa: ARG002
        of = problem.data, problem.model, problem.snapshot.tobytes()
        _, context = _scene(*of)
        friends = [context.snapshot.neighbours(target) for target in problem.targets]
        return [_advised(*of, one[0]) if one else {} for one in friends]


@final
@dataclass(frozen=True, slots=True)
class Sketched(Victim):
    """A sketch of the hidden pairs, drawn once: all who ask read the same noisy pairs and counts by class."""

    epsilon: str = BUDGET

    @property
    def price(self) -> str:
        return f"{self.epsilon} for the graph, one edge"

    @property
    def _plan(self) -> SketchPlan:
        return SketchPlan.of(Fraction(self.epsilon))

    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:  # noqa: ARG002
        parts = _drawn(problem.data, problem.model, problem.snapshot.tobytes(), self._plan, problem.seed)
        found: list[Answer] = [{} for _ in problem.targets]
        if parts.shown is not None:
            shown = pair_at(parts.shown, len(problem.data.labels))
            for answer, target in zip(found, problem.targets, strict=True):
                mine = shown[(shown == target).any(axis=1)].tolist()
                answer.update({("pair", u, w): 1.0 for u, w in mine})
        if parts.counts is not None:
            for answer, target in zip(found, problem.targets, strict=True):
                counts = parts.counts[target].tolist()
                answer.update({("class", name, 0): float(count) for name, count in enumerate(counts)})
        return found

    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:  # noqa: ARG002
        """By the pair's own coin and the two counts that it moves, unless the snapshot shows it anyway."""
        numbers = [{(int(u), int(w)) for u, w in pairs} for pairs in (problem.data.pairs, other, problem.snapshot)]
        if (numbers[0] ^ numbers[1]) <= numbers[2]:
            return BLIND
        laws = [np.ones(1), np.ones(1)]
        for law in self._laws():
            laws = [np.outer(one, part).ravel() for one, part in zip(laws, law, strict=True)]
        found = distinguish(*laws)
        return Told(found.auc, found.advantage)

    def _laws(self) -> list[tuple[Law, Law]]:
        """Of every part that one pair moves, with the pair and without it."""
        plan, laws = self._plan, []
        if plan.responses:
            wrong = 1 / (1 + exp(plan.responses))
            laws.append((np.array([1 - wrong, wrong]), np.array([wrong, 1 - wrong])))
        if plan.counts:
            values = np.arange(-FARTHEST, FARTHEST + 2)
            noise = [np.exp(-float(plan.counts) / 2 * np.abs(values - moved)) for moved in (1, 0)]
            laws += [(noise[0] / noise[0].sum(), noise[1] / noise[1].sum())] * 2
        return laws

    def likelihoods(
        self,
        problem: Problem,
        target: int,
        graphs: Sequence[Pairs],
        truths: Sequence[int],
        answers: int,  # noqa: ARG002
    ) -> Scores:
        """The sketch is drawn once, however often it is read."""
        plan, rng = self._plan, problem.rng(f"reconstruction {target}")
        bits, counts = self._moved(problem, target, graphs)
        fit = np.zeros((len(truths), len(graphs)))
        if plan.responses:
            wrong = 1 / (1 + exp(plan.responses))
            seen = bits[list(truths)] ^ (rng.random((len(truths), bits.shape[1])) < wrong)
            fit += (seen[:, None] != bits).sum(axis=2) * log(wrong / (1 - wrong))
        if plan.counts:
            up, down = rng.geometric(1 - exp(-plan.counts / 2), (2, len(truths), counts.shape[1]))
            fit -= float(plan.counts) / 2 * np.abs((counts[list(truths)] + up - down)[:, None] - counts).sum(axis=2)
        return fit

    def _moved(
        self, problem: Problem, target: int, graphs: Sequence[Pairs]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """For each graph: which hidden pairs at the target it has, of those that differ, and the counts they move."""
        _, context = _scene(problem.data, problem.model, problem.snapshot.tobytes())
        sets = [frozenset((int(u), int(w)) for u, w in pairs) for pairs in graphs]
        shown = {(int(u), int(w)) for u, w in problem.snapshot}
        differing = sorted(frozenset[tuple[int, int]]().union(*sets) - sets[0].intersection(*sets) - shown)
        bits = np.array([[pair in one for pair in differing] for one in sets]).reshape(len(sets), len(differing))
        others = np.array([u + w - target for u, w in differing], np.int64)
        classes = snapshot_logits(context, others).argmax(axis=1) if len(others) else others
        own = [(bits & (classes == name)).sum(axis=1) for name in range(context.number_of_classes)]
        return bits, np.column_stack([*own, bits.astype(np.int64)])


VICTIMS: Mapping[str, Victim] = {
    "public data alone": Public(),
    "advice, an outsider": AdviceToOthers(),
    "ours, 7.2 in all": Released(whole=True),
    "ours, 7.2 an answer": Released(),
    "a sketch, 2": Sketched("2"),
    "a sketch, 7.2": Sketched(),
    "PrivCF-out": Masks(),
    "PrivCF-out, half noise": Masks(deviation=DEVIATION / 2),
    "RR-LDP": NoisyGraph(),
    "CF-GNNExplainer": Masks(deviation=0.0),
}


def mask_logits(explainer: CFGNNExplainer, problem: Problem, switched_off: Sequence[int] = ()) -> list[Answer]:
    """The final mask logits of every target, named; the same whatever noise is added to them."""
    return _mask_logits(explainer, problem.data, problem.model, problem.targets, tuple(switched_off))


@lru_cache(maxsize=4)
def _mask_logits(
    explainer: CFGNNExplainer,
    data: Dataset,
    model: GCN | DeepGCN,
    targets: tuple[int, ...],
    switched_off: tuple[int, ...],
) -> list[Answer]:
    problem = Problem(data, model, targets)
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


@lru_cache(maxsize=4)
def _scene(data: Dataset, model: GCN | DeepGCN, snapshot: bytes) -> tuple[PrivateGraph, PublicContext]:
    """A graph and its public side, the same objects each time, so that what is learned from them is kept."""
    problem = Problem(data, model, (), snapshot=np.frombuffer(snapshot, np.int64).reshape(-1, 2))
    return _private(problem, data.pairs), problem.context()


@lru_cache(maxsize=4)
def _drawn(data: Dataset, model: GCN | DeepGCN, snapshot: bytes, plan: SketchPlan, seed: int) -> Parts:
    graph, context = _scene(data, model, snapshot)
    return draw_sketch(graph, context, plan, lambda use: Coins(f"attack {seed}".encode(), f"{plan.name} {use}"))


@lru_cache(maxsize=4096)
def _advised(data: Dataset, model: GCN | DeepGCN, snapshot: bytes, node: int) -> Answer:
    """What one person is told: a change, and what is believed about her decision."""
    graph, context = _scene(data, model, snapshot)
    method = Method(SmallSets(), guide=OwnEdgeRehearsal(Rehearsal(Worlds(disclosed=HALF))))
    reader = Reader(graph, context, UNLIMITED, (node,))
    personal = Personal(PublicSide(context, method, Pure(), Fraction(0)), node, reader)
    (best,) = personal.best(1)
    return _named(best.intervention) | {("class", label, 0): chance for label, chance in personal.believed.items()}


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
