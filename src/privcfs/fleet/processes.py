"""Parts of a job in several processes of this machine, of which any may die."""

import signal
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context

from privcfs.fleet.parts import Done, Job, Part, release_far

AHEAD = 4  # parts that wait for each process
RETRIES = 20  # after the death of a process


def release_in_processes(job: Job, parts: Iterable[Part], workers: int) -> Generator[Done, None, None]:
    """What came of each part, in order; after a refusal, of those that were under way.

    Where a process dies, the parts that were under way are repeated: request ids pay once.
    """
    left, under_way, deaths = iter(parts), deque[tuple[Part, Future[Done] | None]](), 0
    pool = _started(workers)
    try:
        while True:
            under_way += [(part, None) for part in islice(left, AHEAD * workers - len(under_way))]
            if not under_way:
                return
            try:
                under_way = deque((one, known or pool.submit(release_far, job, one)) for one, known in under_way)
                first = under_way[0][1]
                assert first is not None
                done = first.result()
            except BrokenProcessPool:
                deaths += 1
                under_way = deque((one, None) for one, _ in under_way)
                pool.shutdown()
                if deaths <= RETRIES:
                    pool = _started(workers)
                    continue
                done = Done([], "PrivcfsError", "processes of this machine die again and again.")
                under_way = deque([under_way[0]])
            under_way.popleft()
            left = iter(()) if done.error else left
            yield done
    finally:
        pool.shutdown(cancel_futures=True)


def _started(workers: int) -> ProcessPoolExecutor:
    """Fresh processes: they inherit neither an opened vault nor its connections."""
    return ProcessPoolExecutor(workers, get_context("spawn"), _leave_interrupts_to_the_parent)


def _leave_interrupts_to_the_parent() -> None:
    """A key press reaches every process; the parent waits for the parts that are under way, and stops."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
