"""One thread for matrix products while something is evaluated: sums then come out alike, to the last bit, on any
machine with the same library, and two evaluations side by side do not fight over cores.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

LOCK = Lock()
BEFORE: list[tuple[Any, int]] = []  # libraries and how many threads each had
INSIDE: list[None] = []  # one for each evaluation that is going on


@contextmanager
def one_thread() -> Iterator[None]:
    """The first one in sets the number of threads to one, the last one out sets it back."""
    with LOCK:
        if not INSIDE:
            BEFORE[:] = [(library, library.get_num_threads()) for library in _libraries()]
            for library, _ in BEFORE:
                library.set_num_threads(1)
        INSIDE.append(None)
    try:
        yield
    finally:
        with LOCK:
            INSIDE.pop()
            for library, threads in () if INSIDE else BEFORE:
                library.set_num_threads(threads)


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _afresh() -> None:
    """A fork has none of the threads that were evaluating."""
    if INSIDE:
        INSIDE.clear()
        for library, threads in BEFORE:
            library.set_num_threads(threads)
    LOCK.release()


os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=_afresh)
