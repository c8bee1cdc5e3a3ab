"""`privcfs import`: edge lists and features of any size as stores that a vault maps instead of loading.

Says which stores there are and nothing of what is in them.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status

from privcfs.cli.commands import JsonOption
from privcfs.cli.output import console, emit, say
from privcfs.errors import ContextError, GraphError, InputError
from privcfs.owner.ties import follow
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import read_features
from privcfs.tables.importing import import_features, import_pairs
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.store import SUFFIX, check_store

ARGUMENTS = {"edges": GraphError, "snapshot": ContextError, "features": ContextError}


def import_(
    folder: Annotated[Path, typer.Argument(help="Where the stores are, or go.")],
    edges: Annotated[Path | None, typer.Option(help="The secret edges: .csv or .parquet.")] = None,
    snapshot: Annotated[Path | None, typer.Option(help="The public pairs: .csv or .parquet.")] = None,
    features: Annotated[Path | None, typer.Option(help="The features: .npy, .npz, .csv or .parquet.")] = None,
    node_ids: Annotated[Path | None, typer.Option(help="Names of the nodes, one a line.")] = None,
    nodes: Annotated[
        int | None, typer.Option(help="How many nodes there are, where no features say it.", min=1)
    ] = None,
    simplify: Annotated[
        bool, typer.Option("--simplify", help="Drop self-loops of the edges and merge repeats.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare the stores with their checksums instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write edges, snapshot and features of any size as stores, which a vault maps instead of loading."""
    sources = {"features": features, "snapshot": snapshot, "edges": edges}
    wanted = [name for name, source in sources.items() if source is not None]
    if check == bool(wanted):
        raise InputError("give --edges, --snapshot or --features to import, or --check alone.")
    stores = {name: folder / f"{name}{SUFFIX}" for name in ARGUMENTS}
    with Status("Checking" if check else "Importing", console=console) if not as_json else nullcontext():
        if check:
            found = [name for name in ARGUMENTS if stores[name].exists()]
            if not found:
                raise InputError(f"{folder} has no store; make one with privcfs import.")
            for name in found:
                check_store(stores[name], ARGUMENTS[name])
        else:
            found = wanted
            _refuse_mistakes(sources, stores)
            if edges is not None:
                follow(edges, stores["edges"])
            names = None if node_ids is None else read_node_ids(node_ids, ContextError)
            if features is not None:
                import_features(features, stores["features"], names or ())
            table = None if names is None else {label: number for number, label in enumerate(names)}
            for name, source in (("snapshot", snapshot), ("edges", edges)):
                if source is not None:
                    known = Nodes(_count(nodes, names, stores["features"]), table)
                    private = name == "edges"
                    reader = EdgeListReader(name, ARGUMENTS[name], known, simplify and private, may_simplify=private)
                    import_pairs(source, stores[name], reader)
    listed = [str(stores[name]) for name in found]
    if as_json:
        emit({"checked" if check else "written": listed})
    elif check:
        say(f"As they were written: {', '.join(listed)}.")
    else:
        say("Written. In vault.toml, name them in the place of the files: " + ", ".join(listed) + ".")


def _refuse_mistakes(sources: dict[str, Path | None], stores: dict[str, Path]) -> None:
    """Before anything is written, so that a corrected command can be given as a whole."""
    for name, source in sources.items():
        if source is not None and not source.exists():
            raise ARGUMENTS[name](f"{name} file {source} does not exist; check the path.")
        if source is not None and stores[name].exists():
            raise ARGUMENTS[name](f"{stores[name]} exists already; remove it first, or choose another folder.")
    edges, snapshot = sources["edges"], sources["snapshot"]
    if edges is not None and snapshot is not None and edges.samefile(snapshot):
        raise ContextError("snapshot and edges are the same file; private edges are not public.")


def _count(nodes: int | None, names: tuple[str, ...] | None, features: Path) -> int:
    """The public number of nodes, from whatever says it."""
    rows = read_features(features, ContextError).shape[0] if features.exists() else None
    said = {count for count in (nodes, None if names is None else len(names), rows) if count is not None}
    if len(said) != 1:
        what = "nothing says how many nodes there are" if not said else f"the number of nodes is said to be {said}"
        raise InputError(f"{what}; give --features or --nodes, and let them agree.")
    return int(said.pop())
