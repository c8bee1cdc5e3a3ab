"""How far a torch module permits that candidates share rows.

Zone: private
Claim: rows are shared in a way that gave the module, on made-up graphs, the logits that separate copies gave.
Why: disjoint undirected copies (Sharing.NEVER) are right for every module. Shared rows need a module that passes
    messages from sources to sinks alone and takes incoming edges for degrees, as layers of PyTorch Geometric do by
    default. A module that reads edges backwards or counts outgoing ones is right on undirected graphs too, and is found
    by trying. The result depends on the module alone. Logits that hardly differ between candidates prove nothing, so
    nothing is shared then.
Check: tests/private/test_evaluators.py::test_rows_are_shared_as_far_as_the_module_permits
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.private.allowance import UNLIMITED, Allowance
from privcfs.private.evaluators.generic_rows import Sharing
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.context import FeatureRows, Readable
from privcfs.public.models.model import Model
from privcfs.public.models.torch_module import TorchModel

Floats = NDArray[np.float32]
Evaluate = Callable[[Sequence[PrivateGraph], Readable, Candidates, Allowance, Sharing], Floats]
ROUNDING = 1e-5  # Upper bound on rounding errors, relative to the largest logit.
REACTION = 1e-3  # Logits must differ by so much between candidates, relative to the largest logit.


@final
class MadeUp(FeatureRows):
    """Features that belong to nobody, and the module that is tried on them."""

    __slots__ = ("features", "inputs", "model")

    def __init__(self, features: NDArray[Any], model: Model) -> None:
        self.features = sp.csr_array(features.astype(np.float32))
        self.model, self.inputs = model, None


@lru_cache(maxsize=8)
def sharing_of(model: TorchModel, evaluate: Evaluate) -> Sharing:
    """The way of sharing with the fewest rows that the module permits."""
    rng = np.random.default_rng(0)
    graph, candidates = _made_up_graph(model.hops, rng), _made_up_candidates(model.hops)
    shape = (graph.number_of_nodes, model.number_of_features)
    contexts = [MadeUp(table, model) for table in (rng.normal(size=shape), rng.random(shape) < 0.05)]
    try:
        expected = [evaluate([graph], one, candidates, UNLIMITED, Sharing.NEVER) for one in contexts]
        if not any(np.ptp(logits, axis=1).max() > REACTION * np.abs(logits).max() for logits in expected):
            return Sharing.NEVER
        for sharing in (Sharing.SAME_EDGES, Sharing.SAME_DEGREES):
            found = [evaluate([graph], one, candidates, UNLIMITED, sharing) for one in contexts]
            if all(map(_agree, found, expected)):
                return sharing
    except Exception:  # A module that refuses a made-up graph can still be right about real ones.
        return Sharing.NEVER
    return Sharing.NEVER


def _agree(found: Floats, expected: Floats) -> bool:
    return bool(np.abs(found - expected).max() <= ROUNDING * np.abs(expected).max())


def _made_up_graph(hops: int, rng: np.random.Generator) -> PrivateGraph:
    """A tree with shortcuts that is far longer than `hops`, on whose nodes zero to four leaves hang."""
    length = 4 * hops + 8
    path = np.arange(1, length)
    tree = np.column_stack([np.maximum(0, path - rng.integers(1, 3, len(path))), path])
    shortcuts = np.column_stack([path[:-3:2], path[3::2]])
    stems = np.repeat(np.arange(length), rng.integers(0, 5, length))
    leaves = np.column_stack([stems, length + np.arange(len(stems))])
    return PrivateGraph.from_pairs(np.unique(np.concatenate([tree, shortcuts, leaves]), axis=0), length + len(stems))


def _made_up_candidates(hops: int) -> Candidates:
    """Deletions and additions at the target and at its neighbours, alone and in pairs, with and without a mask."""
    far = 2 * hops + 4
    return Candidates(
        target=0,
        caps=Caps(2, 1),
        deletions=((0, 1), (0, 2), (1, 3), (1, 4)),
        additions=((0, far), (0, far + 2), (1, far + 3)),
        features=(0,),
        pair_sets=(*subsets(7, 1), (0, 4), (1, 5), (3, 6), (4, 5)),
        feature_sets=subsets(1, 1),
    )
