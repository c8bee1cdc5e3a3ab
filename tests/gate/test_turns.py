"""Turns are given in the order in which they were asked for."""

import threading
import time
from typing import Any

from privcfs.gate.turns import Turns


def overtaken(turns: Any) -> int:
    """How many turns a greedy thread takes while another waits for one."""
    order: list[str] = []
    started = threading.Event()

    def greedy() -> None:
        for _ in range(20):
            with turns:
                order.append("greedy")
                started.set()
                time.sleep(0.005)

    def modest() -> None:
        started.wait()
        with turns:
            order.append("modest")

    threads = [threading.Thread(target=one) for one in (greedy, modest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 21
    return order.index("modest")


def test_whoever_came_first_goes_first() -> None:
    assert overtaken(Turns()) <= 2


def test_a_thread_that_has_a_turn_may_take_it_again() -> None:
    turns = Turns()
    with turns, turns:
        pass
    free = threading.Thread(target=turns.acquire)
    free.start()
    free.join(timeout=5)
    assert not free.is_alive()
