"""Same operations, other placement: the control of the paper, and where its missing row will stand."""

from privcfs.embedded import NAMES
from privcfs.lab.experiments.cells import ARMS, BOTH_ARMS, EDGES, HOW, ROW_ZERO, cell, seeds_of
from privcfs.lab.experiments.fields import BESIDE_PAPER, Field, View, reported, table
from privcfs.lab.experiments.paper import SAME_OPERATIONS
from privcfs.lab.report import Page
from privcfs.lab.study import Study

PENDING = "not measured yet"
SHOWN = (
    *("data", "arm", "support", "near", "ceiling", "paper's ceiling", "graph privatised first", "paper's"),
    *("its pollution", "paper's pollution", "public guess", "guess spurious", "snapshot pollution", "@8", "paper @8"),
    "verdict @8",
)


def page(study: Study) -> Page:
    """Every column uses the identical candidate list."""
    measured = study.measure(cell(name, "borderline", 0.5, arm) for name in NAMES for arm in ARMS)
    keys = ("ceiling", "privatised", "pollution", "@8")
    views = [
        View(key, found, dict(zip(keys, SAME_OPERATIONS[key.data], strict=True)) if key.method == ARMS[EDGES] else {})
        for key, found in measured.items()
    ]
    extra: dict[str, Field] = {
        **BESIDE_PAPER,
        "graph privatised first": ("", lambda _: PENDING),
        "paper's": ("", reported("privatised")),
        "its pollution": ("", lambda _: PENDING),
        "paper's pollution": ("", reported("pollution")),
    }
    about = (
        f"Borderline targets, half of the edges disclosed, {seeds_of(study)}. {HOW} {ROW_ZERO} {BOTH_ARMS} The public "
        "guess is a placement too: it explains the snapshot graph, whose prediction may not be the private graph's "
        "(pollution), and may flip that prediction alone (spurious). A release explains the private graph, so neither "
        "can happen to it. The column of the privatised graph needs the compared methods."
    )
    return Page("Same operations, other placement", about, *table(views, SHOWN, (), extra))
