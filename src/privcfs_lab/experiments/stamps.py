"""Writes pages of results with the stamp of their code, and finds those that other code than today's has written."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privcfs_lab.bench import bench_page
from privcfs_lab.experiments import EXPERIMENTS
from privcfs_lab.experiments.leads import lead
from privcfs_lab.experiments.overview import STALE
from privcfs_lab.figures.page import Page
from privcfs_lab.measuring.provenance import code_digest

MAKERS: Mapping[str, Callable[..., Any]] = {name: one.run for name, one in EXPERIMENTS.items()} | {"bench": bench_page}


def write(page: Page, folder: Path, name: str, command: str) -> None:
    """One page of results with its opening and its stamp."""
    page.write(folder, name, command, code_digest(MAKERS[name]), lead(name, page.objects()))


def stale(folder: Path) -> dict[str, str]:
    """The pages of a folder whose stamp is not that of today's code, with the command of each."""
    pages = {name: folder / f"{name}.json" for name in MAKERS}
    made = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in pages.items() if path.exists()}
    return {name: whole["command"] for name, whole in made.items() if whole["code"] != code_digest(MAKERS[name])}


def known_to_be_stale(folder: Path) -> list[str]:
    """What the list beside the pages says."""
    path = folder / STALE
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def record(folder: Path) -> None:
    """Writes that list anew."""
    (folder / STALE).write_text("".join(f"{name}\n" for name in stale(folder)), encoding="utf-8")
