"""The audit on neighbouring graphs: what the best attack gains, and how far probabilities move."""

from collections.abc import Mapping
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from privcfs_lab.figures.style import DASHES, MARKERS, NAMES, SHADES, dashed_handle, legend_below, panels
from privcfs_lab.measuring.measure import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_audit(found: Mapping[tuple[str, str], Records], ceiling: float, epsilon: float) -> "Figure":
    """Left: AUC of every pair of graphs; right: its largest ratio. One strip for each data set and population."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 2, width=4.6, height=3.4)
    rng = np.random.default_rng(0)
    for panel, name in zip(axes[0], ("auc", "ratio"), strict=True):
        for place, records in enumerate(found.values()):
            x = place + rng.uniform(-0.3, 0.3, len(records))
            panel.plot(x, records[name], linestyle="", marker=MARKERS[place % 4], color=SHADES[2], ms=3, alpha=0.6)
            for value in (records[name].mean(), records[name].max()):
                panel.plot([place - 0.36, place + 0.36], [value, value], color="black", linewidth=1.1)
        panel.set_xticks(range(len(found)), [f"{NAMES[data]}\n{population}" for data, population in found], fontsize=8)
        panel.grid(axis="x", visible=False)
    left, right = axes[0]
    left.axhline(ceiling, color="#555555", linestyle=DASHES, linewidth=0.9)
    left.set_ylim(0.45, 1.02)
    left.set_ylabel("AUC of the likelihood-ratio attack")
    right.set_yscale("log")
    right.axhline(exp(epsilon), color="#555555", linestyle=DASHES, linewidth=0.9)
    right.set_ylabel("largest ratio of probabilities")
    ticks = Line2D([], [], color="black", linewidth=1.1, label="mean and largest")
    legend_below(figure, [ticks, dashed_handle("proven ceiling at this epsilon")], 2)
    return figure
