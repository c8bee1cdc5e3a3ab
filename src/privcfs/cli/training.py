"""`privcfs train`: a public model from features, snapshot and public labels. Needs torch; reads no private file."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, final

import numpy as np
import scipy.sparse as sp
import typer
from rich.status import Status

from privcfs.cli.commands import VAULT, JsonOption
from privcfs.cli.output import console, emit, say
from privcfs.errors import ContextError, InputError, SettingsError
from privcfs.owner.vault_file import read_vault_file
from privcfs.public.context import names_of, nodes_of, read_snapshot, read_table
from privcfs.public.models.files import save_model
from privcfs.public.models.labels import Labels, read_labels
from privcfs.public.models.training import Labelled, Training, accuracy, need_torch, train_gcn
from privcfs.public.schema.schema import Schema
from privcfs.tables.features import TableNames, read_features
from privcfs.tables.named_columns import Links, Table
from privcfs.tables.names import read_node_ids


@final
@dataclass(frozen=True, slots=True)
class PublicFiles:
    """What training reads besides labels."""

    features: Path | Table
    snapshot: Path | Links
    node_ids: Path | None
    schema: Path | None = None


@final
@dataclass(frozen=True, slots=True)
class HeldOut:
    """How a model trained without some nodes' labels does on them, and how always answering one class would do."""

    nodes: int
    accuracy: float
    most_frequent: float


def train(
    labels: Annotated[Path, typer.Option(help="Public labels: rows node,class, or one class per node in node order.")],
    vault: Annotated[
        Path | None,
        typer.Option(help="The vault file, whose table 'public' names the other files; vault.toml if it is there."),
    ] = None,
    features: Annotated[Path | None, typer.Option(help="The public feature table, without a vault file.")] = None,
    snapshot: Annotated[Path | None, typer.Option(help="The public pairs, without a vault file.")] = None,
    node_ids: Annotated[Path | None, typer.Option(help="Names of the nodes, without a vault file.")] = None,
    write: Annotated[Path, typer.Option(help="Where the model goes.")] = Path("public_model.safetensors"),
    classes: Annotated[
        str, typer.Option(help="All classes in the order of the model that decides, with commas between them.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the first weights and of the choice of held-out nodes.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a public model on features, snapshot and public labels, such as one that guides a vault's search."""
    need_torch()
    _check_place(write, force)
    files = _files(vault, features, snapshot, node_ids)
    order = tuple(name.strip() for name in classes.split(",")) if classes else ()
    with Status("Training", console=console) if not as_json else nullcontext():
        data, known = _read(files, labels, order)
        tested = _held_out(data, known, seed)
        fitted = train_gcn(data, Training(seed=seed))
    save_model(fitted, write, {"trained_on": "snapshot", "classes": json.dumps(known.names)})
    if as_json:
        emit(
            {
                "written": str(write),
                "classes": list(known.names),
                "labelled": len(known.nodes),
                "held_out": 0 if tested is None else tested.nodes,
                "accuracy": None if tested is None else tested.accuracy,
                "most_frequent_class": None if tested is None else tested.most_frequent,
            }
        )
        return
    for line in _words(write, known, tested):
        say(line)


def _check_place(write: Path, force: bool) -> None:
    """Before anything is computed."""
    if not write.parent.is_dir():
        raise SettingsError(f"folder {write.parent} does not exist; make it first.")
    if write.exists() and not force:
        raise SettingsError(f"{write} exists; use --force to replace it, or --write to name another file.")


def _files(vault: Path | None, features: Path | None, snapshot: Path | None, node_ids: Path | None) -> PublicFiles:
    """The files that the options name, or else those of the vault file."""
    named = [one for one in (features, snapshot, node_ids) if one is not None]
    if features is not None and snapshot is not None and vault is None:
        return PublicFiles(features, snapshot, node_ids)
    if named:
        raise InputError("give --features and --snapshot (and --node-ids) together, or a --vault that names them.")
    if vault is None and not VAULT.exists():
        raise InputError(f"{VAULT} does not exist; give --vault, or --features and --snapshot.")
    return PublicFiles(*read_vault_file(vault or VAULT).public_files())


def _read(files: PublicFiles, labels: Path, order: tuple[str, ...]) -> tuple[Labelled, Labels]:
    table, names = _features(files)
    nodes = nodes_of(table, names)
    known = read_labels(labels, nodes, order)
    pairs = read_snapshot(files.snapshot, nodes).pairs
    classes = np.zeros(nodes.count, np.int64)
    classes[known.nodes] = known.classes
    return Labelled(table, pairs, classes, known.nodes, len(known.names)), known


def _features(files: PublicFiles) -> tuple[sp.csr_array, tuple[str, ...] | None]:
    """The public feature table, and the names of the nodes where they have names."""
    if not isinstance(files.features, Table):
        names = None if files.node_ids is None else read_node_ids(files.node_ids, ContextError)
        return read_features(files.features, ContextError, TableNames(nodes=names or ())), names
    listed = names_of(files.features, files.node_ids)
    names = None if listed is None else read_node_ids(listed, ContextError)
    schema = Schema.read(files.schema) if files.features.raw and files.schema is not None else None
    numbers, columns = read_table(files.features, schema)
    return read_features(numbers, ContextError, TableNames(columns, names or ())), names


def _held_out(data: Labelled, known: Labels, seed: int) -> HeldOut | None:
    """Trains without some labels and tests on them; none where there are too few to spare any."""
    held = known.held_out(seed)
    if not held.any():
        return None
    partly = train_gcn(replace(data, train=known.nodes[~held]), Training(seed=seed))
    right = accuracy(partly, data, known.nodes[held])
    return HeldOut(int(held.sum()), right, float(np.bincount(known.classes[held]).max() / held.sum()))


def _words(write: Path, known: Labels, tested: HeldOut | None) -> list[str]:
    if tested is None:
        how = "How good it is was not measured: there are too few labels to hold any out."
    else:
        how = (
            f"A model trained the same way without the labels of {tested.nodes} held-out "
            f"{'node' if tested.nodes == 1 else 'nodes'} is right about "
            f"{tested.accuracy:.1%} of them; always answering their most frequent class is right about "
            f"{tested.most_frequent:.1%}."
        )
    numbers = [str(number) for number in range(len(known.names))]
    if list(known.names) == numbers:
        numbered = f"Classes keep their numbers, 0 to {numbers[-1]}"
    else:
        numbered = "Classes: " + ", ".join(f"{number} = {name}" for number, name in enumerate(known.names))
    return [
        f"Wrote {write}, trained on all {len(known.nodes)} labelled nodes.",
        how,
        f"{numbered}. The model that decides must number its classes in the same order (--classes).",
    ]
