"""The file that keeps a ledger's newest row."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privcfs.errors import InputError, SettingsError
from privcfs.public.head import Head

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]


def read_head(path: Path) -> Head | None:
    """The head that a file keeps, if the file exists."""
    try:
        return Head.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, InputError) as error:
        raise SettingsError(f"head file {path} cannot be read: {error}") from None


def write_head(path: Path, head: Head) -> None:
    """Replaces the file in one step, never by an older head: a crash or a second writer leaves one whole head."""
    try:
        with _alone_in(path.parent):
            kept = read_head(path)
            if kept is not None and kept.graph_id == head.graph_id and kept.position > head.position:
                return
            fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
            with fresh.open("w", encoding="utf-8") as file:
                file.write(head.to_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"head file {path} cannot be written: {error}.") from None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time, where the system can lock folders."""
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
