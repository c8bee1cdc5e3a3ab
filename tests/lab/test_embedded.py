from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from torch_geometric.datasets import Planetoid

from privcfs import Vault
from privcfs.embedded import NAMES, load_dataset
from privcfs.errors import SimulatedSnapshot
from privcfs.public.models.training import Labelled, accuracy

SIZES = {"cora": (2708, 1433, 5278, 7), "citeseer": (3327, 3703, 4552, 6)}
PLANETOID = {"cora": "Cora", "citeseer": "CiteSeer"}


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_splits(name: str) -> None:
    data = load_dataset(name)
    pairs = data.edges()
    nodes, features, edges, classes = SIZES[name]
    assert data.features.shape == (nodes, features)
    assert len(pairs) == edges
    assert len(data.classes) == classes == data.labels.max() + 1
    assert [len(part) for part in (data.train, data.validation, data.test)] == [20 * classes, 500, 1000]
    assert len(np.unique(np.concatenate([data.train, data.validation, data.test]))) == 20 * classes + 1500
    known = {tuple(pair) for pair in pairs.tolist()}
    assert {tuple(pair) for pair in data.snapshot.tolist()} < known
    assert len(data.snapshot) == round(edges / 2)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planetoid_edge_for_edge(name: str, planetoid: Path, tmp_path: Path) -> None:
    raw = tmp_path / PLANETOID[name] / "raw"
    raw.parent.mkdir()
    raw.symlink_to(planetoid / PLANETOID[name] / "raw")
    theirs = Planetoid(root=str(tmp_path), name=PLANETOID[name])[0]
    data = load_dataset(name)
    edges = theirs.edge_index.numpy().T
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    assert np.array_equal(edges, data.edges())
    assert np.array_equal(theirs.x.numpy() > 0, data.features.toarray() > 0)
    assert np.array_equal(theirs.y.numpy(), data.labels)
    for part in ("train", "test"):
        assert np.array_equal(np.flatnonzero(theirs[f"{part}_mask"].numpy()), getattr(data, part))
    assert np.array_equal(np.flatnonzero(theirs.val_mask.numpy()), data.validation)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["paper", "snapshot"])
def test_the_stated_accuracy_is_the_measured_one(name: str, kind: str) -> None:
    data = load_dataset(name)
    everything = Labelled(data.features, data.edges(), data.labels, data.train)
    with safe_open(str(files("privcfs.embedded") / f"{name}-gcn-{kind}.safetensors"), "numpy") as file:
        metadata = file.metadata()
    assert f"{accuracy(data.model(kind), everything, data.test):.3f}" == metadata["test_accuracy"]
    assert float(metadata["test_accuracy"]) > {"cora": 0.79, "citeseer": 0.67}[name]


def test_the_data_stays_well_under_a_megabyte() -> None:
    folder = Path(str(files("privcfs.embedded")))
    assert sum(path.stat().st_size for path in folder.glob("*.npz")) < 500_000


def test_a_real_vault_refuses_the_embedded_snapshot(tmp_path: Path) -> None:
    data = load_dataset("cora")
    with pytest.raises(SimulatedSnapshot, match="protects nobody"):
        Vault(data.private_graph(), data.context(), ledger=f"sqlite:///{tmp_path / 'x.db'}", limit="1")
