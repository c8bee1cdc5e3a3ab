"""Trains the two-layer GCN the way the paper does. Needs torch, which is imported where it is used."""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import MissingDependency, ModelError
from privcfs.public.models.gcn import GCN, normalised_adjacency


@final
@dataclass(frozen=True, slots=True)
class Training:
    """Raw features, no dropout, no bias, Xavier weights, Adam; full batch."""

    hidden: int = 32
    steps: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    seed: int = 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """What training may read: features, pairs, labels of all nodes and the numbers of the training nodes.

    The model has as many classes as `classes` says, or one more than the highest label.
    """

    features: sp.csr_array
    pairs: NDArray[np.int64]
    labels: NDArray[np.int64]
    train: NDArray[np.int64]
    classes: int | None = None


def need_torch() -> None:
    """Refuses to go on without torch, before anything is read or computed."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingDependency("training needs torch; run: pip install 'privcfs[torch]'.") from None


def train_gcn(data: Labelled, training: Training) -> GCN:
    """A frozen GCN fitted to the training nodes' labels."""
    need_torch()
    import torch

    generator = torch.Generator().manual_seed(training.seed)
    classes = data.classes or int(data.labels.max()) + 1
    shapes = ((data.features.shape[1], training.hidden), (training.hidden, classes))
    weights = [torch.nn.Parameter(torch.empty(shape)) for shape in shapes]
    for weight in weights:
        torch.nn.init.xavier_uniform_(weight, generator=generator)
    adjacency = _sparse(normalised_adjacency(data.features.shape[0], data.pairs))
    features = _tensor(data.features)
    labels, train = torch.from_numpy(data.labels), torch.from_numpy(data.train)
    optimiser = torch.optim.Adam(weights, lr=training.learning_rate, weight_decay=training.weight_decay)
    for _ in range(training.steps):
        optimiser.zero_grad()
        hidden = torch.relu(torch.sparse.mm(adjacency, features @ weights[0]))
        logits = torch.sparse.mm(adjacency, hidden @ weights[1])
        loss = torch.nn.functional.cross_entropy(logits[train], labels[train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    first, second = (weight.detach().numpy() for weight in weights)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ModelError("training ended in infinite weights; scale the features, such as to deviation 1.")
    return GCN(first, second)


def accuracy(model: GCN, data: Labelled, nodes: NDArray[np.int64]) -> float:
    """The share of nodes that the model gets right on these pairs."""
    predicted = model.logits(data.features, data.pairs).argmax(axis=1)
    return float((predicted[nodes] == data.labels[nodes]).mean())


def _tensor(matrix: sp.csr_array):  # type: ignore[no-untyped-def]
    """Dense where most entries are there."""
    import torch

    dense = matrix.nnz > matrix.shape[0] * matrix.shape[1] / 2
    return torch.from_numpy(matrix.toarray().astype(np.float32)) if dense else _sparse(matrix)


def _sparse(matrix: sp.csr_array):  # type: ignore[no-untyped-def]
    import torch

    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))  # a mapped table has indices of two types
    where = torch.from_numpy(np.stack([rows, matrix.indices]).astype(np.int64))
    values = torch.from_numpy(matrix.data.astype(np.float32))
    return torch.sparse_coo_tensor(where, values, matrix.shape, check_invariants=False).coalesce()
