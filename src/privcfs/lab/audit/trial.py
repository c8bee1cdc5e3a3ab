"""Every shipped mechanism before the black-box auditor, and every broken twin before the checker named for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import final

import numpy as np

from privcfs.gate.accounting import Limit
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.vault import Method, Vault
from privcfs.lab.audit import conduct, twins
from privcfs.lab.audit.attack import distinguish
from privcfs.lab.audit.blackbox import Bound, audit, clopper_pearson, question
from privcfs.lab.audit.checks import below_bound, hostile_ratio
from privcfs.lab.audit.depth import Depth
from privcfs.lab.audit.hostile import HALF_AGAINST_HALF, ONE_AGAINST_MANY, TARGET, Build, HostileWorld
from privcfs.lab.audit.memory import MemoryLedger
from privcfs.lab.audit.sampler import TOLERANCE, deviation
from privcfs.lab.inspection import inspect
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid

FOUR = Fraction(4)
WORLDS = {"one against many": ONE_AGAINST_MANY, "half against half": HALF_AGAINST_HALF}
SHORT = Grid(10, (0, 2, 7, 9, 10), 10)
LEAF = 1  # the leaf whose edge some twins look at
Graphs = tuple[tuple[int, ...], tuple[int, ...]]
Check = Callable[[], tuple[bool, str, bool]]  # the twin is rejected, what was seen, the honest part passes
POWER = 0.95
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

    @property
    def power(self) -> float:
        """A lower 95 % limit on the probability of conviction; 1 where nothing is left to chance."""
        if self.tried == 1:
            return float(self.convicted)
        return float(clopper_pearson(np.array([self.convicted]), self.tried, 1 - POWER)[0][0])


def acquittals(depth: Depth, say: Callable[[str], None]) -> Iterator[Acquittal]:
    """Every shipped mechanism and utility on both hostile pairs of graphs."""
    for name, mechanism in MECHANISMS.items():
        for utility, part in UTILITIES.items():
            for graphs, world in WORLDS.items():
                for claim in depth.claims:
                    say(f"black box: {name}, {utility}, {graphs}, epsilon {claim}")
                    method = Method(world.rule, part, mechanism)
                    bound = _audit(world, _secret(world), partial(_always, method), claim, depth.draws)
                    graphs_ = (world.graph(*missing) for missing in _secret(world))
                    laws = [inspect(graph, world.context, TARGET, method).probabilities(claim) for graph in graphs_]
                    yield Acquittal(name, utility, graphs, claim, bound, float(np.log(distinguish(*laws).ratio)))


def convictions(depth: Depth, say: Callable[[str], None]) -> Iterator[Conviction]:
    """Every broken twin, and the honest part beside it."""
    for twin, (claim, draws, graphs, build) in _black_box_twins(ONE_AGAINST_MANY).items():
        say(f"black box: {twin}")
        bounds = [_audit(ONE_AGAINST_MANY, graphs, build, claim, draws) for _ in range(depth.repeats)]
        honest = _honest_audit(graphs, claim, draws)
        middle = sorted(bound.epsilon for bound in bounds)[len(bounds) // 2]
        yield Conviction(
            twin,
            f"black box, {draws} draws a side",
            depth.repeats,
            sum(bound.convicts(float(claim)) for bound in bounds),
            f"epsilon proven to be at least {middle:.2f} in half of the trials, {claim} claimed",
            not honest.convicts(float(claim)),
        )
    for twin, checker, check in _certain_twins():
        say(f"{checker}: {twin}")
        rejected, seen, passes = check()
        yield Conviction(twin, checker, 1, int(rejected), seen, passes)


def _black_box_twins(world: HostileWorld) -> dict[str, tuple[str, int, Graphs, Build]]:
    """What it claims, how many draws convict it, between which graphs, and how it is made."""
    rule, secret, leaf = world.rule, _secret(world), ((), (LEAF,))
    candidates = rule.propose(world.context, TARGET)
    return {
        "half the sensitivity": ("4", 1600, secret, lambda _: Method(rule, mechanism=twins.Overconfident())),
        "support filtered by validity": ("1", 200, secret, lambda graph: Method(twins.FilteredSupport(graph, rule))),
        "order that follows private edges": ("1", 200, leaf, lambda graph: Method(twins.PrivateOrder(graph, rule))),
        "base measure that peeks": (
            *("1", 800, leaf),
            lambda graph: Method(rule, mechanism=twins.PeekingMeasure.of(graph, candidates)),
        ),
        "subset selection times a base measure": (
            *("4", 1600, secret),
            lambda _: Method(rule, mechanism=twins.MeasuredSubset(heavy=20, at=LEAF)),
        ),
    }


def _certain_twins() -> Iterator[tuple[str, str, Check]]:
    """Checkers that leave nothing to chance."""
    hostile, replay = "exact ratio on hostile scores", "ledger replay"
    yield "half the sensitivity", hostile, partial(_hostile, twins.Overconfident())
    yield "subset selection times a base measure", hostile, partial(_hostile, twins.MeasuredSubset())
    yield "float32 sampler", "exact law of the draw", _float32
    yield "refunds", replay, partial(_replayed, twins.Refunds)
    yield "free retries", replay, partial(_replayed, twins.FreeRetries)
    yield "charge after read", replay, partial(_replayed, twins.ChargesLater)
    yield "seeded generator", "restart test", _restarted
    rule = ONE_AGAINST_MANY.rule
    loud = partial(_differential, lambda graph: Method(twins.LoudRule(graph, rule)))
    yield "error that depends on an edge", "differential run", loud
    failing = partial(_differential, lambda graph: Method(rule, twins.FailingUtility(graph.has_edge(TARGET, LEAF))))
    yield "failure that depends on an edge", "differential run", failing


def _hostile(mechanism: Mechanism) -> tuple[bool, str, bool]:
    ratio = hostile_ratio(mechanism, FOUR)
    honest = all(below_bound(hostile_ratio(one, FOUR), FOUR) for one in MECHANISMS.values())
    return not below_bound(ratio, FOUR), f"ratio e^{np.log(float(ratio)):.2f}, e^{FOUR} claimed", honest


def _float32() -> tuple[bool, str, bool]:
    scores = Scores(np.array([0, 10, 0, 2, 9, 7, 7, 0, 0, 2]), SHORT)
    found = deviation(twins.Float32(), scores, Fraction(8))
    honest = all(deviation(one, scores, Fraction(8)) <= TOLERANCE for one in MECHANISMS.values())
    return found > TOLERANCE, f"a probability is off by a share of {float(found):.1e}; 2^-127 is allowed", honest


def _replayed(ledger: type[MemoryLedger]) -> tuple[bool, str, bool]:
    broken = conduct.replay(ledger)
    return bool(broken), "; ".join(broken), not conduct.replay(MemoryLedger)


def _restarted() -> tuple[bool, str, bool]:
    def seeded() -> Vault:
        vault = ONE_AGAINST_MANY.vault(build=_honest)
        vault._randomness = twins.SeededRandomness()  # type: ignore[assignment]
        return vault

    same = conduct.repeats(seeded)
    return (
        same,
        "twenty answers repeat after a restart",
        not conduct.repeats(lambda: ONE_AGAINST_MANY.vault(build=_honest)),
    )


def _differential(build: Build) -> tuple[bool, str, bool]:
    world = ONE_AGAINST_MANY
    found, honest = (
        conduct.differences(
            partial(world.vault, build=one, limit=TEN), partial(world.vault, LEAF, build=one, limit=TEN)
        )
        for one in (build, _honest)
    )
    return bool(found), "answered differently: " + ", ".join(found), not honest


def _honest(_: PrivateGraph) -> Method:
    return Method(ONE_AGAINST_MANY.rule)


def _always(method: Method, _: PrivateGraph) -> Method:
    return method


def _secret(world: HostileWorld) -> Graphs:
    """The graph with the secret edge and the one without it, by what is missing."""
    return (), (world.secret,)


@lru_cache(maxsize=8)
def _honest_audit(graphs: Graphs, claim: str, draws: int) -> Bound:
    """What the same questions prove about the honest method."""
    return _audit(ONE_AGAINST_MANY, graphs, _honest, claim, draws)


def _audit(world: HostileWorld, graphs: Graphs, build: Build, claim: str, draws: int) -> Bound:
    first, second = (world.vault(*missing, build=build) for missing in graphs)
    return audit(question(first, TARGET, claim), question(second, TARGET, claim), draws)
