"""The data sets and their roles."""

import numpy as np

from privcfs.embedded import NAMES
from privcfs_lab.datasets import load
from privcfs_lab.experiments import paper
from privcfs_lab.experiments.cells import seeds_of, verdict
from privcfs_lab.figures.page import Column, Estimate, Page, Value
from privcfs_lab.measuring.study import Study

ROLES = {
    "cora": "main benchmark, embedded",
    "citeseer": "main benchmark, embedded",
    "pubmed": "every test node",
    "coauthor-cs": "every test node",
    "facebook": "every test node; a social graph",
    "coauthor-physics": "transfer: a complete real graph",
    "arxiv-core": "transfer: the paper's size",
    "arxiv": "scale",
}
ONE_SEED = ("coauthor-physics", "arxiv-core", "arxiv")
COLUMNS = (
    Column("data"),
    Column("role"),
    Column("nodes", ",d"),
    Column("edges", ",d"),
    Column("features", ",d"),
    Column("classes", "d"),
    Column("training nodes", ",d"),
    Column("test nodes", ",d"),
    Column("accuracy"),
    Column("paper's accuracy"),
    Column("verdict"),
    Column("paper's nodes / edges"),
    Column("mean test margin"),
    Column("ten lowest margins", ".4f"),
    Column("checksum"),
)


def page(study: Study) -> Page:
    """Sizes, accuracy of the frozen model and margins, beside the paper's."""
    rows = [_row(study, name) for name in ROLES if name in NAMES or study.has(name)]
    captions = " ".join(f"{row[0]}: {caption}" for row in rows if (caption := load(str(row[0])).caption))
    about = (
        f"Two-layer GCN, hidden 32, raw features, 200 steps, {seeds_of(study)} (transfer and scale: one seed). "
        "Accuracy: mean ± standard deviation over seeds; verdict: the paper's within two of them. Margins: mean over "
        "seeds. The public guess does not enter here. Sets that are not embedded come from the folder that "
        f"PRIVCFS_DATA names. {captions} Ties decide the core's last edges: their number is not the paper's."
    )
    return Page("Data sets", about, COLUMNS, rows)


def _row(study: Study, name: str) -> list[Value]:
    seeds = study.seeds[:1] if name in ONE_SEED else study.seeds
    worlds = [study.simulation(name, seed) for seed in seeds]
    data = worlds[0].data
    margins = [np.sort(world.margins[data.split.test]) for world in worlds]
    accuracies = [world.accuracy for world in worlds]
    printed = paper.DATASETS.get(name)
    several = len(seeds) > 1
    measured = Estimate(float(np.mean(accuracies)), float(np.std(accuracies, ddof=1)) if several else 0.0)
    return [
        name,
        ROLES[name],
        len(data.labels),
        len(data.pairs),
        data.features.shape[1],
        data.number_of_classes,
        len(data.split.train),
        len(data.split.test),
        measured if several else measured.mean,
        printed[4] if printed else None,
        verdict(measured, printed[4]) if printed and several else None,
        f"{printed[0]:,} / {printed[1]:,}" if printed else None,
        float(np.mean([part.mean() for part in margins])),
        float(np.mean([part[:10].mean() for part in margins])),
        data.digest(),
    ]
