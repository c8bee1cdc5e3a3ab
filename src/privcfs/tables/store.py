"""Tables on disk, larger than memory: neighbour lists and feature rows, written once and mapped for reading.

A store is a folder of plain arrays beside a store.json with their lengths and checksums. It belongs to the owner, like
the files that it was made from: nobody else may open it, and neither checksum nor size of a private one goes anywhere.
"""

import hashlib
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import OwnerError

Fault = type[OwnerError]
Array = NDArray[Any]
VERSION = 1
SUFFIX = ".store"
MANIFEST = "store.json"
PAIRS, FEATURES = "pairs", "features"
LAYOUTS: Mapping[str, Mapping[str, str]] = {
    PAIRS: {"starts": "<i8", "others": "<i4"},
    FEATURES: {"starts": "<i8", "numbers": "<i4", "values": "<f4"},
}
MOST_NODES = 2**31 - 1
PIECE = 2**24  # bytes that are hashed at a time
MAPPED: "WeakSet[mmap.mmap]" = WeakSet()
MOST_RESIDENT = 3 * 2**26  # bytes of stores in memory
BLOCK = 2**14  # entries that are read at a time; each may bring sixteen pages into memory
STATM = "/proc/self/statm"
ADVISED = hasattr(mmap, "MADV_DONTNEED") and os.path.exists(STATM)  # on Linux; elsewhere the system decides alone


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Store:
    """An opened store: its arrays are mapped, and read where they are touched."""

    rows: int
    columns: int
    arrays: Mapping[str, Array]
    checksums: Mapping[str, str]


def checksums_of(kind: str, arrays: Mapping[str, Array]) -> dict[str, str]:
    """The checksums that a store of these arrays would have."""
    layout = LAYOUTS[kind]
    return {name: hashlib.sha256(np.ascontiguousarray(arrays[name], layout[name]).data).hexdigest() for name in layout}


def open_store(path: Path, kind: str, fault: Fault) -> Store:
    """Maps a store. Lengths are compared with what was written; contents are what `check_store` is for."""
    manifest, layout = _manifest(path, fault), LAYOUTS[kind]
    if manifest.get("kind") != kind:
        raise fault(f"{path.name} is a store of {manifest.get('kind')}; give one of {kind}.")
    try:
        rows, columns = int(manifest["rows"]), int(manifest["columns"])
        lengths = {name: int(manifest["lengths"][name]) for name in layout}
        checksums = {name: str(manifest["checksums"][name]) for name in layout}
        arrays = {name: _mapped(path / f"{name}.bin", dtype, lengths[name]) for name, dtype in layout.items()}
        whole = lengths["starts"] == rows + 1 and len({int(arrays["starts"][-1]), *list(lengths.values())[1:]}) == 1
    except (KeyError, TypeError, ValueError, OSError):
        whole = False
    if not whole:
        raise fault(f"{path.name} is incomplete; import it again.")
    return Store(rows, columns, arrays, checksums)


def check_store(path: Path, fault: Fault) -> None:
    """Reads all of a store and refuses one that is not as it was written."""
    manifest = _manifest(path, fault)
    if manifest.get("kind") not in LAYOUTS:
        raise fault(f"{path.name} is a store of {manifest.get('kind')}, which nobody wrote; import it again.")
    kept = open_store(path, str(manifest["kind"]), fault).checksums
    for name, expected in kept.items():
        hasher = hashlib.sha256()
        for piece in _pieces(path / f"{name}.bin"):
            hasher.update(piece)
        if hasher.hexdigest() != expected:
            raise fault(f"{path.name} has changed since it was written ({name}); import it again.")


