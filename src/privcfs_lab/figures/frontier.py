"""Valid rate against price: curves with bands, ceilings, and the public guess at epsilon 0."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcfs_lab.figures.style import (
    DASHES,
    GUESS,
    LINES,
    MARKERS,
    NAMES,
    SHADES,
    curve_handle,
    dashed_handle,
    guess_handle,
    legend_below,
    panels,
)
from privcfs_lab.measuring.measure import GRID, Records
from privcfs_lab.measuring.summary import guess

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[str, str, float]
Band = Callable[[Records, NDArray[np.float64]], float]


def draw_frontier(
    records: Mapping[Key, Records], names: Sequence[str], arms: Sequence[str], curves: Mapping[float, str], band: Band
) -> "Figure":
    """One row per data set, one column per arm or support, one curve per disclosure; bands of half-width `band`."""
    keys = [(name, arm) for name in names for arm in arms]
    columns = min(2, len(arms))
    figure, axes = panels(-(-len(keys) // columns), columns)
    flat = [panel for row in axes for panel in row]
    highest = max(float(found["ceiling"].mean()) for found in records.values())
    for panel, (name, arm) in zip(flat, keys, strict=False):
        for number, share in enumerate(curves):
            _curve(panel, records[name, arm, share], number, band)
        panel.set_title(f"{NAMES.get(name, name)}, {arm}", fontsize=9.5)
        panel.set_xticks(range(len(GRID) + 1), ["0", *GRID])
        panel.set_ylim(-0.02, min(1.04, 1.15 * highest + 0.02))
        panel.set_xlim(-0.4, len(GRID) + 0.2)
    for panel in flat[len(keys) :]:
        panel.set_visible(False)
    for panel in flat[max(0, len(keys) - columns) : len(keys)]:
        panel.set_xlabel("epsilon (0: public guess)")
    for row in axes:
        row[0].set_ylabel("share of targets flipped")
    handles = [curve_handle(number, label) for number, label in enumerate(curves.values())]
    legend_below(figure, [*handles, dashed_handle("ceiling, same shade"), guess_handle(marked=True)], 3)
    return figure


def _curve(panel: "Axes", records: Records, number: int, band: Band) -> None:
    x = np.arange(1, len(GRID) + 1)
    means = records["valid"].mean(axis=0)
    errors = np.array([band(records, records["valid"][:, column]) for column in range(len(GRID))])
    shade = SHADES[number]
    panel.fill_between(x, means - errors, means + errors, color=shade, alpha=0.25, linewidth=0)
    panel.plot(x, means, color=shade, linestyle=LINES[number], marker=MARKERS[number], markersize=4, linewidth=1.5)
    panel.axhline(float(records["ceiling"].mean()), color=shade, linestyle=DASHES, linewidth=0.9)
    panel.plot([0], [guess(records).mean], **(GUESS | {"marker": MARKERS[number]}))
