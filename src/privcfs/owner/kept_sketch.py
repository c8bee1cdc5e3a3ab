"""What follows from a sketch, kept in a folder beside it so that it is computed once, and mapped where it is large.

Zone: owner
Claim: the folder holds a function of public data; one of another sketch, or a damaged one, is computed anew.
Why: it names the sketch and the context, by digest, that it was computed for; nothing here is given an edge.
Check: tests/owner/test_kept_sketch.py::test_what_follows_from_a_sketch_is_computed_once
"""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SketchError
from privcfs.owner.kept_beliefs import silent
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.context import PublicContext
from privcfs.public.sketches.knowing import believed, believing
from privcfs.public.sketches.sketch import read_sketch
from privcfs.tables.neighbours import Neighbours

FORMAT = "2"
NAME = "name.txt"
ARRAYS = ("starts", "others", "listed_starts", "listed", "chances", "rest")
# Larger arrays are mapped, and read where they are touched.
MOST_LOADED = 1 << 26


def recall_or_believe(context: PublicContext, path: Path, progress: Callable[[str], None] = silent) -> PublicContext:
    """The context that knows the sketch at a path; what follows from it comes from the folder beside it, or is written.

    A folder that cannot be written is no error where everything fits into memory: the next process computes again.

    Raises:
        SketchError: The sketch is missing, damaged or of another context, or lists so many pairs that what follows from
            them is written while it is computed, and the disk has no room.
    """
    sketch, beside = read_sketch(path), path.with_name(f"{path.name}.beliefs")
    name = f"{FORMAT} {sketch.name} {context.digest}"
    posterior = _kept(beside, name)
    if posterior is None:
        progress("working out what follows from the sketch")
        shelf = _Shelf(beside)
        try:
            posterior = believed(context, sketch, shelf.keep)
            shelf.put(name, posterior)
        except OSError as error:
            raise SketchError(
                f"what follows from the sketch cannot be written to {beside.name}: {error.strerror}. Make room there; "
                "the sketch itself is whole."
            ) from None
        finally:
            shelf.clear()
        posterior = _kept(beside, name) or posterior
    return believing(context, sketch, posterior)


@final
class _Shelf:
    """A folder that appears beside a sketch when it is whole."""

    def __init__(self, folder: Path) -> None:
        """`folder` is where it will be."""
        self._folder, self._fresh = folder, folder.with_name(f".{folder.name}.{os.getpid()}")
        with suppress(OSError):
            self._fresh.mkdir(exist_ok=True)

    def keep(self, name: str, pieces: Iterable[NDArray[Any]], shape: tuple[int, ...], kind: str) -> NDArray[Any]:
        """Writes an array that comes in pieces, and gives it back, mapped."""
        with (self._fresh / f"{name}.npy").open("wb") as file:
            header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for piece in pieces:
                file.write(np.ascontiguousarray(piece, kind).tobytes())
        return _array(self._fresh / f"{name}.npy")

    def put(self, name: str, posterior: Posterior) -> None:
        """Makes the folder visible, whole."""
        with suppress(OSError):
            for key, array in zip(ARRAYS, _arrays_of(posterior), strict=True):
                if not (self._fresh / f"{key}.npy").exists():
                    np.save(self._fresh / f"{key}.npy", array)
            (self._fresh / NAME).write_text(name, encoding="utf-8")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._fresh.rename(self._folder)

    def clear(self) -> None:
        """Removes what was not made visible."""
        shutil.rmtree(self._fresh, ignore_errors=True)


def _kept(folder: Path, name: str) -> Posterior | None:
    """What a folder holds for this sketch and context; None where it holds nothing for them."""
    with suppress(OSError, ValueError, EOFError):
        if (folder / NAME).read_text(encoding="utf-8") == name:
            starts, others, listed_starts, listed, chances, rest = (_array(folder / f"{key}.npy") for key in ARRAYS)
            if starts[-1] == len(others) and listed_starts[-1] == len(listed) == len(chances):
                return Posterior(Neighbours(starts, others), Neighbours(listed_starts, listed), chances, rest)
    return None


def _array(path: Path) -> NDArray[Any]:
    """An array of the folder, mapped if it is large."""
    found: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > MOST_LOADED else None)
    return found


def _arrays_of(posterior: Posterior) -> tuple[NDArray[Any], ...]:
    believed_graph, listed = posterior.believed, posterior.listed
    return (
        *(believed_graph.starts, believed_graph.others),
        *(listed.starts, listed.others, posterior.chances, posterior.rest),
    )
