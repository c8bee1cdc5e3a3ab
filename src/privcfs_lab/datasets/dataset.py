"""What every loader returns, and the split for data that come without one."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import SettingsError

Numbers = NDArray[np.int64]


class Split(NamedTuple):
    """Numbers of nodes, sorted; no node is in two parts."""

    train: Numbers
    validation: Numbers
    test: Numbers


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A labelled graph in the open: `pairs` play the secret in experiments. `caption` goes with every result."""

    name: str
    features: sp.csr_array
    pairs: Numbers  # undirected, u < w, sorted, without self-loops
    labels: Numbers
    split: Split
    caption: str = ""

    @property
    def number_of_classes(self) -> int:
        """Classes are numbered from 0."""
        return int(self.labels.max()) + 1

    def digest(self) -> str:
        """A checksum of all arrays, whatever file format they came from."""
        whole = hashlib.sha256()
        parts = [self.pairs, self.labels, *self.split]
        for array in (*parts, self.features.indptr.astype(np.int64), self.features.indices.astype(np.int64)):
            whole.update(np.ascontiguousarray(array, np.int64).tobytes())
        whole.update(np.ascontiguousarray(self.features.data, np.float32).tobytes())
        return whole.hexdigest()[:16]


def undirected(sources: NDArray[np.integer], ends: NDArray[np.integer]) -> Numbers:
    """Each pair once, smaller node first, sorted; self-loops are dropped."""
    pairs = np.column_stack([np.minimum(sources, ends), np.maximum(sources, ends)]).astype(np.int64)
    distinct: Numbers = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return distinct


def planetoid_like_split(labels: Numbers) -> Split:
    """Twenty training nodes a class, then 500 for validation and 1,000 for testing: one public draw (seed 0)."""
    order = np.random.default_rng(0).permutation(len(labels))
    train = np.concatenate([order[labels[order] == number][:20] for number in range(int(labels.max()) + 1)])
    rest = order[~np.isin(order, train)]
    return Split(np.sort(train), np.sort(rest[:500]), np.sort(rest[500:1500]))


def sparse(arrays: dict[str, NDArray[np.generic]], prefix: str) -> sp.csr_array:
    """A matrix stored as four arrays, the way several graph collections do."""
    parts = [arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr")]
    matrix = sp.csr_array(tuple(parts), shape=tuple(int(size) for size in arrays[f"{prefix}_shape"]))
    matrix.sort_indices()
    return matrix


def read_npz(path: Path) -> dict[str, NDArray[np.generic]]:
    """All arrays of a file; the owner of the folder hears what is missing."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except FileNotFoundError:
        raise SettingsError(
            f"data file {path} does not exist; set PRIVCFS_DATA to the folder with data sets."
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"data file {path} cannot be read: {error}.") from None


@contextmanager
def borrowed(source: Path) -> Iterator[Path]:
    """A fresh folder that links to what is in `source`, for libraries that write beside what they read."""
    with tempfile.TemporaryDirectory() as fresh:
        inside = Path(fresh) / source.name
        (inside / "processed").mkdir(parents=True)
        for entry in source.resolve().iterdir() if source.is_dir() else ():
            if entry.name != "processed":
                (inside / entry.name).symlink_to(entry)
        yield Path(fresh)
