"""Space on the disk of a ledger's file that is set aside, so that what is paid can be stored when the disk is full.

Zone: gate
Claim: a charge is refused unless the reserve is whole; an answer may use it up.
Why: the reserve is a file of allocated blocks beside the ledger. `keep` allocates it before a charge; where storing an
    answer finds the disk full, `used` empties it for the time of that step and allocates it again afterwards.
Check: tests/gate/test_one_draw.py::test_a_full_disk_refuses_charges_and_stores_what_is_paid
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final

from privcfs.errors import LedgerFull

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

LEAST = 1 << 20  # bytes: the pages that storing some hundred answers touches
COPIES = 3  # of an answer: in the write-ahead log, in the table, and room for their pages


@final
class Reserve:
    """One file beside a ledger's own, shared by all processes."""

    def __init__(self, ledger: Path) -> None:
        """`ledger` is the ledger's real file."""
        self._path = ledger.with_name(ledger.name + "-reserve")

    def keep(self, room: int) -> None:
        """Allocates the reserve, large enough for answers of `room` bytes in all, or refuses."""
        size = LEAST + COPIES * room
        with self._alone() as file:
            if os.fstat(file).st_size < size:
                try:
                    allocate(file, size)
                except OSError:
                    raise LedgerFull(
                        f"the disk of ledger {self._path.name.removesuffix('-reserve')} has no room for the answer; "
                        "nothing was charged. Make room and ask again."
                    ) from None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Frees the reserved space while a block of code runs, and reserves it again afterwards."""
        with self._alone() as file:
            size = os.fstat(file).st_size
            os.ftruncate(file, 0)
            try:
                yield
            finally:
                with suppress(OSError):  # the next charge tries again, and is refused where that fails
                    allocate(file, max(size, 1))

    @contextmanager
    def _alone(self) -> Iterator[int]:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            raise LedgerFull(f"the reserve {self._path.name} cannot be made; check space and rights.") from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_UN)  # a child of a fork would keep the lock of a file that is only closed
            os.close(file)


def allocate(file: int, size: int) -> None:
    """Takes the blocks; a system or disk that cannot allocate gets zeros written instead."""
    try:
        os.posix_fallocate(file, 0, size)
    except AttributeError:  # not on every system
        os.pwrite(file, bytes(size), 0)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.pwrite(file, bytes(size), 0)
