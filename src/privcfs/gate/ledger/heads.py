"""The file that keeps the newest row of a ledger, so that a ledger that was set back is refused.

Zone: gate
Claim: the file only ever moves forward along one chain, and a reader always finds one whole head in it.
Why: a head replaces another only if the ledger holds the other; readers and writers lock the file; a head is written in
    place at a fixed length, within one sector unless the graph's id is very long, so that a crash leaves the old one or
    the new one, a symbolic link stays a link, and a full disk is no obstacle. The ledger is durable before its head is
    written, so the file may lag behind the ledger after a loss of power, and is never ahead of it.
Check: tests/gate/test_set_back.py::test_the_head_file_never_moves_to_another_chain
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from privcfs.errors import InputError, SettingsError
from privcfs.public.head import Head
from privcfs.tables.store import sync_folder

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

SECTOR = 512  # bytes that a disk writes as one
LONGEST = 1 << 16


@final
class HeadFile:
    """One head in one file, for any number of processes; only its user may read it."""

    __slots__ = ("path",)

    def __init__(self, path: str | Path) -> None:
        """`path` is where the head is, or will be."""
        self.path = Path(path)

    def read(self, *, to_write: bool = False) -> Head | None:
        """The head, or None where there is no such file; with `to_write`, the file must be one that can be written."""
        try:
            with self._opened(os.O_RDWR if to_write else os.O_RDONLY) as file:
                return _head(file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, InputError) as error:
            what = "written" if to_write and isinstance(error, OSError) else "read"
            raise SettingsError(f"head file {self.path.name} cannot be {what}: {_reason(error)}") from None

    def sync(self) -> None:
        """Makes what was written durable."""
        try:
            file = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise SettingsError(f"head file {self.path.name} cannot be written: {_reason(error)}") from None

    def advance(self, newest: Head, holds: Callable[[Head], bool]) -> bool:
        """Replaces the kept head by the newest, unless it is as new; False where the ledger does not hold the kept one.

        `holds` says whether the ledger that `newest` comes from contains a head. A kept head that is ahead of `newest`
        is left alone: another process may have written since.
        """
        try:
            if not self.path.exists() and self._create(newest):
                return True
            with self._opened(os.O_RDWR) as file:
                kept = _head(file)
                if kept.graph_id != newest.graph_id:
                    return False
                if kept.position <= newest.position and not holds(kept):
                    return False
                if kept.position < newest.position:
                    os.pwrite(file, _text(newest), 0)
                return True
        except (OSError, ValueError, InputError) as error:
            raise SettingsError(f"head file {self.path.name} cannot be written: {_reason(error)}") from None

    def _create(self, head: Head) -> bool:
        """Puts a whole new file in place in one step; False where another process was faster."""
        path = self.path.resolve()  # where a link leads, if it is one
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, _text(head))
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(fresh, path)
        except FileExistsError:
            return False
        finally:
            fresh.unlink()
        sync_folder(path.parent)
        return True

    @contextmanager
    def _opened(self, how: int) -> Iterator[int]:
        file = os.open(self.path, how)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH if how == os.O_RDONLY else fcntl.LOCK_EX)
            yield file
        finally:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_UN)  # a child of a fork would keep the lock of a file that is only closed
            os.close(file)


def _reason(error: Exception) -> str:
    """Why something failed, without a path: analysts may read it and must not learn where the owner's files are."""
    return f"{error.strerror or type(error).__name__}." if isinstance(error, OSError) else str(error)


def refuse_others(path: Path) -> None:
    """Takes rights to an existing file from everyone but its user and a group that was given some on purpose."""
    try:
        mode = path.stat().st_mode
        if mode & 0o007:
            path.chmod(mode & 0o770)
    except OSError:  # another user's file: that user decides
        return


def _head(file: int) -> Head:
    return Head.from_json(os.pread(file, LONGEST, 0).decode("utf-8"))


def _text(head: Head) -> bytes:
    """Padded to whole sectors: a shorter text leaves nothing of a longer one behind it."""
    text = head.to_json().encode()
    return text.ljust((len(text) // SECTOR + 1) * SECTOR - 1) + b"\n"
