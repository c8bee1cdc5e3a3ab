"""One graph, one budget: a small file beside the edges says which ledger they spend from."""

import json
import shutil
from pathlib import Path

from privcfs.errors import SettingsError
from privcfs.gate.ledger.ledger import Ledger

SUFFIX = ".ledger.json"


def tied(edges: Path) -> bool:
    """Whether these edges spend from some ledger already."""
    return _file(edges).is_file()


def tie(edges: Path, ledger: Ledger) -> None:
    """Ties edges to a ledger on first use and refuses another one; where the folder cannot be written, nothing is."""
    opening = next(ledger.rows())
    mine = {"graph_id": ledger.graph_id, "opened": opening["digest"]}
    file = _file(edges)
    try:
        with file.open("x", encoding="utf-8") as fresh:
            fresh.write(json.dumps(mine) + "\n")
    except FileExistsError:
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = None
        if kept != mine:
            raise another(edges) from None
    except OSError:
        return


def follow(source: Path, store: Path) -> None:
    """A store of tied edges spends from the same ledger as their file; one that is tied otherwise is left alone."""
    if tied(source):
        if tied(store) and _file(store).read_bytes() != _file(source).read_bytes():
            raise another(store)
        _file(store).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_file(source), _file(store))


def another(edges: Path) -> SettingsError:
    """The refusal of a second budget."""
    return SettingsError(
        f"{edges.name} spends from another ledger ({_file(edges).name} says so); one private graph has one budget: "
        "name that ledger in the vault file, or restore it."
    )


def _file(edges: Path) -> Path:
    return edges.with_name(edges.name + SUFFIX)
