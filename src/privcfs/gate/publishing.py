"""Room on a disk for a file, taken before the file is paid, and the step that makes the file public.

Zone: gate
Claim: the file appears wholly or not at all, and durably; a disk without room for it is noticed before a charge.
Why: blocks are allocated in a file beside it. The content is written there, synced, and renamed over the path.
Check: tests/gate/test_sketch_files.py::test_a_disk_without_room_is_noticed_before_anything_is_charged
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import final

from privcfs.errors import SketchError
from privcfs.gate.ledger.reserve import allocate
from privcfs.tables.store import sync_folder


@final
class Room:
    """Allocated space beside a file that will be published."""

    def __init__(self, path: Path, target: Path, size: int) -> None:
        """`path` holds the space until `target` is published; `size` is in bytes."""
        self._path, self._target, self._size = path, target, size
        try:
            with path.open("wb") as file:
                if size:
                    allocate(file.fileno(), size)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise SketchError(f"{target.name} cannot be written: {error.strerror}. Nothing was charged.") from None

    def give_back(self, size: int) -> None:
        """Frees so many bytes for another file of the same sketch."""
        self._size = max(self._size - size, 0)
        os.truncate(self._path, self._size)

    def publish(self, content: Iterable[bytes]) -> None:
        """Writes the content, piece by piece, and makes it public."""
        with failing(self._target):
            with self._path.open("r+b") as file:
                for piece in content:
                    file.write(piece)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            self._path.replace(self._target)
            sync_folder(self._target.parent)

    def remove(self) -> None:
        """Gives all of it back."""
        self._path.unlink(missing_ok=True)


@final
class failing:  # noqa: N801 - read as a part of a sentence: with failing(path): ...
    """Turns errors of the disk into one that says that nothing is lost."""

    def __init__(self, target: Path) -> None:
        """`target` is the file that was to be written."""
        self._target = target

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise SketchError(
                f"{self._target.name} is paid and could not be written: {error.strerror}. Ask again: it will be the "
                "same sketch, and costs nothing more."
            ) from None
