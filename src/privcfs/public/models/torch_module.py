"""Any torch module that maps (x, edge_index) to class scores."""

import hashlib
from typing import TYPE_CHECKING, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import MissingDependency, ModelError
from privcfs.public.models.model import Model

if TYPE_CHECKING:
    import torch


@final
class TorchModel(Model):
    """Any torch module that maps (x, edge_index) to logits, in evaluation mode.

    A node's output may depend on the features and degrees of the nodes within `hops` steps, and on nothing else.

    Args:
        module: The trained module.
        hops: Its number of message-passing layers. Too small a number gives wrong evaluations.
        number_of_features: The number of columns of x.
        number_of_classes: The number of logits of a node.

    Raises:
        MissingDependency: torch is not installed.
        ModelError: The module is not a torch.nn.Module, has layers of unknown width, or `hops` is below 1.
    """

    __slots__ = ("_classes", "_features", "_hops", "module")

    def __init__(
        self, module: "torch.nn.Module", *, hops: int, number_of_features: int, number_of_classes: int
    ) -> None:
        try:
            import torch
        except ImportError:
            raise MissingDependency("TorchModel needs torch; run: pip install 'privcfs[torch]'.") from None
        if not isinstance(module, torch.nn.Module):
            raise ModelError(f"module is a {type(module).__name__}; give a torch.nn.Module.")
        if any(isinstance(item, torch.nn.UninitializedParameter) for item in module.parameters()):
            raise ModelError("module has layers of unknown width; run it once before you freeze it.")
        if hops < 1:
            raise ModelError(f"hops is {hops}; give the number of message-passing layers, at least 1.")
        self.module = module.eval()
        self._hops, self._features, self._classes = hops, number_of_features, number_of_classes

    @property
    def number_of_features(self) -> int:
        return self._features

    @property
    def number_of_classes(self) -> int:
        return self._classes

    @property
    def hops(self) -> int:
        return self._hops

    @property
    def digest(self) -> str:
        hasher = hashlib.sha256(f"privcfs torch 1\n{type(self.module).__qualname__}\n{self._hops}\n".encode())
        for name, tensor in sorted(self.module.state_dict().items()):
            array = tensor.detach().cpu().numpy()
            hasher.update(f"{name} {array.dtype} {array.shape}\n".encode() + np.ascontiguousarray(array).tobytes())
        return hasher.hexdigest()

    def feature_weights(self) -> NDArray[np.float64]:
        """Column norms of the first weight matrix that reads features; ones where there is none."""
        for parameter in self.module.parameters():
            if parameter.dim() == 2 and parameter.shape[1] == self._features:
                weights: NDArray[np.float64] = parameter.detach().double().norm(dim=0).cpu().numpy()
                return weights
        return np.ones(self._features)

    def responses(
        self, features: sp.csr_array, pairs: NDArray[np.int64], node: int, rows: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Estimates the logits of one node if its features were each of some rows, by the gradient of each class.

        Args:
            features: The feature table.
            pairs: The undirected edges, each once.
            node: The node.
            rows: Its features instead of those in the table: (rows, features).

        Returns:
            One row for each of the rows, one column for each class.
        """
        import torch

        both = np.concatenate([pairs, pairs[:, ::-1]]).T
        table = torch.from_numpy(features.toarray()).requires_grad_()
        with torch.enable_grad():
            scores = self.module(table, torch.from_numpy(np.ascontiguousarray(both)))[node]
            gradients = [torch.autograd.grad(one, table, retain_graph=True)[0][node] for one in scores]
        slopes = torch.stack(gradients).double().numpy()
        present = scores.detach().double().numpy()
        moved = rows.astype(np.float64) - features[[node]].toarray()
        estimated: NDArray[np.float64] = present + moved @ slopes.T
        return estimated

    def logits(self, features: sp.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logits of every node.

        Args:
            features: The feature table.
            pairs: The undirected edges, each once.

        Returns:
            One row for each node, one column for each class.
        """
        import torch

        both = np.concatenate([pairs, pairs[:, ::-1]]).T
        with torch.no_grad():
            scores = self.module(torch.from_numpy(features.toarray()), torch.from_numpy(np.ascontiguousarray(both)))
        array: NDArray[np.float64] = scores.double().numpy()
        return array
