"""Every shipped mechanism before the black-box auditor, and every broken twin before the checker named for it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, final

import numpy as np

from privcfs.gate.accounting import Limit
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.worst_case import below_bound, hostile_ratio
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid
from privcfs_lab.audit import conduct, twins
from privcfs_lab.audit.blackbox import Bound, audit, clopper_pearson, most_provable, question
from privcfs_lab.audit.depth import Depth
from privcfs_lab.audit.distinguish import distinguish
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF, ONE_AGAINST_MANY, Build, HostileWorld
from privcfs_lab.audit.sampler import TOLERANCE, deviation
from privcfs_lab.measuring.inspection import inspect

FOUR = Fraction(4)
WORLDS = {"one against many": ONE_AGAINST_MANY, "half against half": HALF_AGAINST_HALF}
SCORES = Scores(np.array([0, 10, 0, 2, 9, 7]), Grid(10, (0, 2, 7, 9, 10), 10))
FIRST, LAST = 0, ONE_AGAINST_MANY.leaves - 1  # leaves whose edge some twins look at
Graphs = tuple[tuple[int, ...], tuple[int, ...]]
Check = Callable[[], tuple[bool, str, bool]]  # the twin is rejected, what was seen, the honest part passes
POWER = 0.95
DRAW_ALONE = "half the sensitivity in the draw alone"
TEN = Limit.of("10")


@final
@dataclass(frozen=True, slots=True)
class Acquittal:
    """One honest configuration: what the auditor could prove, and what is true."""

    mechanism: str
    utility: str
    graphs: str
    claim: str
    bound: Bound
    truth: float  # the exact logarithm of the largest ratio between these two graphs

    @property
    def within(self) -> bool | None:
        """Whether the claim stands; none where so few draws could not have refuted it."""
        claim = float(self.claim)
        if self.truth > claim + 1e-9 or self.bound.convicts(claim):
            return False
        return True if most_provable(2 * self.bound.draws) > claim + 1 else None


@final
@dataclass(frozen=True, slots=True)
class Conviction:
    """One broken twin: how often its checker rejected it, and whether the same checker passes the honest part."""

    twin: str
    checker: str
    tried: int
    convicted: int
    seen: str
    honest_passes: bool
    certain: bool = False  # the checker leaves nothing to chance

    @property
    def power(self) -> float:
        """A lower 95 % limit on the probability of conviction."""
        if self.certain:
            return float(self.convicted)
        return float(clopper_pearson(np.array([self.convicted]), self.tried, 1 - POWER)[0][0])

    @property
    def within(self) -> bool:
        """Convicted in as many trials as the asked power says, and the honest part is not."""
        return self.convicted >= POWER * self.tried and self.honest_passes


def acquittals(depth: Depth, say: Callable[[str], None], workers: int = 1) -> list[Acquittal]:
    """Every shipped mechanism and utility on both hostile pairs of graphs."""
    tasks = [(*names, depth.draws) for names in product(MECHANISMS, UTILITIES, WORLDS, depth.claims)]
    return each(_acquittal, tasks, say, workers)


def _acquittal(name: str, utility: str, graphs: str, claim: str, draws: int) -> Acquittal:
    world = WORLDS[graphs]
    method = Method(world.rule, UTILITIES[utility], MECHANISMS[name])
    bound = _audit(world, _secret(world), partial(_always, method), claim, draws)
    laws = [
        inspect(world.graph(*missing), world.context, world.target, method).probabilities(claim)
        for missing in _secret(world)
    ]
    return Acquittal(name, utility, graphs, claim, bound, float(np.log(distinguish(*laws).ratio)))


def convictions(depth: Depth, say: Callable[[str], None], workers: int = 1) -> Iterator[Conviction]:
    """Every broken twin, and the honest part beside it."""
    chosen = {twin: parts for twin, parts in _black_box_twins(ONE_AGAINST_MANY).items() if parts[1] <= depth.most_draws}
    tasks = [(twin, number) for twin in chosen for number in range(depth.repeats)]
    bounds = dict(zip(tasks, each(_trial, tasks, say, workers), strict=True))
    for twin, (claim, draws, graphs, _) in chosen.items():
        mine = [bounds[twin, number] for number in range(depth.repeats)]
        middle = sorted(bound.epsilon for bound in mine)[len(mine) // 2]
        yield Conviction(
            twin,
            f"black box, {draws} draws a side",
            depth.repeats,
            sum(bound.convicts(float(claim)) for bound in mine),
            f"epsilon proven to be at least {middle:.2f} in half of the trials, {claim} claimed",
            not _audit(ONE_AGAINST_MANY, graphs, _honest, claim, draws).convicts(float(claim)),
        )
    for twin, checker, check in _certain_twins():
        say(f"{checker}: {twin}")
        rejected, seen, passes = check()
        yield Conviction(twin, checker, 1, int(rejected), seen, passes, certain=True)


def _trial(twin: str, number: int) -> Bound:  # noqa: ARG001
    """One audit of a twin; trials differ by chance alone."""
    claim, draws, graphs, build = _black_box_twins(ONE_AGAINST_MANY)[twin]
    return _audit(ONE_AGAINST_MANY, graphs, build, claim, draws)


T = TypeVar("T")


def each(
    work: Callable[..., T], tasks: Sequence[tuple[object, ...]], say: Callable[[str], None], workers: int
) -> list[T]:
    """The results of all tasks, in their order."""
    results = []
    with ExitStack() as stack:
        run = map
        if workers > 1:
            run = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn"))).map  # type: ignore[assignment]
        for number, result in enumerate(run(work, *zip(*tasks, strict=True)), 1):
            say(f"black box: {number} of {len(tasks)}, last {', '.join(str(part) for part in tasks[number - 1])}")
            results.append(result)
    return results


def _black_box_twins(world: HostileWorld) -> dict[str, tuple[str, int, Graphs, Build]]:
    """What it claims, how many draws convict it, between which graphs, and how it is made."""
    rule, secret, leaf = world.rule, _secret(world), ((), (FIRST,))
    candidates = rule.propose(world.context, world.target)
    return {
        "half the sensitivity": ("4", 2400, secret, lambda _: Method(rule, mechanism=twins.Overconfident())),
        DRAW_ALONE: ("4", 2400, secret, lambda _: Method(rule, mechanism=twins.Misdrawn())),
        "support filtered by validity": ("1", 200, secret, lambda graph: Method(twins.FilteredSupport(graph, rule))),
        "order that follows private edges": ("1", 200, leaf, lambda graph: Method(twins.PrivateOrder(graph, rule))),
        "base measure that peeks": (
            *("1", 1600, leaf),
            lambda graph: Method(rule, mechanism=twins.PeekingMeasure.of(graph, candidates)),
        ),
        "subset selection times a base measure": (
            *("4", 2400, secret),
            lambda _: Method(rule, mechanism=twins.MeasuredSubset(heavy=40, at=1)),
        ),
    }


def _certain_twins() -> Iterator[tuple[str, str, Check]]:
    """Checkers that leave nothing to chance."""
    hostile, replay = "exact ratio on hostile scores", "ledger replay"
    yield "half the sensitivity", hostile, partial(_hostile, twins.Overconfident())
    yield "subset selection times a base measure", hostile, partial(_hostile, twins.MeasuredSubset())
    yield "as many in front as are good", hostile, partial(_hostile, twins.PeekingShare())
    yield "guide that rehearses on the private graph", "exact ratio on two graphs", _peeking_guide
    yield "float32 sampler", "exact law of the draw", partial(_misdrawn, twins.Float32())
    yield "base measure that peeks", "exact ratio on two graphs", _peeking
    yield DRAW_ALONE, "exact law of the draw", partial(_misdrawn, twins.Misdrawn())
    yield "refunds", replay, partial(_replayed, twins.Refunds)
    yield "unfinished prices do not count", replay, partial(_replayed, twins.ForgetsUnfinished)
    yield "free retries", replay, partial(_replayed, twins.FreeRetries)
    yield "charge after read", replay, partial(_replayed, twins.ChargesLater)
    yield "seeded generator", "restart test", _restarted
    rule = ONE_AGAINST_MANY.rule
    loud = partial(_differential, lambda graph: Method(twins.LoudRule(graph, rule)))
    yield "error that depends on an edge", "differential run", loud
    failing = partial(_differential, lambda graph: Method(rule, twins.FailingUtility(_has_last(graph))))
    yield "failure that depends on an edge", "differential run", failing


def _hostile(mechanism: Mechanism) -> tuple[bool, str, bool]:
    ratio = hostile_ratio(mechanism, FOUR)
    seen = f"ratio e^{np.log(float(ratio)):.2f}, e^{FOUR} claimed"
    return not below_bound(ratio, FOUR), seen, _shipped_mechanisms_withstand()


@lru_cache(maxsize=1)
def _shipped_mechanisms_withstand() -> bool:
    return all(below_bound(hostile_ratio(one, FOUR), FOUR) for one in MECHANISMS.values())


def _peeking() -> tuple[bool, str, bool]:
    world, laws = ONE_AGAINST_MANY, []
    candidates = world.rule.propose(world.context, world.target)
    for graph in (world.graph(), world.graph(FIRST)):
        for mechanism in (twins.PeekingMeasure.of(graph, candidates), Exponential()):
            laws.append(inspect(graph, world.context, world.target, Method(world.rule, mechanism=mechanism)))
    twin, honest = (distinguish(*(law.probabilities("4") for law in laws[start::2])).ratio for start in (0, 1))
    return twin > np.exp(4), f"ratio e^{np.log(twin):.2f}, e^4 claimed", bool(honest <= np.exp(4))


def _peeking_guide() -> tuple[bool, str, bool]:
    """On the worst pair of graphs: the twin's ratio, and that of the guide that imagines."""
    world, ratios = ONE_AGAINST_MANY, []
    for peeking in (True, False):
        laws = []
        for missing in _secret(world):
            graph = world.graph(*missing)
            guide = twins.PeekingGuide(graph) if peeking else Rehearsal()
            found = inspect(graph, world.context, world.target, Method(world.rule, guide=guide)).probabilities("4")
            laws.append(np.where(found > 0, found, 1e-300))
        ratios.append(distinguish(*laws).ratio)
    twin, honest = ratios
    return twin > np.exp(4), f"ratio e^{np.log(twin):.2f}, e^4 claimed", bool(honest <= np.exp(4) * (1 + 1e-9))


