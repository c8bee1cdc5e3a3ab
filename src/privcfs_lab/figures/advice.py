"""Valid rate against epsilon: what is read, and what is free."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privcfs_lab.figures.style import (
    ACCENT,
    DASHES,
    GUESS,
    SHADES,
    curve_handle,
    dashed_handle,
    guess_handle,
    legend_below,
    rate_panels,
)
from privcfs_lab.measuring.measure import GRID, Records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("cora", "citeseer")
SHARES = {0.5: "half of the edges public", 0.0: "no edge public"}
OWN, WHOLE = 2, 3  # shades and markers of the two curves


def draw_advice(records: Mapping[Any, Records]) -> "Figure":
    """One row for each disclosed share, one column for each data set."""
    from matplotlib.lines import Line2D

    figure, axes = rate_panels(list(SHARES.values()), SHOWN)
    for row, share in zip(axes, SHARES, strict=True):
        for panel, name in zip(row, SHOWN, strict=True):
            for work, found in records.items():
                if (work.data, work.disclosed) == (name, share):
                    _rates(panel, found)
    handles = [
        curve_handle(OWN, "release, own edges read"),
        curve_handle(WHOLE, "release, whole graph read"),
        Line2D([], [], color=ACCENT, label="advice, price 0"),
        Line2D([], [], color=SHADES[1], linestyle="", marker="x", label="lowest margin on the snapshot"),
        guess_handle(),
        dashed_handle("ceiling of the public list"),
    ]
    legend_below(figure, handles, 3)
    return figure


def _rates(panel: "Axes", found: Records) -> None:
    for name, number in (("own", OWN), ("whole", WHOLE)):
        handle = curve_handle(number, "")
        style = {"color": handle.get_color(), "linestyle": handle.get_linestyle(), "marker": handle.get_marker()}
        panel.plot(range(len(GRID)), found[name].mean(axis=0), markersize=4, **style)
    panel.plot([-1], [found["zero"].mean()], color=SHADES[1], marker="x")
    panel.plot([-1], [found["guess"].mean()], **GUESS)
    panel.axhline(found["advice"].mean(), color=ACCENT)
    panel.axhline(found["ceiling"].mean(), color="#555555", linestyle=DASHES, linewidth=0.9)
