"""The locks of the ledgers in a process, and what a fork does with them.

Zone: gate
Claim: a child of a fork finds both locks free, and no fork waits for ever.
Why: a fork takes both locks before it happens and releases them on both sides, LOCK before SEEING, as every writer
    does (forks.py).
Check: tests/contracts/test_ledgers.py::test_a_fork_while_threads_write_finds_the_locks_free
"""

from threading import Lock, RLock

from privcfs.forks import Order, at_fork

SEEING = Lock()  # held by a thread that remembers the newest row
at_fork(Order.NEWEST_ROW, before=SEEING.acquire, in_parent=SEEING.release, in_child=SEEING.release)
LOCK = RLock()  # held by a thread that uses a connection
at_fork(Order.CONNECTIONS, before=LOCK.acquire, in_parent=LOCK.release, in_child=LOCK.release)
