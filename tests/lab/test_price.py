"""The price list: complete, free of charge, plain about what it is; and public where it says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privcfs import save_model
from privcfs.errors import InputError, SettingsError, UnknownNode
from privcfs.owner.vault_file import read_vault_file
from privcfs_lab.measuring.price_list import LEVELS, SUPPORTS, Question, price_list, read_targets
from tests.worlds import random_gcn, random_pairs

RUN = [sys.executable, "-c"]
LAB, OWNER = ("from privcfs_lab.cli.commands import main; main()", "from privcfs.cli import main; main()")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    pairs = random_pairs(rng, 40, 0.15)
    np.savetxt(tmp_path / "edges.csv", pairs, fmt="%d", delimiter=",")
    np.savetxt(tmp_path / "public_edges.csv", pairs[::2], fmt="%d", delimiter=",")
    np.savetxt(tmp_path / "features.csv", rng.random((40, 9)) < 0.5, fmt="%d", delimiter=",")
    save_model(random_gcn(rng, 9), tmp_path / "gcn.safetensors", {})
    save_model(random_gcn(rng, 9), tmp_path / "public_model.safetensors", {})
    (tmp_path / "targets.txt").write_text("3\n5\n\n7\n11\n")
    subprocess.run([*RUN, OWNER, "init"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def lab(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run([*RUN, LAB, *words], cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def test_the_private_list_says_plainly_what_it_is_and_charges_nothing(folder: Path) -> None:
    done = lab(folder, "price", "--targets", "targets.txt", "--write", "out")
    assert done.returncode == 0, done.stderr
    assert "FOR THE OWNER'S EYES" in done.stdout
    page = (folder / "out/price-for-the-owner.md").read_text()
    assert "computed on private edges and no ledger pays for it" in page
    assert "Choosing a disclosure" in page
    rows = json.loads((folder / "out/price-for-the-owner.json").read_text())["rows"]
    assert {row["disclosed"] for row in rows} == set(LEVELS.values())
    assert {row["support"] for row in rows} == set(SUPPORTS)
    assert {row["epsilon"] for row in rows} == {"0.1", "0.5", "1", "2", "4", "8"}
    assert all(row["public guess"] is not None for row in rows)
    assert (folder / "out/price-for-the-owner.svg").exists()
    assert {row["list"] for row in rows} == {"private: for the owner's eyes"}
    assert not list(folder.glob("*.db"))


def test_the_public_list_never_opens_the_private_edges(folder: Path) -> None:
    first = lab(folder, "price", "--public", "--targets", "targets.txt", "--write", "first")
    (folder / "edges.csv").unlink()
    second = lab(folder, "price", "--public", "--targets", "targets.txt", "--write", "second")
    assert first.returncode == second.returncode == 0, second.stderr
    for suffix in ("md", "csv", "json", "svg"):
        name = f"price-public.{suffix}"
        assert (folder / "first" / name).read_bytes() == (folder / "second" / name).read_bytes()
    assert "safe to act on and to publish" in second.stdout
    assert "FOR THE OWNER" not in second.stdout
    assert "not on yours" in (folder / "second/price-public.md").read_text()
    assert "all edges" not in {
        row["disclosed"] for row in json.loads((folder / "second/price-public.json").read_text())["rows"]
    }


def test_the_public_list_is_the_same_on_two_private_graphs_and_the_owners_is_not(folder: Path) -> None:
    """The owner's list is the twin: the same comparison must tell its two graphs apart."""
    settings = read_vault_file(folder / "vault.toml")
    lists: dict[bool, list[object]] = {True: [], False: []}
    for seed in (1, 2):
        pairs = random_pairs(np.random.default_rng(seed), 40, 0.15)
        np.savetxt(folder / "edges.csv", pairs, fmt="%d", delimiter=",")
        for public, seen in lists.items():
            question = Question(["3", "5", "7", "11"], ("one-hop", "edges-only"), public)
            seen.append(price_list(settings, question, lambda _: None).rows)
    assert lists[True][0] == lists[True][1]
    assert lists[False][0] != lists[False][1]


def test_wider_disclosure_never_lowers_the_ceiling_of_a_short_list(folder: Path) -> None:
    page = price_list(
        read_vault_file(folder / "vault.toml"), Question(["3", "5", "7"], ("edges-only",)), lambda _: None
    )
    tops = {str(row[0]): row[4].mean for row in page.rows}  # type: ignore[union-attr]
    values = [tops[LEVELS[level]] for level in LEVELS]
    assert values == sorted(values)


def test_mistakes_are_named(folder: Path) -> None:
    with pytest.raises(InputError, match="at least two targets"):
        Question(["3"])
    with pytest.raises(InputError, match="each named once"):
        Question(["3", "4", "3"])
    with pytest.raises(InputError, match="support 'three-hop' is unknown; choose from one-hop"):
        Question(["3", "4"], ("three-hop",))
    with pytest.raises(SettingsError, match=r"target file .*missing.txt cannot be read"):
        read_targets(folder / "missing.txt")
    with pytest.raises(UnknownNode, match="target '99' is not a node"):
        price_list(read_vault_file(folder / "vault.toml"), Question(["3", "99"]), lambda _: None)
    done = lab(folder, "price", "--targets", "targets.txt", "--support", "three-hop")
    assert done.returncode == 2
    assert "three-hop" in done.stderr
