"""A sketch under way: what is drawn already, piece by piece, in a folder of its own beside the sketch.

Zone: gate
Claim: a piece that was kept is not drawn again; one process at a time works on a sketch; a pair has one answer.
Why: a piece is synced before its name appears, and read back if it is there. The folder is locked. Pieces of another
    division of pairs, which rounding on another machine could give, are dropped before anything of them was public.
Check: tests/gate/test_sketch_files.py::test_a_sketch_that_was_interrupted_goes_on_where_it_was
"""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from privcfs.errors import SketchError
from privcfs.gate.publishing import Room, failing
from privcfs.tables.store import sync_folder

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

Piece = Mapping[str, Any]  # arrays
Keep = Callable[[str, Callable[[], Piece]], Piece]
DIVISION, ROOM = "division", "room"


def at_once(_: str, make: Callable[[], Piece]) -> Piece:
    """Keeps nothing: for sketches that are drawn in one go."""
    return make()


@final
class Draft:
    """The folder of one sketch; `draft_of` opens it."""

    def __init__(self, folder: Path, target: Path, room: Room) -> None:
        """`target` is where the sketch goes, and `room` the space that is left for it and its pieces."""
        self._folder, self._target, self.room = folder, target, room

    def divide(self, division: str) -> None:
        """Says by its digest how pairs are divided into pieces; pieces of another division are dropped."""
        path = self._folder / DIVISION
        with failing(self._target):
            if path.exists() and path.read_text(encoding="ascii") != division:
                for piece in self._folder.glob("*.npz"):
                    piece.unlink()
            path.write_text(division, encoding="ascii")

    def piece(self, name: str, make: Callable[[], Piece]) -> Piece:
        """What was kept under a name, or else what `make` draws, kept before it is given out."""
        path, fresh = self._folder / f"{name}.npz", self._folder / f"{name}.part"
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), np.load(path) as kept:
            return {key: kept[key] for key in kept.files}
        made = make()
        self.room.give_back(sum(array.nbytes for array in made.values()))
        with failing(self._target):
            with fresh.open("wb") as file:
                np.savez(file, **made)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            sync_folder(self._folder)
        return made

    @property
    def is_begun(self) -> bool:
        """Whether a piece is there."""
        return any(self._folder.glob("*.npz"))


@contextmanager
def draft_of(target: Path, name: str, size: int) -> Iterator[Draft]:
    """Opens the draft of a sketch, with room for so many bytes less what is kept already; for one process alone.

    What was drawn stays there if the block fails; `drop_draft` removes it.
    """
    folder = _folder(target, name)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise SketchError(f"{target.name} cannot be written: {error.strerror}. Nothing was charged.") from None
    try:
        _take(lock, target)
        kept = sum(piece.stat().st_size for piece in folder.glob("*.npz"))
        try:
            room = Room(folder / ROOM, target, max(size - kept, 0))
            draft = Draft(folder, target, room)
            yield draft
        finally:
            (folder / ROOM).unlink(missing_ok=True)
            if not any(folder.glob("*.npz")):
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def drop_draft(target: Path, name: str) -> None:
    """Removes what was drawn for a sketch that is public."""
    shutil.rmtree(_folder(target, name), ignore_errors=True)


def _folder(target: Path, name: str) -> Path:
    return target.with_name(f".{target.name}.{name}.draft")


def _take(lock: int, target: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SketchError(f"another process makes {target.name} now; wait until it is there.") from None
