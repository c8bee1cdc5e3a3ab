"""Row zero: what a guess from public data alone achieves, beside the release that must beat it."""

from privcfs.embedded import NAMES
from privcfs_lab.experiments.cells import ARMS, ROW_ZERO
from privcfs_lab.experiments.fields import View, table
from privcfs_lab.figures.page import Page
from privcfs_lab.measuring.simulate import TrainedOn
from privcfs_lab.measuring.study import Cell, Study

TRAINED_ON: tuple[TrainedOn, ...] = ("all edges", "snapshot")
SHOWN = (
    *("data", "model trained on", "arm", "targets", "support", "near", "ceiling", "public guess", "guess size"),
    *("ours @1", "ours @8", "size @8"),
)


def page(study: Study) -> Page:
    """All test nodes, embedded weights, both models and arms."""
    first = Study((0,), study.workers, study.folder, study.progress, study.most)
    cells = [
        Cell(name, "everyone", 0.5, method, trained_on=trained_on)
        for name in NAMES
        for trained_on in TRAINED_ON
        for method in ARMS.values()
    ]
    about = (
        "All 1,000 test nodes, embedded snapshot (half of the edges, simulated) and weights, exponential mechanism, "
        f"exact expectations. `ours` is drawn with the proven range, `size` with range 1. {ROW_ZERO} A model trained "
        "on the snapshot owes nothing to another private edge; the paper's is trained on all edges and called public."
    )
    views = [View(cell, found) for cell, found in first.measure(cells).items()]
    return Page("Share of targets whose decision flips", about, *table(views, SHOWN))
