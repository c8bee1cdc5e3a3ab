"""A bridge to PyTorch Geometric: a vault's release as the result of its `Explainer`.

`Explainer` copies what it is called with, and its own prediction on it, onto every result. So it is called with the
public snapshot; the private graph stays in the vault that the algorithm holds. Other inputs, or a model that does not
answer as the vault's does on the snapshot, are refused before anything is paid.
"""

import logging
from collections.abc import Sequence
from typing import Any, final

try:
    import torch
    from torch_geometric.explain import ExplainerAlgorithm, Explanation
    from torch_geometric.explain.config import ExplanationType, MaskType, ModelMode, ModelTaskLevel
except ImportError as error:
    from privcfs.errors import MissingDependency

    raise MissingDependency("privcfs.pyg needs torch_geometric; run: pip install 'privcfs[pyg]'.") from error

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError
from privcfs.gate.questions.question import OWNER
from privcfs.gate.vault import Vault
from privcfs.public.epsilon import Price
from privcfs.public.interventions import Intervention
from privcfs.public.schema.of_node import encoded_changes

CLOSE = 1e-3  # between two computations of the same class scores


class Counterfactual(ExplainerAlgorithm):  # type: ignore[misc]
    """Explains one node of a classifier; masks are 1 where the intervention acts and 0 elsewhere.

    A threshold of the `Explainer` may hide masks; `intervention` on the result is always whole.
    """

    masks_features: bool = True

    def supports(self) -> bool:
        """Whether the settings of the `Explainer` can show the whole intervention."""
        asked, model = self.explainer_config, self.model_config
        wanted = {
            "explanation_type='model'": asked.explanation_type == ExplanationType.model,
            "task_level='node'": model.task_level == ModelTaskLevel.node,
            "mode='multiclass_classification'": model.mode == ModelMode.multiclass_classification,
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
        model: torch.nn.Module,
        x: torch.Tensor,
        edge_index: torch.Tensor,
        *,
        target: torch.Tensor,  # noqa: ARG002
        index: int | torch.Tensor | None = None,
        **more: Any,
    ) -> Explanation:
        """Charges the ledger and draws."""
        node = one_node(index)
        self._refuse_all_but_public(model, x, edge_index, more)
        release = self._vault.release(node, self._epsilon, analyst=self._analyst)
        changes = encoded_changes(self._vault.context, node, release.intervention.change)
        columns = [column for one in changes for column in one.columns]
        explanation = as_explanation(release.intervention, node, x, edge_index, columns)
        explanation.release = release
        return explanation

    def _refuse_all_but_public(
        self, model: torch.nn.Module, x: torch.Tensor, edge_index: torch.Tensor, more: dict[str, Any]
    ) -> None:
        """Refuses inputs that are not public: the library copies them, and the model's output, onto the result."""
        context = self._vault.context
        features, snapshot = public_inputs(self._vault)
        given = {"x": (x.cpu(), features), "edge_index": (_sorted(edge_index.cpu()), _sorted(snapshot))}
        for name, (value, public) in given.items():
            if value.shape != public.shape or not torch.equal(value.to(public.dtype), public):
                raise InputError(
                    f"{name} is not the vault's public one, and would be copied onto the result; call the explainer "
                    "with public_inputs(vault)."
                )
        if more:
            raise InputError(f"{min(more)} would be copied onto the result; give x, edge_index and index alone.")
        with torch.no_grad():
            answers = model(x, edge_index).detach().cpu().double().numpy()
        expected = context.model.logits(context.features, context.snapshot.pairs)
        if answers.shape != expected.shape or np.abs(_centred(answers) - _centred(expected)).max() > CLOSE:
            raise InputError(
                "model does not answer as the vault's model does on the snapshot; explain the model that the vault "
                "holds, without cached layers, in the return type raw or log_probs."
            )


def public_inputs(vault: Vault) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and snapshot as `x` and `edge_index`, both directions of every pair."""
    pairs = torch.from_numpy(vault.context.snapshot.pairs.copy()).long()
    features = torch.from_numpy(vault.context.features.toarray()).float()
    return features, torch.cat([pairs, pairs.flip(1)]).T.contiguous()


def as_explanation(
    intervention: Intervention, node: int, x: torch.Tensor, edge_index: torch.Tensor, changed: Sequence[int] = ()
) -> Explanation:
    """Masks over the inputs, and the intervention itself, which may also name pairs that the inputs do not have.

    `changed` has the columns of the features that the intervention sets to another value.
    """
    node_mask = torch.zeros(x.shape, device=x.device)
    node_mask[node, [*intervention.mask, *changed]] = 1
    acted = {*intervention.delete, *intervention.add}
    named = [float((min(e), max(e)) in acted) for e in edge_index.T.tolist()]
    edge_mask = torch.tensor(named, device=edge_index.device)
    return Explanation(node_mask=node_mask, edge_mask=edge_mask, intervention=intervention)


def one_node(index: int | torch.Tensor | None) -> int:
    """The node that is asked about."""
    asked = None if index is None else torch.as_tensor(index)
    if asked is None or asked.numel() != 1:
        count = "no node" if asked is None else f"{asked.numel()} nodes"
        raise InputError(f"index names {count}; one call explains one node.")
    if asked.is_floating_point() or asked.dtype == torch.bool:
        raise InputError(f"index has type {asked.dtype}; give the number of one node.")
    return int(asked)


def pairs_of(edge_index: torch.Tensor) -> NDArray[np.int64]:
    """Undirected pairs, smaller node first, sorted, each once."""
    both = np.sort(edge_index.detach().cpu().numpy().T.astype(np.int64), axis=1)
    distinct: NDArray[np.int64] = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
    return distinct


def _sorted(edge_index: torch.Tensor) -> torch.Tensor:
    """Directed edges in one order, repetitions included."""
    columns = edge_index.detach().numpy()
    return torch.from_numpy(columns[:, np.lexsort(columns[::-1])])


def _centred(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raw scores and log-probabilities differ by a constant in each row."""
    centred: NDArray[np.float64] = scores - scores.mean(axis=1, keepdims=True)
    return centred
