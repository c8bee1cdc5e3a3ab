"""What a fork does with this process: the only place that hooks into `os.fork`.

A child of a fork has the memory of its parent but only one of its threads. A lock that another thread held would stay
locked in the child for ever, and a connection or a draw that both sides use would be used twice. So before a fork every
lock is taken, in the order in which a release takes them, which rules out deadlocks; afterwards each side releases
them, and the child starts anew what must not be shared.
"""

import os
from collections.abc import Callable
from enum import IntEnum, auto
from typing import NamedTuple


class Order(IntEnum):
    """In which order locks are taken, by a release and before a fork alike; handlers after a fork run backwards."""

    ANSWERING = auto()  # the turn of an answer (gate/vault.py)
    WARNINGS = auto()  # the process-wide filter of warnings (gate/vault.py)
    STORING = auto()  # draws that are not stored yet (gate/storing.py)
    CONNECTIONS = auto()  # connections of ledgers (gate/ledger)
    NEWEST_ROW = auto()  # the newest row that a ledger has seen (gate/ledger/chain.py)
    CLAIMS = auto()  # the table of claims on request ids (gate/ledger/claims.py)
    FAILURES = auto()  # counts for the owner (gate/failures.py)
    MATRIX_THREADS = auto()  # the number of threads of matrix products (private/one_thread.py)


def _nothing() -> object:
    return None


class _Handler(NamedTuple):
    order: Order
    before: Callable[[], object]
    in_parent: Callable[[], object]
    in_child: Callable[[], object]


HANDLERS: list[_Handler] = []


def at_fork(
    order: Order,
    *,
    before: Callable[[], object] = _nothing,
    in_parent: Callable[[], object] = _nothing,
    in_child: Callable[[], object] = _nothing,
) -> None:
    """Adds what happens before a fork, and after it in the parent and in the child, at a place in the order."""
    HANDLERS.append(_Handler(order, before, in_parent, in_child))
    HANDLERS.sort(key=lambda one: one.order)  # stable: handlers of the same place keep the order of registration


def _before() -> None:
    for one in HANDLERS:
        one.before()


def _in_parent() -> None:
    for one in reversed(HANDLERS):
        one.in_parent()


def _in_child() -> None:
    for one in reversed(HANDLERS):
        one.in_child()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
