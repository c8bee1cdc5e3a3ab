"""The paper's experiments. One file per family, one line per result in the table."""

from collections.abc import Callable, Mapping

from privcfs.lab.experiments import ablations, frontier
from privcfs.lab.experiments.table import Table

Experiment = Callable[[Callable[[str], None]], Table]

EXPERIMENTS: Mapping[str, Experiment] = {
    "frontier-general": frontier.general,
    "frontier-borderline": frontier.borderline,
    "edge-feature": frontier.decomposition,
    "ablations": ablations.variants,
    "populations": ablations.populations,
}
