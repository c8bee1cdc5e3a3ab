"""The bridge to PyTorch Geometric: what leaves is public or paid for."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from privcfs import Method, PrivateGraph, PublicContext, Release, TorchModel, Vault
from privcfs.errors import InputError, ModelError
from privcfs.public.candidates import RULES
from privcfs.pyg import PrivateCounterfactual, public_inputs
from tests.pyg_models import CLASSES, FEATURES, NODES, Network, explainer, graphs


def vault(folder: Path, pairs: np.typing.NDArray[np.int64] | None = None, method: Method | None = None) -> Vault:
    private, snapshot, features = graphs()
    model = TorchModel(Network(), hops=2, number_of_features=FEATURES, number_of_classes=CLASSES)
    context = PublicContext(features, snapshot, model)
    graph = PrivateGraph.from_edges(private if pairs is None else pairs, number_of_nodes=NODES)
    return Vault(graph, context, ledger=f"sqlite:///{folder / 'ledger.db'}", limit="100", method=method)


def test_a_release_arrives_as_an_explanation_and_is_paid(tmp_path: Path) -> None:
    owned = vault(tmp_path)
    x, edge_index = public_inputs(owned)
    found = explainer(PrivateCounterfactual(owned, "2"))(x, edge_index, index=3)
    assert isinstance(found.release, Release)
    assert found.release.target == 3
    assert found.intervention == found.release.intervention
    assert owned.balance().spent == 2
    assert found.node_mask.sum() == len(found.intervention.mask)
    assert set(torch.nonzero(found.node_mask)[:, 0].tolist()) <= {3}
    named = edge_index.T[found.edge_mask > 0].tolist()
    assert {(min(e), max(e)) for e in named} == set(found.intervention.delete)


def test_prediction_target_and_edges_on_the_result_are_public(tmp_path: Path) -> None:
    """Two private graphs, one snapshot: all that the library adds to the result is the same."""
    private, snapshot, _ = graphs()
    results = []
    for number, pairs in enumerate((private, private[:3])):
        folder = tmp_path / str(number)
        folder.mkdir()
        owned = vault(folder, pairs)
        results.append(explainer(PrivateCounterfactual(owned, "1"))(*public_inputs(owned), index=5))
    first, second = results
    for name in ("x", "edge_index", "prediction", "target", "index"):
        assert torch.equal(first[name], second[name]), name
    assert np.array_equal(np.unique(np.sort(first.edge_index.numpy().T, axis=1), axis=0), snapshot)
    on_snapshot = Network()(first.x, first.edge_index)
    assert torch.allclose(first.prediction, on_snapshot)
    known = {"x", "edge_index", "prediction", "target", "index", "node_mask", "edge_mask", "intervention", "release"}
    assert set(first.to_dict()) <= known


def test_a_number_of_any_integer_kind_names_a_node(tmp_path: Path) -> None:
    owned = vault(tmp_path)
    found = explainer(PrivateCounterfactual(owned, "1"))(*public_inputs(owned), index=np.int64(3))
    assert found.release.target == 3


def test_a_private_edge_list_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    owned = vault(tmp_path)
    private, _, _ = graphs()
    x, _ = public_inputs(owned)
    both = torch.from_numpy(np.concatenate([private, private[:, ::-1]]).T.copy())
    with pytest.raises(InputError, match=r"edge_index is not the vault's public one.*public_inputs"):
        explainer(PrivateCounterfactual(owned, "1"))(x, both, index=3)
    assert owned.balance().spent == 0


class Remembering(Network):
    """Takes one argument more, as many models do."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, extra: object = None) -> torch.Tensor:  # noqa: ARG002
        return super().forward(x, edge_index)


@pytest.mark.parametrize("case", ["extra input", "other features", "one direction", "a loop", "other model"])
def test_whatever_the_library_would_copy_must_be_public(tmp_path: Path, case: str) -> None:
    owned = vault(tmp_path)
    private, _, _ = graphs()
    x, edge_index = public_inputs(owned)
    model: torch.nn.Module = Remembering()
    more: dict[str, Any] = {}
    if case == "extra input":
        more["extra"] = torch.from_numpy(private)
    elif case == "other features":
        x = x.clone()
        x[:, 0] = torch.bincount(torch.from_numpy(private).ravel(), minlength=NODES)
    elif case == "one direction":
        edge_index = edge_index[:, : edge_index.shape[1] // 2]
    elif case == "a loop":
        edge_index = torch.cat([edge_index, torch.tensor([[1], [1]])], dim=1)
    else:
        model = Network(torch.tanh)
    with pytest.raises(InputError, match=r"copied onto the result|does not answer as the vault's model"):
        explainer(PrivateCounterfactual(owned, "1"), model)(x, edge_index, index=3, **more)
    assert owned.balance().spent == 0


def test_a_model_that_remembers_private_edges_is_refused(tmp_path: Path) -> None:
    """With cached=True a layer keeps the first graph that it saw, and predicts for that one ever after."""
    private, snapshot, features = graphs()
    both = torch.from_numpy(np.concatenate([private, private[:, ::-1]]).T.copy())
    caching = Network()
    caching.first.cached = caching.second.cached = True
    caching(torch.from_numpy(features.toarray()), both)
    owned = vault(tmp_path)
    with pytest.raises(InputError, match="does not answer as the vault's model"):
        explainer(PrivateCounterfactual(owned, "1"), caching)(*public_inputs(owned), index=3)
    assert owned.balance().spent == 0
    model = TorchModel(caching, hops=2, number_of_features=FEATURES, number_of_classes=CLASSES)
    context = PublicContext(features, snapshot, model)
    graph = PrivateGraph.from_edges(private, number_of_nodes=NODES)
    with pytest.raises(ModelError, match="cached=True, which answers for the graph that it saw first"):
        Vault(graph, context, ledger=f"sqlite:///{tmp_path / 'other.db'}", limit="1")


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (None, "index names no node; one call explains one node"),
        (torch.tensor([1, 2]), "index names 2 nodes; one call explains one node"),
        (torch.tensor([3.7]), "index has type torch.float32; give the number"),
        (torch.tensor([True]), "index has type torch.bool; give the number"),
    ],
)
def test_one_call_explains_one_node(tmp_path: Path, index: torch.Tensor | None, words: str) -> None:
    owned = vault(tmp_path)
    with pytest.raises(InputError, match=words):
        explainer(PrivateCounterfactual(owned, "1"))(*public_inputs(owned), index=index)
    assert owned.balance().spent == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"node_mask_type": None}, "node_mask_type='attributes'"),
        ({"edge_mask_type": None}, "edge_mask_type='object'"),
        ({"explanation_type": "phenomenon"}, "explanation_type='model'"),
        (
            {"model_config": {"mode": "regression", "task_level": "node", "return_type": "raw"}},
            "mode='multiclass_classification'",
        ),
    ],
)
def test_settings_that_would_hide_part_of_a_release_are_refused(
    tmp_path: Path, changed: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(ValueError, match="does not support"):
        explainer(PrivateCounterfactual(vault(tmp_path), "1"), **changed)
    assert words in caplog.text


def test_without_feature_masks_no_feature_mask_is_asked_for(tmp_path: Path) -> None:
    owned = vault(tmp_path, method=Method(candidates=RULES["edges-only"]))
    found = explainer(PrivateCounterfactual(owned, "1"), node_mask_type=None)(*public_inputs(owned), index=2)
    assert not found.intervention.mask
