"""One thread for matrix products while something is evaluated.

Zone: private
Claim: sums of an evaluation come out alike, to the last bit, on any machine with the same library, whatever else runs.
Why: the order of a sum depends on the number of threads, which is one for as long as any evaluation is going on; two
    evaluations side by side then do not compete for cores either.
Check: tests/private/test_one_thread.py::test_the_last_one_out_sets_the_number_back
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, final

from threadpoolctl import ThreadpoolController

from privcfs.forks import Order, at_fork


@final
class OneThread:
    """Counts the evaluations that are going on in this process, and keeps the number of threads from before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: list[tuple[Any, int]] = []  # libraries, and how many threads each had
        self.evaluations = 0
        at_fork(
            Order.MATRIX_THREADS,
            before=self._lock.acquire,
            in_parent=self._lock.release,
            in_child=self._start_anew,
        )

    def enter(self) -> None:
        """The first evaluation sets the number of threads to one."""
        with self._lock:
            if not self.evaluations:
                self._before = [(library, library.get_num_threads()) for library in _libraries()]
                for library, _ in self._before:
                    library.set_num_threads(1)
            self.evaluations += 1

    def leave(self) -> None:
        """The last evaluation sets the number of threads back."""
        with self._lock:
            self.evaluations -= 1
            if not self.evaluations:
                self._set_back()

    def _start_anew(self) -> None:
        """A child of a fork has none of the threads that were evaluating."""
        if self.evaluations:
            self.evaluations = 0
            self._set_back()
        self._lock.release()

    def _set_back(self) -> None:
        for library, threads in self._before:
            library.set_num_threads(threads)


ONE_THREAD = OneThread()


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs a block with one thread for matrix products."""
    ONE_THREAD.enter()
    try:
        yield
    finally:
        ONE_THREAD.leave()


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
