"""A real small file system that can be filled up and emptied: a tmpfs, which needs root on Linux."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = 4096


class SmallDisk:
    """A mounted file system of a few megabytes, and a filler file that takes what it is told to take."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, leaving: int = 0) -> None:
        """Takes all space but so many bytes."""
        with self._filler.open("ab") as file:
            free = os.statvfs(self.folder).f_bavail * PAGE - leaving
            try:
                if free > 0:
                    os.posix_fallocate(file.fileno(), file.tell(), free)
            except OSError:  # somebody else was faster
                pass

    def empty(self) -> None:
        """Gives all of it back."""
        self._filler.unlink(missing_ok=True)


def can_mount() -> bool:
    """Whether this user may mount a tmpfs here."""
    try:
        with small_disk(1 << 20):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def small_disk(size: int) -> Iterator[SmallDisk]:
    """Mounted for the time of a `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder]
        subprocess.run(mount, check=True, capture_output=True)
        try:
            yield SmallDisk(Path(folder))
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)
