"""The locks of the ledgers in a process, and what a fork does with them.

Zone: gate
Claim: a child of a fork finds both locks free, and no fork waits for ever.
Why: a fork takes both locks before it happens and releases them on both sides. Python calls the `before` handlers in
    the reverse order of their registration, so a fork takes LOCK before SEEING, as every writer does.
Check: tests/contracts/test_ledgers.py::test_a_fork_while_threads_write_finds_the_locks_free
"""

import os
from threading import Lock, RLock

SEEING = Lock()  # held by a thread that remembers the newest row
os.register_at_fork(before=SEEING.acquire, after_in_parent=SEEING.release, after_in_child=SEEING.release)
LOCK = RLock()  # held by a thread that uses a connection
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
