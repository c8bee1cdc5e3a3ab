import json
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors.numpy import save_file
from torch_geometric import nn as pyg

from privcfs import GCN, TorchModel, load_model, save_model
from privcfs.errors import ModelError
from tests.worlds import random_gcn, random_pairs


def test_saving_and_loading_gives_the_same_model(tmp_path: Path) -> None:
    model = random_gcn(np.random.default_rng(0), 5)
    save_model(model, tmp_path / "gcn.safetensors", {"architecture": "gcn"})
    assert load_model(tmp_path / "gcn.safetensors").digest == model.digest


def test_a_pytorch_geometric_model_loads_and_says_the_same(tmp_path: Path) -> None:
    from safetensors.torch import save_file as save_torch

    model = pyg.GCN(5, 8, num_layers=2, out_channels=3).eval()
    save_torch(model.state_dict(), tmp_path / "pyg.safetensors")
    rng = np.random.default_rng(0)
    features, pairs = sp.csr_array(rng.random((9, 5)).astype(np.float32)), random_pairs(rng, 9, 0.4)
    edges = torch.tensor(np.concatenate([pairs, pairs[:, ::-1]]).T.copy())
    with torch.no_grad():
        expected = model(torch.tensor(features.toarray()), edges).numpy()
    assert np.abs(load_model(tmp_path / "pyg.safetensors").logits(features, pairs) - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": np.ones((2, 2), np.float32)}, "holds 'weight'; expected first and second"),
        ({}, "holds nothing"),
        (
            {"first": np.ones((2, 3), np.float32), "second": np.ones((2, 2), np.float32)},
            r"shapes \(2, 3\) and \(2, 2\)",
        ),
        (
            {"first": np.ones((2, 3), int), "second": np.ones((3, 2), np.float32)},
            "holds I64 weights in 'first'",
        ),
        (
            {"first": np.full((2, 3), np.inf, np.float32), "second": np.ones((3, 2), np.float32)},
            "first holds a missing or infinite weight",
        ),
        (
            {
                "first": np.ones((2, 3), np.float32),
                "second": np.ones((3, 2), np.float32),
                "second_bias": np.ones(5, np.float32),
            },
            r"second_bias has shape \(5,\); it must have 2 entries",
        ),
    ],
)
def test_faulty_weights_are_named(tmp_path: Path, tensors: dict[str, np.ndarray], message: str) -> None:
    save_file(tensors, tmp_path / "x.safetensors")
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("F8_E4M3", 8), ("F8_E5M2", 8), ("F4", 4), ("BF16", 16), ("C64", 64), ("F6_E2M3", 6), ("BOOL", 8)],
)
def test_weights_that_numpy_cannot_hold_are_named(tmp_path: Path, kind: str, bits: int) -> None:
    size = 8 * bits // 8
    name = "a\x1b[31m.lin.weight"
    tensors = {name: {"dtype": kind, "shape": [2, 4], "data_offsets": [0, size]}}
    tensors["b.lin.weight"] = {"dtype": kind, "shape": [2, 4], "data_offsets": [size, 2 * size]}
    header = json.dumps(tensors).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(2 * size))
    with pytest.raises(ModelError, match=rf"holds {kind} weights in 'a\\x1b\[31m.lin.weight'; export them as float32"):
        load_model(path)


def test_a_model_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    model = random_gcn(np.random.default_rng(0), 5)
    with pytest.raises(ModelError, match="cannot be written: No such file or directory"):
        save_model(model, tmp_path / "nowhere/gcn.safetensors", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match="cannot be written: Is a directory"):
        save_model(model, tmp_path / "folder", {})
    with pytest.raises(ModelError, match="folder is a directory; name a file"):
        load_model(tmp_path / "folder")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        load_model(tmp_path / "no.safetensors")
    path = tmp_path / "cut.safetensors"
    save_model(random_gcn(np.random.default_rng(0), 5), path, {})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelError, match="is not a complete safetensors file"):
        load_model(path)


def test_a_torch_module_has_a_digest_and_feature_weights() -> None:
    layer = pyg.GCNConv(5, 3)
    model = TorchModel(layer, hops=1, number_of_features=5, number_of_classes=3)
    before = model.digest
    assert model.feature_weights().shape == (5,)
    layer.bias.data += 1
    assert model.digest != before
    plain = TorchModel(torch.nn.Identity(), hops=1, number_of_features=4, number_of_classes=4)
    assert plain.feature_weights().tolist() == [1, 1, 1, 1]


def test_a_model_that_cannot_be_evaluated_is_refused_before_it_costs_anything(tmp_path: Path) -> None:
    from privcfs import PrivateGraph, PublicContext, Vault

    wrong = TorchModel(torch.nn.Identity(), hops=1, number_of_features=4, number_of_classes=2)
    context = PublicContext(np.ones((3, 4), np.float32), [(0, 1)], wrong)
    with pytest.raises(ModelError, match="cannot be evaluated on the public snapshot"):
        Vault(
            PrivateGraph.from_edges([], number_of_nodes=3), context, ledger=f"sqlite:///{tmp_path / 'x.db'}", limit="1"
        )


class Restless(torch.nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        return torch.rand(len(x), 2)


def test_a_model_that_says_something_else_each_time_is_refused(tmp_path: Path) -> None:
    from privcfs import PrivateGraph, PublicContext, Vault

    model = TorchModel(Restless(), hops=1, number_of_features=4, number_of_classes=2)
    context = PublicContext(np.ones((3, 4), np.float32), [(0, 1)], model)
    with pytest.raises(ModelError, match="says something else each time; freeze it"):
        Vault(
            PrivateGraph.from_edges([], number_of_nodes=3), context, ledger=f"sqlite:///{tmp_path / 'x.db'}", limit="1"
        )


def test_what_is_no_finished_module_is_refused() -> None:
    with pytest.raises(ModelError, match="module is a function; give a torch"):
        TorchModel(lambda x: x, hops=1, number_of_features=4, number_of_classes=2)  # type: ignore[arg-type]
    lazy = pyg.SAGEConv(-1, 2)
    with pytest.raises(ModelError, match="layers of unknown width; run it once"):
        TorchModel(lazy, hops=1, number_of_features=4, number_of_classes=2)


def test_weights_do_not_depend_on_how_they_are_stored() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    second = np.ones((3, 2), np.float32)
    assert GCN(np.asfortranarray(weights), second).digest == GCN(weights, second).digest
