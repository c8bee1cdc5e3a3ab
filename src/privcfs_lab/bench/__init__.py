"""Speed and memory of releases, measured in one run: every figure with what was asked for, and how costs grow."""

from collections.abc import Callable

from privcfs.embedded import Dataset, load_dataset
from privcfs_lab.bench.charges import charges_part
from privcfs_lab.bench.kernel import as_module, generic_part, kernel_part
from privcfs_lab.bench.large import large_part
from privcfs_lab.bench.modules import modules_part
from privcfs_lab.bench.part import Extent, Part
from privcfs_lab.bench.processes import processes_part, starts_part
from privcfs_lab.bench.releases import releases_part
from privcfs_lab.bench.sketches import sketches_part
from privcfs_lab.figures.page import Column, Page

__all__ = ["Extent", "as_module", "bench_page"]
PARTS: dict[str, Callable[[Dataset, Extent], Part]] = {
    "the fast evaluator": kernel_part,
    "whole releases": releases_part,
    "several processes": processes_part,
    "charges": charges_part,
    "cold starts and memory": starts_part,
    "larger and larger graphs": large_part,
    "sketches of larger and larger graphs": sketches_part,
    "the torch evaluator": generic_part,  # after the others: torch would bring its threads to them
    "GAT and GraphSAGE": modules_part,
}


def bench_page(extent: Extent, say: Callable[[str], None]) -> Page:
    """Everything in one run."""
    data, parts = load_dataset("cora"), []
    for name, measure in PARTS.items():
        say(name)
        parts.append(measure(data, extent))
    about = (
        f"Medians of up to {extent.repeats} repetitions, all in one run, one core unless it says otherwise. Cora, "
        "node 55: 12 neighbours, all of them public for this purpose, hidden width 32, the paper's support. Larger "
        "graphs: rings with twenty neighbours a node and the same surroundings everywhere, numbers scattered, edges "
        "and features in stores that are mapped; warm means touched before, in turns with the smallest graph. The "
        "paper's times are its own, on its machine. Processor time is that of the thread that asks. Ratios travel "
        "between machines better than times; if others use the machine, compare with the rate of sgemm in the same run."
    )
    rows = [row for part in parts for row in part.rows]
    pictures = tuple(picture for part in parts for picture in part.pictures)
    names = ("what", "value", "asked for")
    return Page("Benchmark", about, tuple(Column(name) for name in names), rows, pictures, brief=names)
