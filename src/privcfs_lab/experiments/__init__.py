"""The paper's experiments, and ours. One file per family, one line per result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

from privcfs_lab.experiments import (
    ablations,
    advice,
    audit_accounts,
    audit_pairs,
    audit_sketches,
    audit_transcripts,
    audits,
    beliefs,
    certification,
    compare,
    confidence,
    datasets,
    findings,
    frontier,
    ground_truth,
    leakage,
    loan,
    losses,
    models,
    neighbours,
    population,
    populations,
    post_mortem,
    readings,
    recourse,
    sameops,
    scale,
    transfer,
    zero,
)
from privcfs_lab.figures.page import Page
from privcfs_lab.measuring.study import Study


@final
@dataclass(frozen=True, slots=True)
class Experiment:
    """One result: what computes it, and a line about it for the list of results."""

    run: Callable[[Study], Page]
    about: str


PAPER: Mapping[str, Experiment] = {
    "datasets": Experiment(datasets.page, "data sets, accuracy, margins"),
    "frontier-general": Experiment(
        frontier.general, "the frontier on publicly drawn targets (the paper's primary table)"
    ),
    "frontier-borderline": Experiment(frontier.borderline, "the frontier on the ten targets of lowest margin"),
    "edge-feature": Experiment(
        losses.edge_feature, "which operations carry the result, and the evidence about the paper's masks"
    ),
    "losses": Experiment(losses.decomposition, "where validity goes: support, prior, noise"),
    "populations": Experiment(populations.page, "who is explained decides how far a release reaches"),
    "ablations": Experiment(ablations.page, "the appendix's ablations"),
    "findings": Experiment(findings.page, "the seven findings of the text, number by number"),
    "compare": Experiment(compare.short, "the mechanism comparison on borderline targets"),
    "compare-full": Experiment(
        compare.full, "every system, both populations: validity, pollution, price, what is certified"
    ),
    "sameops": Experiment(sameops.page, "the same operations under another placement"),
    "readings": Experiment(readings.page, "the paper's three readings of its comparison, derived again"),
    "transfer": Experiment(transfer.page, "larger graphs"),
    "certification": Experiment(certification.page, "exhaustive small-graph checks and their broken twins"),
    "audit-pairs": Experiment(audit_pairs.page, "what the best attack gains on real neighbouring graphs"),
    "post-mortem": Experiment(
        post_mortem.page, "how far the heuristic's answer moves between neighbouring graphs (the paper's appendix A)"
    ),
    "leakage": Experiment(
        leakage.page, "what the best attack gains against what is valid, for each placement of the noise"
    ),
    "zero": Experiment(zero.page, "row zero on all test nodes, both ways of training"),
    "slice": Experiment(frontier.a_slice, "a small part that the tests compute again"),
}
BEYOND: Mapping[str, Experiment] = {
    "population": Experiment(
        population.page, "what it costs to explain everyone: accounts, a sketch paid once, advice"
    ),
    "audit-black-box": Experiment(
        audits.black_box, "an auditor who only asks, and every broken twin before its checker"
    ),
    "audit-worst-case": Experiment(
        audits.worst_case, "the worst neighbours: all small graphs, climbing on real ones, a construction, the slack"
    ),
    "audit-attacks": Experiment(audits.attacks, "known attacks on our release, the heuristic and graph-level noise"),
    "audit-questions": Experiment(audits.many_questions, "an adaptive analyst with 1, 10 and 100 questions"),
    "audit-transcripts": Experiment(
        audit_transcripts.page, "accounts of many questions before a sequential test, valid whenever one stops"
    ),
    "audit-accounts": Experiment(
        audit_accounts.page,
        "own edges, accounts of nodes, advice: identical laws, an attack on one edge after everyone has asked, twins",
    ),
    "audit-sketches": Experiment(
        audit_sketches.page, "an attack on one edge from a sketch, alone and with paid answers, and broken twins"
    ),
    "audit-time": Experiment(audits.timing, "what the time of an answer gives away, and a public answering time"),
    "neighbours": Experiment(
        neighbours.page, "robust explanations and other neighbours: what each method protects, certifies and achieves"
    ),
    "everyone": Experiment(frontier.everyone, "the same frontiers over every test node, ten seeds, five data sets"),
    "ground-truth": Experiment(ground_truth.page, "graphs whose reasons are known, with the field's four measures"),
    "recourse": Experiment(
        recourse.page, "beyond the paper: small, sure recourse at each price and size, against row zero"
    ),
    "levers": Experiment(
        recourse.levers, "what additions, imagined graphs, doubt and subset selection are worth, each left out in turn"
    ),
    "beliefs": Experiment(beliefs.page, "what each belief about hidden pairs is worth, on held-out pairs and in use"),
    "confidence": Experiment(confidence.page, "whether the confidence on a release is right"),
    "advice": Experiment(
        advice.page, "what own edges are worth: advice to the person concerned, and releases that read nothing else"
    ),
    "loan": Experiment(
        loan.page, "German credit with named features: changes that clients can make, their validity and cost"
    ),
    "models": Experiment(models.page, "GraphSAGE, GIN, GAT, three layers, and whole graphs with a known reason"),
    "scale": Experiment(scale.cost, "cost against the number of nodes"),
}
EXPERIMENTS: Mapping[str, Experiment] = {**PAPER, **BEYOND}

PAGES = {name: one.about for name, one in EXPERIMENTS.items()} | {"bench": "speed and memory"}

__all__ = ["BEYOND", "EXPERIMENTS", "PAGES", "PAPER", "Experiment"]
