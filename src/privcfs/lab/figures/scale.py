"""Cost of a release against the number of nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from privcfs.lab.figures.style import ACCENT, NAMES, SHADES, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Timed(NamedTuple):
    """Medians for one graph."""

    name: str
    nodes: int
    local: float
    whole: float


def draw_scale(rows: Sequence[Timed]) -> "Figure":
    """Made graphs as two lines, real graphs as points with their names."""
    figure, axes = panels(1, 1, width=6.4, height=4.0)
    panel = axes[0][0]
    made = [row for row in rows if row.name == "made"]
    nodes = [row.nodes for row in made]
    whole, local = [row.whole for row in made], [row.local for row in made]
    lines = panel.plot(
        nodes, whole, "o-", color=SHADES[3], label="made graphs of degree 8: whole release, ledger included"
    )
    lines += panel.plot(nodes, local, "s--", color=SHADES[2], label="made graphs of degree 8: propose and evaluate")
    real = [row for row in rows if row.name != "made"]
    lines += panel.plot(
        [row.nodes for row in real],
        [row.whole for row in real],
        linestyle="",
        marker="D",
        color=ACCENT,
        label="real graphs, targets of 4 to 8 neighbours: whole release",
    )
    for number, row in enumerate(sorted(real, key=lambda row: row.nodes)):
        name = NAMES[row.name].replace(", stand-in features", "\n(stand-in features)")
        above = number % 2 == 0
        panel.annotate(
            name,
            (row.nodes, row.whole),
            xytext=(0, 8 if above else -8),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=7,
        )
    panel.set_xscale("log")
    panel.set_ylim(0, 1.6 * max(row.whole for row in rows))
    panel.set_xlabel("nodes")
    panel.set_ylabel("milliseconds")
    legend_below(figure, lines, 1)
    return figure
