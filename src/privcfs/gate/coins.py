"""Random words that follow from a secret key, so that what they decide can be drawn again and comes out the same.

Zone: gate
Claim: whoever does not have the key cannot tell the words from uniform ones; one key gives one sequence for each use.
Why: the words are the output of SHAKE-256 for the key, the name of the use and the number of the block. The key has 256
    bits of the system's generator. A file keeps it from before the charge until what was drawn is public, so that a
    crash or a full disk never leads to a second draw; then the file is removed.
Check: tests/gate/test_sketching.py::test_a_sketch_that_could_not_be_written_is_drawn_again_from_the_same_coins
"""

import hashlib
import os
import secrets
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SketchError
from privcfs.gate.randomness import Randomness
from privcfs.tables.store import sync_folder

KEY = 32  # bytes
WORD = 8
BLOCK = 1 << 20  # words


@final
class Coins(Randomness):
    """Uniform words for one use of one key, in blocks."""

    __slots__ = ("_block", "_key", "_use")

    def __init__(self, key: bytes, use: str) -> None:
        """`use` names what is drawn; two uses of a key have nothing in common."""
        self._key, self._use, self._block = key, use, 0

    def integer(self, bits: int) -> int:
        return int.from_bytes(self._bytes((bits + 7) // 8), "big") >> (-bits % 8)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._bytes(WORD * count), "<u8")

    def _bytes(self, count: int) -> bytes:
        """The next block of the sequence, at this length."""
        name = f"{self._use} {self._block}".encode()
        self._block += 1
        return hashlib.shake_256(self._key + name).digest(count)


@final
class KeyFile:
    """The key of one sketch, on disk from before its charge until the sketch is public."""

    def __init__(self, path: Path) -> None:
        """`path` is where the key is, or will be; it is for its user alone."""
        self.path = path

    def exists(self) -> bool:
        """Whether a sketch is under way."""
        return self.path.exists()

    def key(self) -> bytes:
        """The key; a new one, written durably, where there is none."""
        try:
            found = self.path.read_bytes()
        except FileNotFoundError:
            found = self._new_key()
        if len(found) != KEY:
            raise SketchError(f"{self.path.name} is damaged: it is not the key of a sketch. Restore it from a backup.")
        return found

    def _new_key(self) -> bytes:
        key = secrets.token_bytes(KEY)
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, key)
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(fresh, self.path)  # Of two processes one has its key there, and both go on with that key.
        except FileExistsError:
            key = self.path.read_bytes()
        finally:
            fresh.unlink()
        sync_folder(self.path.parent)
        return key

    def remove(self) -> None:
        """Forgets the key: with it, anyone could take the noise away."""
        self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)
