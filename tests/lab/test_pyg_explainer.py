"""The compared methods as algorithms of PyTorch Geometric's `Explainer`."""

import numpy as np
import pytest
import torch

from privcfs import Intervention
from privcfs.errors import InputError
from privcfs_lab.baselines.baseline import Baseline, Operations
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.combinex import Combinex
from privcfs_lab.baselines.greedy import Greedy
from privcfs_lab.baselines.pns import PNS
from privcfs_lab.baselines.pyg_explainer import OpenCounterfactual
from privcfs_lab.baselines.rc_explainer import RCExplainer
from privcfs_lab.baselines.rr_ldp import RRLDP
from tests.pyg_models import Network, explainer, graphs


@pytest.mark.parametrize("method", [CFGNNExplainer(), PNS(), RCExplainer(), Combinex(), Greedy()])
def test_open_methods_explain_the_graph_that_they_are_given(method: Baseline) -> None:
    private, _, features = graphs()
    both = torch.from_numpy(np.concatenate([private, private[:, ::-1]]).T.copy())
    x, model = torch.from_numpy(features.toarray()), Network()
    flipped = 0
    for node in range(4):
        found = explainer(OpenCounterfactual(method), model)(x, both, index=node)
        changed = x.clone()
        changed[node, list(found.intervention.mask)] = 0
        kept = both[:, found.edge_mask == 0]
        with torch.no_grad():
            before, after = (model(*given)[node].argmax() for given in ((x, both), (changed, kept)))
        assert found.flips == bool(before != after)
        assert found.flips or isinstance(method, PNS) or found.intervention == Intervention()
        flipped += found.flips
    assert flipped >= 1


def test_an_open_method_refuses_a_model_that_it_cannot_copy() -> None:
    private, _, features = graphs()
    both = torch.from_numpy(np.concatenate([private, private[:, ::-1]]).T.copy())
    with pytest.raises(InputError, match="model does not answer as its GCNConv layers do"):
        explainer(OpenCounterfactual(Greedy()), Network(torch.tanh))(
            torch.from_numpy(features.toarray()), both, index=0
        )


def test_a_method_with_noise_of_its_own_is_no_open_method() -> None:
    with pytest.raises(InputError, match="RRLDP adds noise of its own"):
        OpenCounterfactual(RRLDP())
    assert OpenCounterfactual(Greedy(Operations.EDGES)).masks_features is False