def _misdrawn(mechanism: Mechanism) -> tuple[bool, str, bool]:
    found = deviation(mechanism, SCORES, Fraction(8))
    return (
        found > TOLERANCE,
        f"a probability is off by a share of {float(found):.1e}; 2^-127 is allowed",
        _shipped_draws_are_exact(),
    )


@lru_cache(maxsize=1)
def _shipped_draws_are_exact() -> bool:
    return all(deviation(one, SCORES, Fraction(8)) <= TOLERANCE for one in MECHANISMS.values())


def _replayed(twin: type[MemoryLedger]) -> tuple[bool, str, bool]:
    """The shipped ledger, on disk, must pass what the twin does not."""
    broken = conduct.replay(twin)
    with TemporaryDirectory() as folder:
        shipped = conduct.replay(lambda limit: SqliteLedger(Path(folder) / "budget.db", limit))
    return bool(broken), "does not hold: " + "; ".join(broken), not shipped and not conduct.replay(MemoryLedger)


def _restarted() -> tuple[bool, str, bool]:
    world = ONE_AGAINST_MANY

    def seeded() -> Vault:
        vault = world.vault(build=_honest)
        vault._randomness = twins.SeededRandomness()  # type: ignore[assignment]
        return vault

    honest = not conduct.repeats(partial(world.vault, build=_honest), world.target)
    return conduct.repeats(seeded, world.target), "twenty answers repeat after a restart", honest