@final
class StoreWriter:
    """Writes a store beside its place and puts it there when it is whole; whatever fails leaves nothing behind."""

    def __init__(self, path: Path, kind: str, fault: Fault) -> None:
        if path.exists():
            raise fault(f"{path} exists already; remove it first, or choose another folder.")
        self._path, self._kind, self._fault = path, kind, fault
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))  # the owner's alone
        except OSError as error:
            raise fault(f"{path} cannot be written: {error}.") from None
        names = LAYOUTS[kind]
        self._files = {name: (self.folder / f"{name}.bin").open("wb") for name in names}
        self._hashers, self._lengths = {name: hashlib.sha256() for name in names}, dict.fromkeys(names, 0)

    def __enter__(self) -> "StoreWriter":
        return self

    def append(self, name: str, values: Array) -> None:
        """Adds to one of the arrays."""
        plain = np.ascontiguousarray(values, LAYOUTS[self._kind][name])
        self._files[name].write(plain.data)
        self._hashers[name].update(plain.data)
        self._lengths[name] += len(plain)

    def finish(self, rows: int, columns: int) -> None:
        """Makes the store durable, then visible."""
        manifest = {
            "version": VERSION,
            "kind": self._kind,
            "rows": rows,
            "columns": columns,
            "lengths": self._lengths,
            "checksums": {name: hasher.hexdigest() for name, hasher in self._hashers.items()},
        }
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            _uncached(file.fileno())
        with (self.folder / MANIFEST).open("w", encoding="utf-8") as text:
            text.write(json.dumps(manifest, indent=1) + "\n")
            text.flush()
            os.fsync(text.fileno())
        sync_folder(self.folder)
        self.folder.rename(self._path)
        sync_folder(self._path.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for file in self._files.values():
                file.close()
        except OSError as fault:
            error = error or fault
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(error, OSError):  # a full disk, or a store that appeared meanwhile
            raise self._fault(f"{self._path} cannot be written: {error}.") from None


def _manifest(path: Path, fault: Fault) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise fault(f"store {path} does not exist; make it with privcfs import.") from None
    except PermissionError:
        raise fault(f"store {path} cannot be read: permission denied; let this user read it.") from None
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise fault(f"{path.name} is not a store; make it with privcfs import.")
    if manifest.get("version") != VERSION:
        raise fault(f"{path.name} is a store of version {manifest.get('version')}, this is {VERSION}; import it again.")
    return manifest


def _mapped(path: Path, dtype: str, length: int) -> Array:
    """A plain array over the file, read page by page wherever it is touched."""
    if path.stat().st_size != length * np.dtype(dtype).itemsize:
        raise ValueError(path.name)
    if not length:
        return np.empty(0, dtype)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if ADVISED:
        mapped.madvise(mmap.MADV_RANDOM)  # neighbours lie anywhere, so reading ahead would be waste
    MAPPED.add(mapped)
    return np.frombuffer(mapped, dtype)


@contextmanager
def resting() -> Iterator[None]:
    """Releases mapped pages after a block of code, if many are in memory; they are read again when they are needed."""
    try:
        yield
    finally:
        RESIDENT.let_go()


def taken(array: Array, entries: NDArray[np.int64]) -> Array:
    """Some entries of an array, read in blocks where they are many, so that few pages of a store are in memory."""
    if len(entries) <= BLOCK:
        return array[entries]
    found = np.empty(len(entries), array.dtype)
    for start in range(0, len(entries), BLOCK):
        found[start : start + BLOCK] = array[entries[start : start + BLOCK]]
        RESIDENT.let_go()
    return found


@final
class _Resident:
    """Remembers how many bytes of other files than stores this process has in memory."""

    def __init__(self) -> None:
        self.others = 0

    def let_go(self) -> None:
        """Gives the pages of all stores back to the system where more than MOST_RESIDENT bytes of them are resident."""
        if MAPPED and ADVISED and _resident() > self.others + MOST_RESIDENT:
            for mapped in list(MAPPED):
                mapped.madvise(mmap.MADV_DONTNEED)
            self.others = _resident()


RESIDENT = _Resident()


def _resident() -> int:
    """Bytes of files that this process has in memory: stores, and programs and libraries too."""
    with open(STATM, "rb", 0) as file:
        return int(file.read().split()[2]) * mmap.PAGESIZE


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
        _uncached(file.fileno())


def _uncached(file: int) -> None:
    """Drops a written file from the page cache, where its pieces are so large that one row would map many pages."""
    if ADVISED:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
