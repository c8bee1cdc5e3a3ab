"""How time, memory and the machine itself are measured."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple, final

import numpy as np

MATRIX = 1024
PRODUCTS = 24  # that one process multiplies while scaling is measured
# `privcfs`, which tells on standard error the most kilobytes that it ever had in memory
RUN_PRIVCFS = """
import sys
from privcfs.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
with open("/proc/self/status") as status:
    sys.stderr.write(status.read().split("VmHWM:")[1].split()[0])
"""


def median(work: Callable[[], object], repeats: int) -> float:
    """Seconds, after one call that is not counted."""
    work()
    return float(np.median([once(work) for _ in range(repeats)]))


def once(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@final
class Spent(NamedTuple):
    """Seconds of one call: by the clock, and of the thread's processor time, which leaves out waits and others."""

    wall: float
    work: float

    @classmethod
    def median(cls, calls: Sequence["Spent"]) -> "Spent":
        """The median of each."""
        return cls(*(float(np.median(column)) for column in zip(*calls, strict=True)))

    def __str__(self) -> str:
        return f"{1e3 * self.wall:.1f} ms, processor time {1e3 * self.work:.1f} ms"


def spent(work: Callable[[], object]) -> Spent:
    """Of one call."""
    started, used = time.perf_counter(), time.thread_time()
    work()
    return Spent(time.perf_counter() - started, time.thread_time() - used)


def multiply() -> Callable[[], object]:
    """A product of matrices, single precision: what the machine can do."""
    matrix = np.random.default_rng(0).random((MATRIX, MATRIX), np.float32)
    return lambda: matrix @ matrix


def many_products() -> None:
    """Enough of them to be timed in several processes."""
    work = multiply()
    for _ in range(PRODUCTS):
        work()


def side_by_side(works: Sequence[Callable[[], object]]) -> float:
    """Seconds until the last of several processes has done its work; starting them does not count."""
    context = get_context("fork")
    barrier = context.Barrier(len(works) + 1)

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        work()
        barrier.wait()

    started = [context.Process(target=run, args=(work,)) for work in works]
    for process in started:
        process.start()
    barrier.wait()
    seconds = once(barrier.wait)
    for process in started:
        process.join()
    return seconds


def scaling(work: Callable[[], object], processes: int) -> float:
    """How many times as much so many processes do in the same time as one."""
    return processes * side_by_side([work]) / side_by_side([work] * processes)


def status_megabytes(field: str) -> float:
    """What Linux says of this process: VmRSS is now, VmHWM the most there ever was."""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(file.read().split(f"{field}:")[1].split()[0]) / 1024


@contextmanager
def stopwatch(spots: dict[str, tuple[Any, str]]) -> Iterator[dict[str, list[float]]]:
    """Times every call of some functions, each named by its owner and attribute."""
    kept = {name: getattr(owner, attribute) for name, (owner, attribute) in spots.items()}
    seconds: dict[str, list[float]] = {name: [] for name in spots}

    def watch(name: str) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return kept[name](*values, **named)
            finally:
                seconds[name].append(time.perf_counter() - started)

        return call

    try:
        for name, (owner, attribute) in spots.items():
            setattr(owner, attribute, watch(name))
        yield seconds
    finally:
        for name, (owner, attribute) in spots.items():
            setattr(owner, attribute, kept[name])


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))
