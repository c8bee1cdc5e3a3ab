"""One graph, one budget: which ledger the edges spend from, by where they are and by what they are.

A small file beside the edges names their ledger (a tie), and a list in the owner's own data folder names the ledger of
every graph that was opened on this machine, by a keyed fingerprint of its edges. The first is found through symbolic
links and goes along when a folder is moved; the second recognises copies, hard links, renamed files, and the same edges
in another format. Neither recognises a copy on another machine, of another user, with one edge changed, or with its
nodes numbered otherwise.

Zone: owner
Claim: on one machine and for one user, the same edges never spend from two ledgers; the list tells nothing about edges
    to whoever lacks its key.
Why: a tie or a listed fingerprint that names another ledger is refused before a ledger is made or opened; fingerprints
    are HMACs under a random key that is kept with the list, readable by the owner alone.
Check: tests/owner/test_ties.py::test_a_link_a_copy_or_another_name_gets_no_second_budget
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from privcfs.errors import SettingsError
from privcfs.gate.ledger.ledger import Ledger
from privcfs.private.graph import PrivateGraph
from privcfs.tables.store import sync_folder

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".ledger.json"
VARIABLE = "PRIVCFS_GRAPHS"


def tied(edges: Path) -> bool:
    """Whether these edges spend from some ledger already."""
    return any(file.is_file() for file in _files(edges))


def tie(edges: Path, ledger: Ledger) -> None:
    """Ties edges to a ledger on first use and refuses another one; where the folder cannot be written, nothing is."""
    mine = _named(ledger)
    for file in _files(edges):
        if file.is_file() and _read(file, edges) != mine:
            raise second_budget(edges, f"{file.name} says so")
    with suppress(OSError):
        _put(_files(edges)[0], json.dumps(mine) + "\n")
    if tied(edges) and _read(_files(edges)[0], edges) != mine:  # another process was faster
        raise second_budget(edges, "a file beside it says so")


def follow(source: Path, store: Path) -> None:
    """A store of tied edges spends from the same ledger as their file; one that is tied otherwise is left alone."""
    for file in _files(source):
        if not file.is_file():
            continue
        copy = _files(store)[0]
        if tied(store) and _read(copy, store) != _read(file, source):
            raise second_budget(store, f"{copy.name} says so")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def refuse_second_budget(edges: Path, graph: PrivateGraph | None) -> None:
    """Refuses to make a new ledger for edges that have one already."""
    if tied(edges):
        raise second_budget(edges, "a file beside it says so")
    if graph is not None and not graph.is_empty():
        with _listed(_list_file()) as listed:
            known = listed["graphs"].get(graph.fingerprint(bytes.fromhex(listed["key"])))
            reason = None if known is None else _opened_with(known)
        if reason is not None:
            raise second_budget(edges, reason)


def enlist(edges: Path, graph: PrivateGraph, ledger: Ledger, url: str) -> None:
    """Refuses edges that another ledger was opened for on this machine, wherever they lie; otherwise lists them."""
    if graph.is_empty():
        return
    with _listed(_list_file()) as listed:
        mark = graph.fingerprint(bytes.fromhex(listed["key"]))
        known = listed["graphs"].setdefault(mark, {**_named(ledger), "ledger": url})
        reason = None if known["opened"] == _named(ledger)["opened"] else _opened_with(known)
    if reason is not None:
        raise second_budget(edges, reason)


def second_budget(edges: Path, reason: str) -> SettingsError:
    """The refusal of a second budget."""
    return SettingsError(
        f"{edges.name} spends from another ledger ({reason}); one private graph has one budget: "
        "name that ledger in the vault file, or restore it."
    )


def _opened_with(known: dict[str, str]) -> str:
    return f"the same edges were opened with {known['ledger']}; {_list_file()} lists them"


def _named(ledger: Ledger) -> dict[str, str]:
    opening = next(ledger.rows())
    return {"graph_id": ledger.graph_id, "opened": opening["digest"]}


def _files(edges: Path) -> list[Path]:
    """Where a tie may be: beside the file itself and, where it is a symbolic link, beside the link too."""
    real = edges.resolve()
    return list(dict.fromkeys(path.with_name(path.name + SUFFIX) for path in (real, edges.absolute())))


def _read(file: Path, edges: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SettingsError(
            f"{file} is empty or damaged; it should name the ledger of {edges.name}. Restore it or, if these edges "
            "have never spent from another ledger than the vault file's, delete it."
        ) from None


def _put(file: Path, text: str) -> None:
    """A whole new file that only its user may read, durable; an existing one is left alone."""
    if file.exists():
        return
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as content:
        content.write(text)
        content.flush()
        os.fsync(content.fileno())
    try:
        os.link(fresh, file)
        sync_folder(file.parent)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def _list_file() -> Path:
    """In the owner's data folder, or where the environment says."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "privcfs" / "graphs.json"
    except RuntimeError:
        raise SettingsError(
            f"this user has no home folder for the list of graphs; name a file in {VARIABLE}."
        ) from None


@contextmanager
def _listed(file: Path) -> Iterator[dict[str, Any]]:
    """The list, for one process at a time; what is changed in it is written beside it and then put in its place."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(file.with_name(file.name + ".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(lock, "w") as turn:
            if fcntl is not None:
                fcntl.flock(turn, fcntl.LOCK_EX)
            _put(file, json.dumps({"key": secrets.token_hex(32), "graphs": {}}) + "\n")
            before = file.read_text(encoding="utf-8")
            listed: dict[str, Any] = json.loads(before)
            yield listed
            after = json.dumps(listed, indent=1) + "\n"
            if after != before:
                fresh = file.with_name(f"{file.name}.new")
                fresh.unlink(missing_ok=True)
                _put(fresh, after)
                fresh.replace(file)
                sync_folder(file.parent)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"the list of graphs {file} cannot be used ({error}); mend it, or name another with {VARIABLE}."
        ) from None
