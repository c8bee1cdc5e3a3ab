"""One forward pass of a torch module: neighbours as a sparse matrix where the module permits it, else as edges.

Zone: private
Claim: a module gets neighbours as a matrix only if, on made-up graphs, it then gave the very numbers that it gave for a
    list of edges.
Why: a list of edges is right for every module. Layers of PyTorch Geometric that add up or average what neighbours send
    take a matrix too, multiply by it, and need no copy of the features for each edge. Others refuse it, or read it
    otherwise (GCN layers do), and are found by trying. The result depends on the module alone. Numbers that do not
    depend on the edges prove nothing, so a list is given then.
Check: tests/private/test_evaluators.py::test_a_module_gets_a_matrix_only_if_its_scores_stay_the_same
"""

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcfs.public.models.torch_module import TorchModel

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
TRIALS, NODES = 3, 40


def class_scores(model: TorchModel, x: Floats, edges: Numbers) -> Floats:
    """Class scores of all rows of `x`. `edges` holds sources and sinks, each pair of them once."""
    import torch

    with torch.no_grad():
        neighbours = _matrix(edges, len(x)) if takes_matrix(model) else torch.from_numpy(edges)
        scores: Floats = model.module(torch.from_numpy(x), neighbours).numpy()
    if scores.shape != (len(x), model.number_of_classes):
        raise ValueError(f"the module returned shape {scores.shape}")
    return scores


@lru_cache(maxsize=8)
def takes_matrix(model: TorchModel) -> bool:
    """Whether the module gives the same numbers for a matrix as for a list of edges."""
    import torch

    rng = np.random.default_rng(0)
    tables = [torch.from_numpy(rng.normal(size=(NODES, model.number_of_features)).astype(np.float32))] * TRIALS
    lists = [np.argwhere(rng.random((NODES, NODES)) < share).T[::-1].copy() for share in (0.01, 0.1, 0.3)]
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says once that such matrices are new
            expected = [model.module(x, torch.from_numpy(edges)) for x, edges in zip(tables, lists, strict=True)]
            found = [model.module(x, _matrix(edges, NODES)) for x, edges in zip(tables, lists, strict=True)]
        reacts = not torch.equal(expected[0], expected[1]) and not torch.equal(expected[1], expected[2])
        return reacts and all(map(torch.equal, found, expected))
    except Exception:  # A module that refuses a matrix or a made-up graph can still be right about lists of edges.
        return False


def _matrix(edges: Numbers, nodes: int) -> "torch.Tensor":
    """A 1 in the row of each sink and the column of each of its sources."""
    import torch

    order = np.argsort(edges[1], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=nodes))])
    return torch.sparse_csr_tensor(
        torch.from_numpy(starts),
        torch.from_numpy(edges[0][order]),
        torch.ones(len(order)),
        size=(nodes, nodes),
        check_invariants=False,
    )
