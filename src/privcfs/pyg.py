"""A bridge to PyTorch Geometric: a vault's release as the result of its `Explainer`.

`Explainer` copies what it is called with, and its own prediction on it, onto every result. So it is called with the
public snapshot; the private graph stays in the vault that the algorithm holds. Anything else is refused.
"""

import logging
from typing import Any, final

try:
    import torch
    from torch_geometric.explain import ExplainerAlgorithm, Explanation
    from torch_geometric.explain.config import ExplanationType, MaskType, ModelMode, ModelTaskLevel
except ImportError as error:
    from privcfs.errors import MissingDependency

    raise MissingDependency("privcfs.pyg needs torch_geometric; run: pip install 'privcfs[pyg]'.") from error

import numpy as np

from privcfs.errors import InputError
from privcfs.gate.vault import OWNER, Vault
from privcfs.public.epsilon import Price
from privcfs.public.interventions import Intervention


class Counterfactual(ExplainerAlgorithm):  # type: ignore[misc]
    """Explains one node of a classifier; masks are 1 where the intervention acts and 0 elsewhere."""

    masks_features: bool = True

    def supports(self) -> bool:
        """Whether the settings of the `Explainer` can show the whole intervention."""
        asked, model = self.explainer_config, self.model_config
        wanted = {
            "explanation_type='model'": asked.explanation_type == ExplanationType.model,
            "task_level='node'": model.task_level == ModelTaskLevel.node,
            "a mode of classification": model.mode != ModelMode.regression,
            "edge_mask_type='object'": asked.edge_mask_type == MaskType.object,
            "node_mask_type='attributes'": asked.node_mask_type == MaskType.attributes
            or (asked.node_mask_type is None and not self.masks_features),
        }
        for setting, holds in wanted.items():
            if not holds:
                logging.error(f"'{type(self).__name__}' needs {setting}")
        return all(wanted.values())


@final
class PrivateCounterfactual(Counterfactual):
    """One paid release for each call: `Explainer(model, PrivateCounterfactual(vault, "1"), ...)`.

    Call the explainer with `public_inputs(vault)`. Its result has `intervention` and `release` besides the masks;
    `prediction` and `target` are the model's on the snapshot, which may differ from the private ones.
    """

    def __init__(self, vault: Vault, epsilon: Price, *, analyst: str = OWNER) -> None:
        super().__init__()
        self._vault, self._epsilon, self._analyst = vault, epsilon, analyst
        self.masks_features = vault.method.candidates.caps.features > 0

    def forward(
        self,
        model: torch.nn.Module,  # noqa: ARG002
        x: torch.Tensor,
        edge_index: torch.Tensor,
        *,
        target: torch.Tensor,  # noqa: ARG002
        index: torch.Tensor | None = None,
        **_: Any,
    ) -> Explanation:
        """Charges the ledger and draws."""
        node = one_node(index)
        if not np.array_equal(pairs_of(edge_index), self._vault.context.snapshot.pairs):
            raise InputError(
                "edge_index is not the vault's public snapshot, and would be copied onto the result; call the "
                "explainer with public_inputs(vault)."
            )
        release = self._vault.release(node, self._epsilon, analyst=self._analyst)
        explanation = as_explanation(release.intervention, node, x, edge_index)
        explanation.release = release
        return explanation


def public_inputs(vault: Vault) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and snapshot as `x` and `edge_index`, both directions of every pair."""
    pairs = torch.from_numpy(vault.context.snapshot.pairs.copy()).long()
    features = torch.from_numpy(vault.context.features.toarray()).float()
    return features, torch.cat([pairs, pairs.flip(1)]).T.contiguous()


def as_explanation(intervention: Intervention, node: int, x: torch.Tensor, edge_index: torch.Tensor) -> Explanation:
    """Masks over the inputs, and the intervention itself, which may also name pairs that the inputs do not have."""
    node_mask = torch.zeros(x.shape)
    node_mask[node, list(intervention.mask)] = 1
    acted = {*intervention.delete, *intervention.add}
    edge_mask = torch.tensor([float((min(e), max(e)) in acted) for e in edge_index.T.tolist()])
    return Explanation(node_mask=node_mask, edge_mask=edge_mask, intervention=intervention)


def one_node(index: torch.Tensor | None) -> int:
    """The node that is asked about."""
    if index is None or index.numel() != 1:
        count = "no node" if index is None else f"{index.numel()} nodes"
        raise InputError(f"index names {count}; one call explains one node.")
    return int(index)


def pairs_of(edge_index: torch.Tensor) -> "np.typing.NDArray[np.int64]":
    """Undirected pairs, smaller node first, sorted, each once."""
    both = np.sort(edge_index.detach().cpu().numpy().T.astype(np.int64), axis=1)
    distinct: np.typing.NDArray[np.int64] = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
    return distinct
