"""The compared methods as algorithms of PyTorch Geometric's `Explainer`. Nothing here is private."""

from typing import Any, final

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.explain import Explanation
from torch_geometric.nn import GCNConv

from privcfs.errors import InputError
from privcfs.pyg import CLOSE, Counterfactual, as_explanation, one_node, pairs_of
from privcfs_lab.baselines.baseline import Baseline, Operations, Problem
from privcfs_lab.datasets.dataset import Dataset, Split
from privcfs_lab.models.deep_gcn import DeepGCN

NONE = np.zeros(0, np.int64)


@final
class OpenCounterfactual(Counterfactual):
    """`Explainer(model, OpenCounterfactual(CFGNNExplainer()), ...)`; the result has `intervention` and `flips` too.

    The model is a stack of `GCNConv` layers with a relu between them.
    """

    def __init__(self, method: Baseline, seed: int = 0) -> None:
        super().__init__()
        if method.placement != "none":
            raise InputError(f"{type(method).__name__} adds noise of its own; use it through privcfs-lab reproduce.")
        self._method, self._seed = method, seed
        self.masks_features = method.operations is not Operations.EDGES

    def forward(
        self,
        model: torch.nn.Module,
        x: torch.Tensor,
        edge_index: torch.Tensor,
        *,
        target: torch.Tensor,  # noqa: ARG002
        index: int | torch.Tensor | None = None,
        **_: Any,
    ) -> Explanation:
        """Explains the model on the graph that it is given."""
        node, features = one_node(index), sp.csr_array(x.detach().cpu().numpy())
        labels = np.zeros(len(x), np.int64)
        data = Dataset("given", features, pairs_of(edge_index), labels, Split(NONE, NONE, NONE))
        copied = _copied(model, x, edge_index, data)
        (found,) = self._method.explain(Problem(data, copied, (node,), self._seed))
        explanation = as_explanation(found.intervention, node, x, edge_index)
        explanation.flips = found.flips
        return explanation


def _copied(model: torch.nn.Module, x: torch.Tensor, edge_index: torch.Tensor, data: Dataset) -> DeepGCN:
    """The model's weights, if they alone give its answers."""
    layers = []
    for layer in (part for part in model.modules() if isinstance(part, GCNConv)):
        weight = layer.lin.weight.detach().cpu().numpy().T.astype(np.float32)
        bias = np.zeros(weight.shape[1], np.float32) if layer.bias is None else layer.bias.detach().cpu().numpy()
        layers.append((weight, bias))
    widths = [x.shape[1], *(weight.shape[1] for weight, _ in layers)]
    if len(layers) >= 2 and [weight.shape[0] for weight, _ in layers] == widths[:-1]:
        copied = DeepGCN(tuple(layers))
        with torch.no_grad():
            expected = model(x, edge_index).cpu().numpy()
        given = copied.logits(data.features, data.pairs)
        shift = (given - expected) - (given - expected).mean(axis=1, keepdims=True)  # log-probabilities are as good
        if np.abs(shift).max() < CLOSE:
            return copied
    raise InputError(
        "model does not answer as its GCNConv layers do, in their order with a relu between them, on the undirected "
        "graph; the compared methods explain two or more such layers that return scores or log-probabilities."
    )
