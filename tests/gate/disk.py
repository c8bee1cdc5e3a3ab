"""A disk that loses power: the writes and syncs of a real process, seen by strace, and what may be left of them."""

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
FILE = re.compile(r"^\d+<([^>]*)>")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class Change:
    """Some bytes at a place, or a new length."""

    place: int
    content: bytes
    length: int | None = None

    def apply(self, before: bytes) -> bytes:
        if self.length is not None:
            return before[: self.length].ljust(self.length, b"\0")
        padded = before.ljust(self.place, b"\0")
        return padded[: self.place] + self.content + padded[self.place + len(self.content) :]


@dataclass(slots=True)
class Disk:
    """What is safe of each file, and what a loss of power may still take."""

    safe: dict[str, bytes] = field(default_factory=dict)
    unsafe: dict[str, list[Change]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def write(self, name: str, change: Change) -> None:
        self.removed.discard(name)
        self.safe.setdefault(name, b"")
        self.unsafe.setdefault(name, []).append(change)

    def sync(self, name: str) -> None:
        for change in self.unsafe.pop(name, []):
            self.safe[name] = change.apply(self.safe[name])

    def sync_names(self) -> None:
        for name in self.removed:
            self.safe.pop(name, None)
            self.unsafe.pop(name, None)
        self.removed.clear()

    def after_power_loss(self, rng: random.Random, keep: float) -> dict[str, bytes]:
        """Every unsynced write is kept or lost by itself, and may be torn; removals too may be lost."""
        left = {}
        for name, content in self.safe.items():
            if name in self.removed and rng.random() < keep:
                continue
            for change in self.unsafe.get(name, []):
                if rng.random() < keep:
                    torn = rng.randrange(0, len(change.content) + 1, SECTOR) if rng.random() < 0.2 else None
                    kept = change if torn is None else Change(change.place, change.content[:torn], change.length)
                    content = kept.apply(content)
            left[name] = content
        return left


def moments(trace: str, folder: Path) -> Iterator[tuple[Disk, list[str]]]:
    """The disk after each call, and what the process had said on standard output by then."""
    disk, said = Disk(), ""
    for line in trace.splitlines():
        call = CALL.match(line)
        if call is None or call[3].startswith("-"):
            continue
        name, arguments = call[1], call[2]
        path = FILE.match(arguments)
        where = _text(path[1]) if path else ""
        if name == "write" and arguments.startswith("1<"):
            said += _bytes(arguments).decode()
        elif name == "unlink":
            disk.removed.add(Path(_bytes(arguments).decode()).name)
        elif not where.startswith(str(folder)) or where.endswith(("-shm", "-reserve")):
            continue
        elif name == "pwrite64":
            disk.write(Path(where).name, Change(int(arguments.rsplit(",", 1)[1]), _bytes(arguments)))
        elif name == "ftruncate":
            disk.write(Path(where).name, Change(0, b"", int(arguments.rsplit(",", 1)[1])))
        elif where == str(folder):
            disk.sync_names()
        elif name in ("fsync", "fdatasync"):
            disk.sync(Path(where).name)
        else:
            raise AssertionError(f"a call that this disk does not know: {line[:200]}")
        yield disk, said.splitlines()


def _bytes(arguments: str) -> bytes:
    found = TEXT.search(arguments)
    assert found is not None, arguments[:200]
    return bytes.fromhex(found[1].replace("\\x", ""))


def _text(escaped: str) -> str:
    return bytes.fromhex(escaped.replace("\\x", "")).decode()


def watched(script: str, folder: Path) -> str:
    """Runs a Python script in a folder and returns its calls."""
    calls = "pwrite64,pwritev,write,ftruncate,fallocate,unlink,rename,fsync,fdatasync"
    out = folder.parent / "trace.txt"
    command = ["strace", "-o", str(out), "-y", "-xx", "-s", "70000", "-e", f"trace={calls}"]
    done = subprocess.run(
        [*command, sys.executable, "-c", script], cwd=folder, env={**os.environ}, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()
    return out.read_text()