def _differential(build: Build) -> tuple[bool, str, bool]:
    """Rejected where an analyst sees it, in a release, and not where the vault is opened."""
    world = ONE_AGAINST_MANY
    found, honest = (
        conduct.differences(
            partial(world.vault, build=one, limit=TEN),
            partial(world.vault, LAST, build=one, limit=TEN),
            world.target,
        )
        for one in (build, _honest)
    )
    rejected = conduct.RELEASE in found and conduct.OPENING not in found
    return rejected, "answered differently: " + ", ".join(found), not honest


def _has_last(graph: PrivateGraph) -> bool:
    return bool(graph.has_edges(np.array([[LAST, ONE_AGAINST_MANY.target]]))[0])


def _honest(_: PrivateGraph) -> Method:
    return Method(ONE_AGAINST_MANY.rule)


def _always(method: Method, _: PrivateGraph) -> Method:
    return method


def _secret(world: HostileWorld) -> Graphs:
    """The graph with the secret edge and the one without it, by what is missing."""
    return (), (world.secret,)


def _audit(world: HostileWorld, graphs: Graphs, build: Build, claim: str, draws: int) -> Bound:
    first, second = (world.vault(*missing, build=build) for missing in graphs)
    return audit(question(first, world.target, claim), question(second, world.target, claim), draws)
