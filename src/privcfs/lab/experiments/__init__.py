"""The paper's experiments, and ours. One file per family, one line per result."""

from collections.abc import Callable, Mapping

from privcfs.lab.experiments import (
    ablations,
    certification,
    datasets,
    findings,
    frontier,
    losses,
    overview,
    populations,
    same_operations,
    scale,
    transfer,
    zero,
)
from privcfs.lab.report import Page
from privcfs.lab.study import Study

Experiment = Callable[[Study], Page]

PAPER: Mapping[str, Experiment] = {
    "datasets": datasets.page,
    "frontier-general": frontier.general,
    "frontier-borderline": frontier.borderline,
    "edge-feature": losses.edge_feature,
    "losses": losses.decomposition,
    "populations": populations.page,
    "ablations": ablations.page,
    "findings": findings.page,
    "same-operations": same_operations.page,
    "transfer": transfer.page,
    "certification": certification.page,
    "zero": zero.page,
    "slice": frontier.a_slice,
}
BEYOND: Mapping[str, Experiment] = {
    "everyone": frontier.everyone,
    "scale": scale.cost,
}
EXPERIMENTS: Mapping[str, Experiment] = {**PAPER, **BEYOND}

__all__ = ["BEYOND", "EXPERIMENTS", "PAPER", "Experiment", "overview"]
