"""Reliability diagrams."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcfs_lab.figures.style import ACCENT, DASHES, NAMES, SHADES, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def draw_reliability(found: Mapping[str, tuple[Floats, Floats]]) -> "Figure":
    """One panel for each data set: valid rate against confidence, with the diagonal of a perfect forecast."""
    figure, axes = panels(1, len(found), width=2.6, height=2.9)
    for panel, (name, (confidence, valid)) in zip(axes[0], found.items(), strict=True):
        panel.plot([0, 1], [0, 1], color=SHADES[0], linestyle=DASHES)
        panel.plot(confidence, valid, color=ACCENT, marker="o", markersize=4)
        panel.set(title=NAMES[name], xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")
    axes[0][0].set_ylabel("share that is valid")
    return figure
