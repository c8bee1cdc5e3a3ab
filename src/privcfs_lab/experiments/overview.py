"""The first page of the results: six figures, what was measured, how to read it, and why there are two arms."""

import json
from collections.abc import Callable, Mapping
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privcfs_lab.experiments.leads import LEADS, PRINTED, Rows, mean
from privcfs_lab.figures import front
from privcfs_lab.figures.page import console, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STALE = "stale.txt"  # beside the pages: those that other code than today's has written


class Chapter(NamedTuple):
    """One figure of the front page: its heading, its words for those who cannot see it, and the pages behind it."""

    heading: str
    words: str
    draw: Callable[[front.Pages], "Figure"]
    concludes: tuple[str, ...]  # pages whose conclusion is told
    more: tuple[str, ...] = ()  # further pages from which the figure is drawn


STORY = (
    Chapter(
        "What is reached",
        "Share of targets flipped on five data sets: free guess, release at epsilon 1 and 8, advice, sketch, ceiling",
        front.draw_reached,
        ("recourse", "advice"),
        ("population",),
    ),
    Chapter(
        "What it costs to explain everyone",
        "Share of targets flipped against one total for everyone, by the way in which it is spent",
        front.draw_population,
        ("population",),
    ),
    Chapter(
        "Whether a confidence is right",
        "Confidence against the share that is valid, and calibration errors by data set",
        front.draw_calibration,
        ("confidence",),
        ("advice", "population"),
    ),
    Chapter(
        "How fast it is",
        "Milliseconds of a release against the number of nodes, made and real graphs",
        front.draw_speed,
        ("scale",),
    ),
    Chapter(
        "Whether the promise holds",
        "For each audit, which share of the promised loss it found; none lies beyond the promise",
        front.draw_bounds,
        ("audit-black-box", "audit-worst-case", "audit-accounts"),
        ("audit-pairs",),
    ),
    Chapter(
        "Whether the paper is reproduced",
        "Our ceilings and valid rates, edge-only arm, against those that the paper prints",
        front.draw_paper,
        (),
        ("frontier-general", "frontier-borderline"),
    ),
)


def write(folder: Path, pages: Mapping[str, str]) -> None:
    """README.md of the folder, made from those of the pages that are there; `pages` says what each one shows."""
    found = {name: _rows(folder / f"{name}.json") for name in pages if (folder / f"{name}.json").exists()}
    if not {"frontier-general", "frontier-borderline", "edge-feature"} <= set(found):
        return
    parts = [
        "# Results",
        (
            "What privcfs achieves, costs and promises, in six figures that are drawn from the pages of this folder. "
            "Below each figure stands what follows from it, and after the figures the list of all pages."
        ),
        *_story(folder, found),
        "## All pages",
        (
            "Written by `privcfs-lab reproduce`; each page names its own command, and has its table beside it as CSV "
            "and JSON. `reproduce all` regenerates what concerns the paper, `reproduce everything` also what goes "
            f"beyond it, `reproduce stale` what other code than today's has written. {_stale(folder)}"
        ).strip(),
        "\n".join(f"- [{name}]({name}.md): {pages[name]}" for name in found),
        "## How to read them",
        (
            "**Ceiling** (the paper's starCF) is the share of targets that some candidate flips. **@8** is the share "
            "that a release at epsilon 8 flips, in expectation, exactly: nothing is sampled unless a column says so. "
            "**Public guess** is row zero, what costs nothing: the best candidate on the public snapshot graph at "
            "epsilon 0, of the mean size of a release. Where a release is below it, the budget buys nothing. "
            "**Disclosed** is the share of private edges that play the public snapshot: those snapshots simulate a "
            "disclosure, and a real vault refuses them. **Support** is the mean number of candidates, **near** the "
            "mean number of nodes within two steps of a target, **retention** the rate over the ceiling, **targeted** "
            "a flip to the runner-up class, **size** the elements of a release. Guesses are sized as at epsilon 8."
        ),
        _zero(found),
        "## Why there are two arms",
        _arms(found),
        _agreement(found),
    ]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    console.print(f"Wrote {folder / 'README.md'}")


def _rows(path: Path) -> Rows:
    rows: Rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return rows


def _story(folder: Path, found: dict[str, Rows]) -> list[str]:
    """A heading, a figure and its conclusions for each chapter whose pages are all there."""
    parts = []
    for number, chapter in enumerate(STORY, 1):
        behind = chapter.concludes + chapter.more
        if not set(behind) <= set(found):
            continue
        file = f"front-{number}.svg"
        save_figure(chapter.draw(found), folder / file)
        told = [LEADS[name].concludes(found[name]) for name in chapter.concludes] or [_agreement(found, brief=True)]
        pages = ", ".join(f"[{name}]({name}.md)" for name in behind)
        parts += [f"## {chapter.heading}", f"![{chapter.words}]({file})", f"{' '.join(told)} (From {pages}.)"]
    return parts


def _stale(folder: Path) -> str:
    path = folder / STALE
    names = path.read_text(encoding="utf-8").split() if path.exists() else []
    return f"Still to be computed with today's code: {', '.join(names)}." if names else ""


