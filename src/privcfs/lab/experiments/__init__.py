"""The paper's experiments, and ours. One file per family, one line per result."""

from collections.abc import Callable, Mapping

from privcfs.lab.experiments import (
    ablations,
    audit_pairs,
    audits,
    certification,
    compare,
    datasets,
    findings,
    frontier,
    ground_truth,
    leakage,
    losses,
    models,
    overview,
    populations,
    post_mortem,
    readings,
    recourse,
    sameops,
    scale,
    surroundings,
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
    "compare": compare.short,
    "compare-full": compare.full,
    "sameops": sameops.page,
    "readings": readings.page,
    "transfer": transfer.page,
    "certification": certification.page,
    "audit-pairs": audit_pairs.page,
    "post-mortem": post_mortem.page,
    "leakage": leakage.page,
    "zero": zero.page,
    "slice": frontier.a_slice,
}
BEYOND: Mapping[str, Experiment] = {
    "audit-black-box": audits.black_box,
    "audit-worst-case": audits.worst_case,
    "audit-attacks": audits.attacks,
    "audit-questions": audits.many_questions,
    "audit-time": audits.timing,
    "everyone": frontier.everyone,
    "ground-truth": ground_truth.page,
    "recourse": recourse.page,
    "levers": recourse.levers,
    "surroundings": surroundings.page,
    "models": models.page,
    "scale": scale.cost,
}
EXPERIMENTS: Mapping[str, Experiment] = {**PAPER, **BEYOND}

__all__ = ["BEYOND", "EXPERIMENTS", "PAPER", "Experiment", "overview"]
