"""Every data set: shapes, disjoint splits, checksum. Those that are not embedded need the user's folder."""

import gzip
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from privcfs import PublicContext
from privcfs.errors import InputError, SettingsError
from privcfs.public.candidates import RULES
from privcfs.public.constraints import Constraints
from privcfs_lab import datasets
from privcfs_lab.datasets import DATASETS, arxiv, german_credit, motifs
from privcfs_lab.datasets.dataset import Dataset, planetoid_like_split, undirected
from tests.conftest import DATA
from tests.worlds import random_gcn

# Nodes, features, edges, classes, training and test nodes, checksum.
KNOWN = {
    "cora": (2708, 1433, 5278, 7, 140, 1000, "be0b2798e8becb38"),
    "citeseer": (3327, 3703, 4552, 6, 120, 1000, "393f36ba84512917"),
    "pubmed": (19717, 500, 44324, 3, 60, 1000, "75da0ace6132c99e"),
    "coauthor-cs": (18333, 6805, 81894, 15, 300, 1000, "16585a3e9a92ee55"),
    "coauthor-physics": (34493, 8415, 247962, 5, 100, 1000, "d6575674e85d70b4"),
    "facebook": (22470, 4714, 170823, 4, 80, 1000, "1b69469764fac0fd"),
    "german-credit": (1000, 38, 21742, 2, 600, 300, "873868617f46fa38"),
    "arxiv": (169343, 128, 1157799, 40, 90941, 48603, "ade6646f0bd4d236"),
    "arxiv-core": (15000, 128, 161912, 40, 2472, 9099, "c2821b7bf1ec5c39"),
    "ba-shapes": (700, 10, 1986, 4, 560, 70, "30d528dc42333cc2"),
    "tree-cycles": (871, 10, 930, 2, 697, 87, "2bf586787ceae5d6"),
    "tree-grid": (1231, 10, 1550, 2, 985, 123, "54b9d414669f0f88"),
}


@pytest.fixture(scope="module", params=DATASETS)
def loaded(request: pytest.FixtureRequest) -> Dataset:
    name = str(request.param)
    if name == "pubmed":
        request.getfixturevalue("planetoid")  # without its files it would be downloaded
    try:
        return DATASETS[name](DATA)
    except SettingsError as error:
        if "does not exist" not in str(error):
            raise
        pytest.skip(f"needs {name}'s files: {error}")


def test_a_graph_has_a_row_for_every_node_and_a_split_without_overlaps(loaded: Dataset) -> None:
    nodes = len(loaded.labels)
    assert loaded.name in DATASETS
    assert loaded.features.shape[0] == nodes
    assert np.isfinite(loaded.features.data).all()
    assert loaded.labels.min() == 0
    assert (loaded.pairs[:, 0] < loaded.pairs[:, 1]).all()
    assert 0 <= loaded.pairs.min() <= loaded.pairs.max() < nodes
    together = np.concatenate(loaded.split)
    assert len(np.unique(together)) == len(together)
    assert 0 <= together.min() <= together.max() < nodes


def test_what_was_recorded_of_a_graph_is_still_true(loaded: Dataset) -> None:
    """A graph that is new has no record yet; the results were computed from the recorded ones."""
    if loaded.name not in KNOWN:
        pytest.skip(f"needs a row for {loaded.name} in KNOWN")
    nodes, features, edges, classes, train, test, checksum = KNOWN[loaded.name]
    assert loaded.features.shape == (nodes, features)
    assert loaded.pairs.shape == (edges, 2)
    assert loaded.number_of_classes == classes
    assert (len(loaded.split.train), len(loaded.split.test)) == (train, test)
    assert loaded.digest() == checksum


def test_german_credit_has_a_schema_that_fits() -> None:
    """Every client has a value of every feature, and a loan is told in months and marks."""
    try:
        data = german_credit.load(DATA)
    except SettingsError as error:
        pytest.skip(f"needs the files of german-credit: {error}")
    schema = german_credit.schema()
    assert {column for one in schema.features for column in one.columns} == set(range(data.features.shape[1]))
    rng = np.random.default_rng(0)
    context = PublicContext(data.features, data.pairs, random_gcn(rng, data.features.shape[1], 2), schema=schema)
    levels = schema.present(context.feature_row(1))
    told = {name: one.show(levels[name]) for name in levels if (one := schema.named(name)) is not None}
    assert (told["LoanDuration"], told["LoanAmount"], told["CheckingAccount"]) == ("48", "5951", "0 to 200")
    assert data.labels[:3].tolist() == [1, 0, 1]
    offered = RULES["recourse-features"].propose(context, 1)
    assert offered.changes
    assert not [fault for one in offered for fault in Constraints(context).faults(1, one)]


