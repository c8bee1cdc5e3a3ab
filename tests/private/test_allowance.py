"""Work is counted from sizes: the same on a busy machine, in nanoseconds, and before it is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs import PrivateGraph, PublicContext
from privcfs.private.allowance import UNITS, UNLIMITED, Allowance, Overrun
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.gcn_work import STEP
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.tables.neighbours import Neighbours
from tests.clock import Clock
from tests.private.test_evaluators import module
from tests.worlds import World, random_gcn, random_pairs, random_world

THREADS = 12


def wide_world(seed: int = 0, model: Any = None) -> World:
    """A hundred nodes, large enough that an evaluation takes milliseconds."""
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((100, 20)) < 0.5).astype(np.float32))
    context = PublicContext(features, random_pairs(rng, 100, 0.05), model or random_gcn(rng, 20))
    return World(context, random_pairs(rng, 100, 0.2))


def evaluate_all(world: World, allowance: Any, targets: range = range(8)) -> None:
    """One question about several nodes, with one allowance, as `select` asks."""
    graph, rule = world.graph, SmallSets()
    for target in targets:
        evaluate(graph, world.context, rule.propose(world.context, target), allowance)


def counted(world: World, targets: range = range(8)) -> int:
    allowance = Allowance(float("inf"))
    evaluate_all(world, allowance, targets)
    return allowance.spent


@contextmanager
def load() -> Iterator[None]:
    """Other questions, and threads that only take processor time."""
    over = Event()
    other = wide_world(1)

    def ask() -> None:
        while not over.is_set():
            evaluate_all(other, UNLIMITED, range(2))

    def spin() -> None:
        while not over.is_set():
            sum(range(10_000))

    threads = [Thread(target=ask if number < 2 else spin) for number in range(THREADS)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in threads:
            one.join()


def is_given_up(world: World, allowance: Any) -> bool:
    try:
        evaluate_all(world, allowance)
    except Overrun:
        return True
    return False


def decides_alike(world: World, make: Callable[[], Any]) -> None:
    """Whether an evaluation is given up must not depend on the load of the process."""
    alone = is_given_up(world, make())
    with load():
        assert is_given_up(world, make()) == alone


@pytest.mark.parametrize("kind", ["fast", "generic"])
def test_the_count_is_the_same_whatever_else_the_process_does(kind: str) -> None:
    """The law of an answer depends on the graph and public data alone, to the last counted unit."""
    world = wide_world() if kind == "fast" else random_world(0, nodes=10, model=module("gcn", 6, 3))
    targets = range(8 if kind == "fast" else 2)
    first = counted(world, targets)
    assert counted(world, targets) == first, "whatever is kept between evaluations"
    with load():
        assert counted(world, targets) == first
    if kind == "fast":
        for spare in (0, -1):
            decides_alike(world, lambda units=first + spare: Allowance(units / UNITS))  # type: ignore[misc]


def test_the_check_rejects_a_clock_under_the_load_of_other_questions() -> None:
    world = wide_world()
    evaluate_all(world, UNLIMITED)
    started = perf_counter()
    evaluate_all(world, UNLIMITED)
    seconds = 3 * (perf_counter() - started)
    with pytest.raises(AssertionError):
        decides_alike(world, lambda: Clock(seconds))


def star(neighbours: int) -> tuple[PrivateGraph, PublicContext]:
    """A target with so many private neighbours, twelve of which are public."""
    pairs: NDArray[np.int64] = np.array([(0, other) for other in range(1, neighbours + 1)])
    rng = np.random.default_rng(0)
    features = sp.csr_array((rng.random((neighbours + 1, 20)) < 0.5).astype(np.float32))
    graph = PrivateGraph.from_edges(pairs, number_of_nodes=neighbours + 1)
    return graph, PublicContext(features, pairs[:12], random_gcn(rng, 20))


def nanoseconds(units: Callable[[Allowance], int]) -> None:
    """Units are the nanoseconds of one core, within a factor that allows for other machines and for a busy one."""
    for neighbours in (50, 3000):
        graph, context = star(neighbours)
        candidates = SmallSets().propose(context, 0)
        evaluate(graph, context, candidates, UNLIMITED)
        allowance = Allowance(float("inf"))
        started = thread_time()
        evaluate(graph, context, candidates, allowance)
        assert 1 / 8 < units(allowance) / (UNITS * (thread_time() - started)) < 8, neighbours


def test_a_unit_is_about_a_nanosecond() -> None:
    nanoseconds(lambda allowance: allowance.spent)


def test_the_check_rejects_a_count_that_leaves_sizes_out() -> None:
    with pytest.raises(AssertionError):
        nanoseconds(lambda _: 20 * STEP)


def test_more_neighbours_are_more_work() -> None:
    spent = []
    for neighbours in (12, 100, 1000):
        graph, context = star(neighbours)
        allowance = Allowance(float("inf"))
        evaluate(graph, context, SmallSets().propose(context, 0), allowance)
        spent.append(allowance.spent)
    assert spent == sorted(set(spent))


def test_work_is_counted_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists of a hub's neighbours are not even read."""
    graph, context = star(3000)
    read: list[int] = []
    honest = Neighbours.neighbours_of

    def noting(self: Neighbours, nodes: NDArray[np.int64]) -> Any:
        read.append(len(nodes))
        return honest(self, nodes)

    monkeypatch.setattr(Neighbours, "neighbours_of", noting)
    with pytest.raises(Overrun):
        evaluate(graph, context, SmallSets().propose(context, 0), Allowance(5 * STEP / UNITS))
    assert max(read, default=0) < 100


def test_an_allowance_is_spent_to_the_last_unit_and_no_further() -> None:
    allowance = Allowance(1)
    allowance.spend(UNITS - 1)
    allowance.spend(1)
    with pytest.raises(Overrun):
        allowance.spend(1)
    UNLIMITED.spend(10**30)
