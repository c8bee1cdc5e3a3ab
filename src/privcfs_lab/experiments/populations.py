"""Who is explained decides how far a release reaches."""

from functools import partial

from privcfs.embedded import NAMES
from privcfs_lab.experiments.cells import ARMS, BOTH_ARMS, HOW, ROW_ZERO, cell, seeds_of
from privcfs_lab.experiments.fields import BESIDE_PAPER, View, table
from privcfs_lab.experiments.paper import FRONTIER
from privcfs_lab.figures.page import Page, Picture
from privcfs_lab.figures.populations import draw_populations
from privcfs_lab.measuring.study import Study

PROTOCOLS = ("general", "stratified", "borderline")
SHARES = (0.5, 1.0)
SHOWN = (
    *("data", "population", "disclosed", "arm", "targets", "margin", "support", "near", "ceiling", "paper's ceiling"),
    *("verdict", "public guess", "@1", "@8", "paper @8", "verdict @8", "size @8", "empty @8"),
)


def page(study: Study) -> Page:
    """Three populations, half and all of the edges disclosed, both arms."""
    keys = [(n, population, share, arm) for n in NAMES for population in PROTOCOLS for share in SHARES for arm in ARMS]
    bars = dict(zip(keys, study.measure(cell(*key) for key in keys).values(), strict=True))
    views = []
    for (name, population, share, arm), found in bars.items():
        printed = FRONTIER.get((population, name, share)) if arm == "edge-only" else None
        numbers = {"ceiling": printed[0], "@8": printed[-1]} if printed else {}
        views.append(View(cell(name, population, share, arm), found, numbers))
    about = (
        f"{seeds_of(study).capitalize()}. {HOW} {ROW_ZERO} {BOTH_ARMS} Only the general population is chosen from "
        "public information; margins are private, so choosing targets by margin would disclose something that no "
        "release pays for. For stratified targets the paper prints steps alone (page losses)."
    )
    words = (
        "Bars per population: the ceiling, the release at epsilon 8 and the public guess, for half and all of the "
        "edges disclosed, both data sets and arms"
    )
    picture = Picture(words, partial(draw_populations, bars))
    return Page(
        "Population sweep", about, *table(views, SHOWN, ("targeted @8", "guess size"), BESIDE_PAPER), (picture,)
    )