def _arms(found: dict[str, Rows]) -> str:
    """The paragraph and its evidence, from the page edge-feature."""
    cells = {(row["data"], row["arm"]): row for row in found["edge-feature"]}

    def both(arm: str, name: str, form: str = ".3f") -> str:
        return " / ".join(format(mean(cells[data, arm][name]), form) for data in ("cora", "citeseer"))

    return (
        "The paper defines an intervention as pairs to delete and features to mask, yet in its tables masking does "
        f"nothing: its feature-only arm is {both('feature-only', PRINTED)} (Cora / CiteSeer, borderline targets, half "
        "disclosed) and its joint arm equals its edge-only arm. Masks as Eq. 1 defines them, the chosen entries of the "
        f"target's row set to zero before an exact forward pass, flip {both('feature-only', 'ceiling')} of the same "
        f"targets by themselves and {both('joint', 'ceiling')} together with deletions. The paper's printed ceilings, "
        f"{both('joint', PRINTED)}, are those of deletions alone: ours are {both('edge-only', 'ceiling')}. Its sizes "
        "above 3 and its small collision and empty rates need the joint list, though. A list of that length whose "
        "masks act on features that the target does not have (`inert masks`) comes close to both at once: valid rate "
        f"{both('inert masks', '@8')} (paper {both('joint', 'paper @8')}), size "
        f"{both('inert masks', 'size @8', '.2f')} (3.1 to 3.9), empty {both('inert masks', 'empty @8', '.2%')} (0.1 to "
        f"0.4 %), collision {both('inert masks', 'collision @8', '.2%')} (0.2 to 0.3 %); what does not fit is on the "
        "page findings. So every table shows the edge-only arm, which reproduces the paper, and the joint arm, which "
        "is the method as it is defined."
    )


def _agreement(found: dict[str, Rows], brief: bool = False) -> str:
    rows = [row for name in ("frontier-general", "frontier-borderline") for row in found[name]]
    lines = []
    for arm, other in (("edge-only", "the paper's"), ("joint", "a second implementation's")):
        chosen = [row for row in rows if row["arm"] == arm and row["verdict"]]
        words = [row["verdict"] for row in chosen]
        alone = [row.get("by our error alone") for row in chosen]
        rates = [row["rates"].split(" of ") for row in chosen if row["rates"]]
        agreeing, all_rates = (sum(int(pair[part]) for pair in rates) for part in (0, 1))
        lines.append(
            f"{arm}: {words.count('agrees')} of {len(words)} ceilings agree with {other} ({alone.count('agrees')} by "
            f"our standard error alone), {agreeing} of {all_rates} rates"
        )
    if brief:
        return f"Within two standard errors, {lines[0]}."
    text = "Within two standard errors (pages frontier-general and frontier-borderline): " + "; ".join(lines) + "."
    return f"{text} {_between(found)}".strip()


def _between(found: dict[str, Rows]) -> str:
    """Two samples of 48 targets, and what every test node says."""
    whole = {(row["data"], row["disclosed"]): row for row in found.get("everyone", []) if row["arm"] == "joint"}
    words = []
    for row in found["frontier-general"]:
        key = row["data"], row["disclosed"]
        if row["arm"] == "joint" and row["disclosed"] == 0.5 and key in whole:
            triples = [
                f"{name} {mean(row[name]):.3f}, {row[other]:.3f} and {mean(whole[key][name]):.3f}"
                for name, other in (("ceiling", "reported ceiling"), ("@8", "reported @8"))
            ]
            words.append(f"{row['data']} {'; '.join(triples)}")
    if not words:
        return ""
    return (
        "Both are samples of 48 publicly drawn targets; beside them, every test node (joint arm, half disclosed; ours, "
        f"the second implementation's, every node): {'. '.join(words)}."
    )


def _zero(found: dict[str, Rows]) -> str:
    """How releases compare with what is free: the public guess, and a uniform draw."""
    words = []
    for population in ("general", "borderline"):
        for row in found[f"frontier-{population}"]:
            if row["arm"] == "joint" and row["disclosed"] == 0.5:
                free = max((row["public guess"], row["uniform draw"]), key=mean)
                one, eight = (f"{mean(row[name]):.3f}, {_against(row[name], free)}" for name in ("@1", "@8"))
                guess = f"guess {mean(row['public guess']):.3f}, uniform draw {mean(row['uniform draw']):.3f}"
                words.append(f"{row['data']}, {population}: {guess}; release at epsilon 1 {one}; at 8 {eight}")
    text = (
        "Two things are free: the guess, and a uniform draw from the list, epsilon 0 both. A release against the "
        "better of them, by two standard errors of the difference (half of the edges disclosed, joint arm): "
        + ". ".join(words)
        + "."
    )
    gains = [
        f"{row['data']} {row['gain @8']['mean']:+.3f} ± {row['gain @8']['error']:.3f}"
        for row in found.get("everyone", [])
        if row["arm"] == "joint" and row["disclosed"] == 0.5
    ]
    if not gains:
        return text
    return f"{text} Over every test node and ten seeds, a release at epsilon 8 minus the guess: {', '.join(gains)}."


def _against(ours: dict[str, float], free: dict[str, float]) -> str:
    gap = ours["mean"] - free["mean"]
    if abs(gap) <= 2 * hypot(ours["error"], free["error"]):
        return "no clear difference"
    return "above" if gap > 0 else "below"
