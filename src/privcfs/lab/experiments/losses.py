"""Where validity goes: to the fixed support, to the public prior, to the noise; and which operations carry it."""

from functools import partial

from privcfs.embedded import NAMES
from privcfs.gate.vault import Method
from privcfs.lab.experiments.cells import (
    ARMS,
    BOTH_ARMS,
    EDGES,
    HOW,
    MORE_ARMS,
    ROW_ZERO,
    cell,
    seeds_of,
    verdict,
)
from privcfs.lab.experiments.fields import BESIDE_PAPER, Field, View, table
from privcfs.lab.experiments.paper import DECOMPOSITION, STEPS
from privcfs.lab.figures.losses import draw_losses
from privcfs.lab.measure import Records
from privcfs.lab.report import Column, Page, Picture, Value
from privcfs.lab.study import Cell, Study
from privcfs.lab.summary import EIGHT, estimate, guess, rate
from privcfs.private.utilities.soft import Soft

PROTOCOLS = ("borderline", "stratified")
STAGES = ("free explainer", "fixed support", "public prior", "epsilon 8")
COLUMNS = (
    Column("data"),
    Column("population"),
    Column("arm"),
    Column("stage"),
    Column("support", ".0f"),
    Column("near", ".1f"),
    Column("share flipped"),
    Column("step"),
    Column("paper's step", ".2f"),
    Column("verdict"),
    Column("public guess"),
)


def decomposition(study: Study) -> Page:
    """Four stages for both protocols and both arms. The first needs a free explainer and is not measured yet."""
    keys = [(name, population, arm) for name in NAMES for population in PROTOCOLS for arm in ARMS]
    cells = {key: _cells(*key) for key in keys}
    measured = study.measure(cell for three in cells.values() for cell in three)
    chains, rows, kept = {}, [], []
    for key, three in cells.items():
        found = [measured[one] for one in three]
        whole, half, soft = found
        values = [float(whole["ceiling"].mean()), float(half["ceiling"].mean()), rate(soft, "valid").mean]
        chains[key] = values, guess(half).mean
        rows += _rows(key, found)
        if key[1:] == ("stratified", EDGES):
            kept.append(f"{values[2] / values[1]:.0%}")
    about = (
        f"{seeds_of(study).capitalize()}. {HOW} {ROW_ZERO} {BOTH_ARMS} Stages: an explainer without any restriction "
        "(not measured yet: it needs the compared methods); the best candidate of the fixed support when all edges are "
        "public; the same with half of them public; one release at epsilon 8, drawn with the soft utility as in the "
        "paper's figure. Steps are means of differences within targets. The paper's steps for stratified targets are "
        "those of its text, which disagree with its caption; there it also prints that the release keeps 76 % / 85 % "
        f"of the optimum (Cora / CiteSeer): ours, edge-only, {' / '.join(kept)}."
    )
    words = (
        "Share of targets flipped after each stage, borderline and stratified targets, both data sets and arms, with "
        "the public guess marked"
    )
    picture = Picture(words, partial(draw_losses, chains, STAGES[1:]))
    return Page("Loss decomposition", about, COLUMNS, rows, (picture,))


def _cells(name: str, population: str, arm: str) -> tuple[Cell, Cell, Cell]:
    method = ARMS[arm]
    whole, half = (Cell(name, population, share, method) for share in (1.0, 0.5))
    return whole, half, Cell(name, population, 0.5, Method(method.candidates, Soft()))


def _rows(key: tuple[str, str, str], found: list[Records]) -> list[list[Value]]:
    name, population, arm = key
    after = [found[0]["ceiling"], found[1]["ceiling"], found[2]["valid"][:, EIGHT]]
    rows: list[list[Value]] = [[*key, STAGES[0], None, None, "not measured yet", None, None, None, None]]
    for number, stage in enumerate(STAGES[1:]):
        step = estimate(after[number] - after[number - 1]) if number else None
        printed = STEPS[population, stage][NAMES.index(name)] if arm == EDGES else None
        word = verdict(step, printed, 0.0025) if step else None  # printed steps have two decimals
        size = [float(found[number][column].mean()) for column in ("support", "near")]
        row: list[Value] = [*key, stage, *size, estimate(after[number]), step, printed, word]
        rows.append([*row, guess(found[min(number, 1)])])
    return rows


def edge_feature(study: Study) -> Page:
    """Edge, feature and joint arms on borderline targets with half of the edges disclosed, and inert masks."""
    measured = study.measure(cell(name, "borderline", 0.5, arm) for name in NAMES for arm in MORE_ARMS)
    views = []
    for key, found in measured.items():
        arm = View(key, found).arm
        printed = DECOMPOSITION[key.data, "joint" if arm == "inert masks" else arm]
        views.append(View(key, found, dict(zip(("ceiling", "@8"), printed, strict=True))))
    extra: dict[str, Field] = {**BESIDE_PAPER, "empty @8": (".2%", lambda view: rate(view.records, "empty").mean)}
    shown = (
        *("data", "arm", "support", "near", "ceiling", "paper's ceiling", "verdict", "public guess", "@8", "paper @8"),
        *("verdict @8", "size @8", "empty @8", "collision @8"),
    )
    about = (
        f"Borderline targets, half of the edges disclosed, {seeds_of(study)}. {HOW} {ROW_ZERO} The last arm has the "
        "joint support, but its masks act on features that the target does not have, so they do nothing: beside it "
        "stand the paper's joint numbers. (Its table of "
        "contributions prints rates that differ in the third decimal from its frontier table.)"
    )
    return Page("Edge and feature contributions", about, *table(views, shown, ("targeted @8", "regret @8"), extra))
