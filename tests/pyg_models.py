"""A PyTorch Geometric network, a graph for it, and an `Explainer` around an algorithm."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.explain import Explainer
from torch_geometric.nn import GCNConv

from privcfs.pyg import Counterfactual
from tests.worlds import random_pairs

NODES, FEATURES, CLASSES = 16, 7, 3


class Network(torch.nn.Module):
    """The two-layer network of the library's own examples."""

    def __init__(self, gate: Callable[[torch.Tensor], torch.Tensor] = torch.relu) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.gate = GCNConv(FEATURES, 8), GCNConv(8, CLASSES), gate

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden = self.gate(self.first(x, edge_index))
        scores: torch.Tensor = self.second(hidden, edge_index)
        return scores


def graphs() -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64], sp.csr_array]:
    """Private pairs, public pairs (half of them and two that do not exist), features."""
    rng = np.random.default_rng(1)
    pairs = random_pairs(rng, NODES, 0.3)
    absent = [(u, w) for u in range(NODES) for w in range(u + 1, NODES) if [u, w] not in pairs.tolist()][:2]
    snapshot = np.unique(np.concatenate([pairs[::2], np.array(absent)]), axis=0)
    return pairs, snapshot, sp.csr_array((rng.random((NODES, FEATURES)) < 0.6).astype(np.float32))


def explainer(algorithm: Counterfactual, model: torch.nn.Module | None = None, **changed: Any) -> Explainer:
    settings: dict[str, Any] = {
        "explanation_type": "model",
        "node_mask_type": "attributes",
        "edge_mask_type": "object",
        "model_config": {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        **changed,
    }
    return Explainer(model or Network(), algorithm, **settings)
