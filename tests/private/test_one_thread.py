"""One thread for matrix products while something is evaluated; the number from before afterwards, forks included."""

import os
from threading import Event, Thread

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from privcfs.private.one_thread import ONE_THREAD, one_thread


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_the_last_one_out_sets_the_number_back() -> None:
    assert np.ones((2, 2)).sum() == 4, "a library for matrix products is loaded"
    with threadpool_limits(2):
        with one_thread():
            with one_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_a_fork_in_the_middle_starts_afresh() -> None:
    entered, leave = Event(), Event()

    def evaluate() -> None:
        with one_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(2):
        other = Thread(target=evaluate)
        other.start()
        entered.wait(10)
        child = os.fork()
        if child == 0:
            good = not ONE_THREAD.evaluations and blas_threads() == {2}
            with one_thread():
                good = good and blas_threads() == {1}
            os._exit(0 if good and blas_threads() == {2} else 1)
        _, status = os.waitpid(child, 0)
        leave.set()
        other.join()
        assert os.waitstatus_to_exitcode(status) == 0
        assert blas_threads() == {2}