def test_every_record_is_of_a_graph_that_is_still_there() -> None:
    assert set(KNOWN) <= set(DATASETS)


def test_a_stand_in_is_never_computed_from_edges_and_says_so() -> None:
    labels = np.array([0, 1, 1, 2])
    assert np.array_equal(arxiv.stand_in(labels), arxiv.stand_in(labels))  # labels are its only argument
    assert "stand-in" in arxiv.STAND_IN
    assert "never from an edge" in arxiv.STAND_IN


def test_the_core_has_the_nodes_that_cite_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arxiv, "CORE", 2)
    assert arxiv.core(np.array([3, 3, 3, 1, 1, 0]), 5).tolist() == [1, 3]


def test_ogb_files_are_read_by_its_own_package_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outdated", None)  # or importing ogb asks the network for a newer one, in a thread
    pytest.importorskip("ogb", reason="needs the package ogb")
    nodes, rng = 30, np.random.default_rng(0)
    edges = np.array([(i, (7 * i + k) % nodes) for i in range(nodes) for k in (1, 3) if (7 * i + k) % nodes != i])
    folder = tmp_path / "ogbn_arxiv"
    features = rng.random((nodes, 128)).round(6)
    files = {
        "raw/edge": (edges, "%d"),
        "raw/num-node-list": (np.array([nodes]), "%d"),
        "raw/num-edge-list": (np.array([len(edges)]), "%d"),
        "raw/node-feat": (features, "%.6f"),
        "raw/node-label": (rng.integers(0, 40, nodes), "%d"),
        "raw/node_year": (np.full(nodes, 2015), "%d"),
        **{f"split/time/{part}": (np.arange(10) + 10 * i, "%d") for i, part in enumerate(("train", "valid", "test"))},
    }
    for name, (array, form) in files.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            np.savetxt(file, array, fmt=form, delimiter=",")
    (folder / "RELEASE_v1.txt").touch()
    before = sorted(str(path) for path in folder.rglob("*"))
    loaded = DATASETS["arxiv"](tmp_path)
    assert np.allclose(loaded.features.toarray(), features)
    assert np.array_equal(loaded.pairs, undirected(*edges.T))
    assert [len(part) for part in loaded.split] == [10, 10, 10]
    assert loaded.caption == ""
    assert sorted(str(path) for path in folder.rglob("*")) == before


def test_missing_files_are_the_owners_mistake(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"facebook.npz does not exist; set PRIVCFS_DATA"):
        DATASETS["facebook"](tmp_path)
    (tmp_path / "FacebookPagePage/raw").mkdir(parents=True)
    (tmp_path / "FacebookPagePage/raw/facebook.npz").write_text("not an archive")
    with pytest.raises(SettingsError, match=r"facebook.npz cannot be read"):
        DATASETS["facebook"](tmp_path)


def test_made_graphs_leave_the_generators_of_others_alone() -> None:
    before = (
        np.random.get_state(legacy=False)["state"]["key"].tolist(),
        torch.random.get_rng_state().tolist(),
        random.getstate(),
    )
    motifs.load(Path(), name="tree-cycles")
    assert (
        np.random.get_state(legacy=False)["state"]["key"].tolist(),
        torch.random.get_rng_state().tolist(),
        random.getstate(),
    ) == before


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="data set 'corra' is unknown; choose one of cora, citeseer"):
        datasets.load("corra")


def test_a_drawn_split_has_twenty_nodes_a_class() -> None:
    labels = np.random.default_rng(1).integers(0, 3, 3000)
    split = planetoid_like_split(labels)
    assert [len(part) for part in split] == [60, 500, 1000]
    assert np.bincount(labels[split.train]).tolist() == [20, 20, 20]
    assert len(np.unique(np.concatenate(split))) == 1560
