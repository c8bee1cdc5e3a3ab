"""What can be learned beside the answer: how long it takes, and how much memory evaluation needs.

Two vaults that differ in the private graph alone are asked in random order. Which of them answered is then guessed from
the time by a rule fixed on the first half of the answers: times are sorted into ten bins, and a bin speaks for the
vault that filled it more.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import sqrt
from time import perf_counter
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.hostile import ONE_AGAINST_MANY
from privcfs_lab.audit.twins import Dawdling
from privcfs_lab.measuring.simulate import HALF, Simulation
from privcfs_lab.measuring.targets import POPULATIONS

ALLOWED = 0.6  # the largest AUC with which a fixed-time answer passes
SURE = 1.64  # standard errors: 95 % on one side
BINS = 10
HUB = 300
WAIT = 0.03  # seconds: longer than every evaluation below


@final
@dataclass(frozen=True, slots=True)
class Case:
    """One question to two private graphs over one public context."""

    context: PublicContext
    target: int
    graphs: tuple[Pairs, Pairs]
    method: Method = Method()
    slow: bool = False  # the twin: dawdles on the first graph

    def vaults(self, answer_seconds: float | None) -> tuple[Vault, Vault]:
        """Both, with accounts in memory: a disk would only add noise."""
        first, second = (self._vault(number, answer_seconds) for number in (0, 1))
        return first, second

    def _vault(self, number: int, answer_seconds: float | None) -> Vault:
        graph = PrivateGraph.from_edges(self.graphs[number], number_of_nodes=self.context.number_of_nodes)
        utility = Dawdling(self.slow and number == 0)
        method = Method(self.method.candidates, utility if self.slow else self.method.utility, self.method.mechanism)
        settings = {"ledger": MemoryLedger(), "method": method, "answer_seconds": answer_seconds}
        return Vault(graph, self.context, simulation=True, **settings)  # type: ignore[arg-type]


@final
@dataclass(frozen=True, slots=True)
class Timing:
    """How long answers take on either graph, and what their time gives away."""

    first: float  # milliseconds, median
    second: float
    auc: float
    error: float  # standard error of the AUC, for a time that tells nothing
    advantage: float  # true minus false positives of the rule

    @property
    def hidden(self) -> bool | None:
        """Whether the time hides the graph: surely below what is allowed, surely above, or too few answers to say."""
        if self.auc + SURE * self.error <= ALLOWED:
            return True
        return False if self.auc - SURE * self.error > ALLOWED else None


def cases() -> Iterator[tuple[str, Case]]:
    """What neighbouring graphs can look like: an edge that decides, an edge that matters little, a hub, a failure."""
    world = ONE_AGAINST_MANY
    graphs = world.pairs(), world.pairs(world.secret)
    for name in ("exponential", "permute-and-flip"):
        method = Method(world.rule, mechanism=MECHANISMS[name])
        yield f"one edge decides every score, {name}", Case(world.context, world.target, graphs, method)
    cora = Simulation("cora", 0)
    target = POPULATIONS["borderline"](cora)[2]
    pairs = {(int(u), int(w)) for u, w in cora.data.pairs}
    own = sorted(pair for pair in pairs if target in pair)
    context = cora.context(HALF)
    yield "Cora, one edge of a borderline target", Case(context, target, (as_pairs(pairs), as_pairs(pairs - {own[0]})))
    far = [node for node in range(len(cora.data.labels)) if node != target][:HUB]
    hub = pairs | {(min(target, node), max(target, node)) for node in far}
    yield f"Cora, {len(own)} or {HUB} neighbours", Case(context, target, (as_pairs(hub), as_pairs(pairs)))
    yield "an evaluation that fails", _failing()


def _failing() -> Case:
    """A model that overflows as soon as node 1 is next to the target."""
    features = np.zeros((8, 2), np.float32)
    features[:, 0] = 1
    features[1] = (0, 3e38)
    model = GCN(np.array([[1.0], [3e38]], np.float32), np.array([[1.0, -1.0]], np.float32))
    context = PublicContext(features, [(0, 2), (0, 3)], model)
    return Case(context, 0, (as_pairs({(0, 1), (0, 2)}), as_pairs({(0, 2)})))


def dawdling_twin() -> Case:
    """One graph takes 15 milliseconds longer."""
    world = ONE_AGAINST_MANY
    return Case(world.context, world.target, (world.pairs(), world.pairs(world.secret)), Method(world.rule), slow=True)


def timing(case: Case, answers: int, answer_seconds: float | None = None) -> Timing:
    """So many answers of each vault, in random order, after some that do not count."""
    vaults = case.vaults(answer_seconds)
    ask: Mapping[int, Callable[[], object]] = {
        number: partial(vault.release, case.target, "1") for number, vault in enumerate(vaults)
    }
    for number in (0, 1) * 5:
        ask[number]()
    order = np.random.default_rng(0).permutation(np.repeat([0, 1], answers))
    seconds = np.zeros(len(order))
    gc.collect()
    gc.disable()
    try:
        for position, number in enumerate(order):
            start = perf_counter()
            ask[int(number)]()
            seconds[position] = perf_counter() - start
    finally:
        gc.enable()
    return _told(seconds, order == 0)


def _told(seconds: NDArray[np.float64], first: NDArray[np.bool_]) -> Timing:
    half = len(seconds) // 2
    borders = np.quantile(seconds[:half], np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(borders, seconds)
    here, there = (np.bincount(bins[:half][side], minlength=BINS) + 0.5 for side in (first[:half], ~first[:half]))
    evidence = np.log(here / here.sum()) - np.log(there / there.sum())
    scores, truth = evidence[bins[half:]], first[half:]
    counts = truth.sum(), (~truth).sum()
    error = sqrt((counts[0] + counts[1] + 1) / (12 * counts[0] * counts[1]))
    medians = [float(np.median(seconds[side])) * 1000 for side in (first, ~first)]
    advantage = float((scores[truth] > 0).mean() - (scores[~truth] > 0).mean())
    return Timing(medians[0], medians[1], _auc(scores, truth), error, advantage)


def _auc(scores: NDArray[np.float64], first: NDArray[np.bool_]) -> float:
    """The chance that an answer of the first vault has the higher score, ties counted half."""
    here, there = np.sort(scores[first]), np.sort(scores[~first])
    below = np.searchsorted(there, here, "left") + np.searchsorted(there, here, "right")
    return float(below.mean() / (2 * len(there)))


def crowd(case: Case, answer_seconds: float, threads: int = 8, rounds: int = 5) -> tuple[float, float, int]:
    """How late the last of many answers is that are asked for at once, on either graph; and failed evaluations."""
    lateness, failures = [], 0
    for vault in case.vaults(answer_seconds):
        late = []
        for _ in range(rounds):
            start = perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda _, vault=vault: vault.release(case.target, "1"), range(threads)))
            late.append(perf_counter() - start - threads * answer_seconds)
        lateness.append(float(np.median(late)) * 1000)
        failures += vault.failures.evaluations
    return lateness[0], lateness[1], failures


def peak_memory(case: Case) -> tuple[float, float]:
    """Megabytes that one answer needs at its peak, on either graph."""
    found = []
    for vault in case.vaults(None):
        vault.release(case.target, "1")
        tracemalloc.start()
        vault.release(case.target, "1")
        found.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    return found[0], found[1]
