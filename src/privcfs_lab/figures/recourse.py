"""Valid rate against epsilon, one curve for each cap, with what is free and what is possible."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privcfs_lab.figures.style import (
    ACCENT,
    DASHES,
    GUESS,
    LINES,
    MARKERS,
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
PEOPLE = {"general population": ("everyone", "sample"), "borderline": ("borderline",)}
HALF = 0.5


def draw_recourse(records: Mapping[Any, Records]) -> "Figure":
    """One row per population, one column per data set; half of the edges disclosed."""
    figure, axes = rate_panels(list(PEOPLE), SHOWN)
    caps = sorted({key.cap for key in records})
    for row, populations in zip(axes, PEOPLE.values(), strict=True):
        for panel, name in zip(row, SHOWN, strict=True):
            for key, found in records.items():
                if key.data == name and key.population in populations and key.disclosed == HALF:
                    _curve(panel, found, key.cap, caps.index(key.cap))
    handles = [curve_handle(number, f"at most {cap} element{'s' * (cap > 1)}") for number, cap in enumerate(caps)]
    legend_below(figure, [*handles, guess_handle(marked=True), dashed_handle("ceiling")], 3)
    return figure


def _curve(panel: "Axes", found: Records, cap: int, number: int) -> None:
    style: dict[str, Any] = {"color": SHADES[number], "linestyle": LINES[number], "marker": MARKERS[number]}
    panel.plot(range(len(GRID)), found["valid"].mean(axis=0), markersize=4, **style)
    panel.plot([-1], [found["best"][:, cap - 1].mean()], **{**GUESS, "marker": MARKERS[number]}, color=ACCENT)
    panel.axhline(found["ceiling"].mean(), color=SHADES[number], linestyle=DASHES, linewidth=0.9)
