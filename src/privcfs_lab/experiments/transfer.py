"""Larger graphs: the arxiv core of the paper and a complete real graph."""

from privcfs_lab.datasets import load
from privcfs_lab.experiments.cells import BOTH_ARMS, HOW, ROW_ZERO, grid, seeds_of, verdict
from privcfs_lab.experiments.fields import Field, View, reported, table
from privcfs_lab.experiments.paper import TRANSFER, TRANSFER_ERROR
from privcfs_lab.figures.page import Page
from privcfs_lab.measuring.study import Study
from privcfs_lab.measuring.summary import rate

GRAPHS = ("arxiv-core", "coauthor-physics")
SHOWN = (
    *("data", "disclosed", "arm", "targets", "margin", "support", "near", "ceiling", "paper's ceiling", "public guess"),
    *("@2", "@4", "@8", "paper @2", "paper @4", "paper @8", "verdict @8", "size @8", "empty @8", "collision @8"),
)
HIDDEN = ("@0.1", "@0.5", "@1", "ours @8", "targeted @8", "guess size", "regret @8")


def page(study: Study) -> Page:
    """Borderline targets of the larger graphs that are at hand."""
    names = study.at_hand(GRAPHS)
    views = []
    for cell, found in study.measure(grid(names, "borderline", (0.5, 1.0))).items():
        printed = TRANSFER[cell.disclosed] if cell.data == "arxiv-core" else ()
        views.append(View(cell, found, dict(zip(("ceiling", "@2", "@4", "@8"), printed, strict=False))))
    extra: dict[str, Field] = {
        "@8": ("", lambda view: rate(view.records, "valid")),
        "paper's ceiling": ("", reported("ceiling")),
        **{f"paper @{price}": ("", reported(f"@{price}")) for price in ("2", "4", "8")},
        "verdict @8": (
            "",
            lambda v: verdict(rate(v.records, "valid"), v.reported.get("@8"), TRANSFER_ERROR[v.cell.disclosed]),
        ),
    }
    captions = " ".join(f"{name}: {load(name).caption}" for name in names)
    about = (
        f"Ten test nodes of lowest margin, {seeds_of(study)} (the paper: one seed; its standard error is counted in "
        f"the verdict). {HOW} {ROW_ZERO} {BOTH_ARMS} {captions} The paper also prints, for arxiv, sizes 4.24 and 4.31, "
        "collisions of 0.02 to 0.03 % and margins of about 0.0008. With stand-in features, agreement or difference in "
        "rates says little."
    )
    return Page("Transfer to larger graphs", about, *table(views, SHOWN, HIDDEN, extra))
