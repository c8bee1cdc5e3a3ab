"""Same operations, other placement: our own candidate list on a privatised graph, in two readings of "the best"."""

from privcfs.embedded import NAMES
from privcfs_lab.baselines.comparison import Compared
from privcfs_lab.baselines.restricted import RULES_OF_CHOICE
from privcfs_lab.experiments.cells import ARMS, BOTH_ARMS, EDGES, HOW, ROW_ZERO, cell, seeds_of, verdict
from privcfs_lab.experiments.fields import BESIDE_PAPER, Field, View, reported, table
from privcfs_lab.experiments.paper import SAME_OPERATIONS
from privcfs_lab.figures.page import Page
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.study import Study
from privcfs_lab.measuring.summary import estimate

NOISES = ("NaiveDP", "RR-LDP")
CHOICES = RULES_OF_CHOICE
SHOWN = (
    *(
        "data",
        "arm",
        "support",
        "near",
        "ceiling",
        "paper's ceiling",
        "NaiveDP, best utility",
        "paper's",
        "verdict on it",
    ),
    *("NaiveDP, lowest margin", "NaiveDP pollution", "paper's pollution"),
    *("RR-LDP, best utility", "RR-LDP, lowest margin", "RR-LDP pollution"),
    *("public guess", "guess spurious", "snapshot pollution", "uniform draw", "@8", "paper @8", "verdict @8"),
)


def restricted(study: Study) -> dict[tuple[str, str, str, str], Records]:
    """Records by data, arm, noise and choice."""
    keys = [(data, arm, noise, choice) for data in NAMES for arm in ARMS for noise in NOISES for choice in CHOICES]
    works = {
        key: Compared(key[0], "borderline", f"restricted {key[2]}, {key[3]}{', edges' if key[1] == EDGES else ''}")
        for key in keys
    }
    found = study.measure(works.values())
    return {key: found[work] for key, work in works.items()}


def page(study: Study) -> Page:
    """Every column uses the identical candidate list."""
    measured = study.measure(cell(name, "borderline", 0.5, arm) for name in NAMES for arm in ARMS)
    noisy = restricted(study)
    keys = ("ceiling", "privatised", "pollution", "@8")
    views = [
        View(key, found, dict(zip(keys, SAME_OPERATIONS[key.data], strict=True)) if key.method == ARMS[EDGES] else {})
        for key, found in measured.items()
    ]

    def of(noise: str, choice: str, name: str) -> Field:
        return "", lambda view: estimate(noisy[view.cell.data, view.arm, noise, choice][name])

    def agreed(view: View) -> str | None:
        ours = estimate(noisy[view.cell.data, view.arm, "NaiveDP", "best utility"]["valid"])
        return verdict(ours, view.reported.get("privatised"))

    extra: dict[str, Field] = {
        **BESIDE_PAPER,
        **{f"{noise}, {choice}": of(noise, choice, "valid") for noise in NOISES for choice in CHOICES},
        **{f"{noise} pollution": of(noise, CHOICES[0], "polluted") for noise in NOISES},
        "paper's": ("", reported("privatised")),
        "verdict on it": ("", agreed),
        "paper's pollution": ("", reported("pollution")),
    }
    about = (
        f"Borderline targets, half of the edges disclosed, {seeds_of(study)}. {HOW} {ROW_ZERO} {BOTH_ARMS} NaiveDP and "
        "RR-LDP privatise the graph first (epsilon 7.2, one edge) and then take the best candidate there, which is "
        "checked on the true graph. By the utility, as in the paper, the best is the empty set wherever nothing flips "
        "the noisy graph, and the empty set never flips: the paper's 0.000 says that nothing flips a graph drowned in "
        "Gaussian noise, not that the noisy graph says nothing. By the lowest margin, the rule of the public guess, "
        "the same noisy graphs keep about as much as the public guess. The public guess is a placement too: it "
        "explains the snapshot graph, whose prediction may not be the private graph's (pollution), and may flip that "
        "prediction alone (spurious). A release explains the private graph, so neither can happen to it."
    )
    return Page("Same operations, other placement", about, *table(views, SHOWN, (), extra))
