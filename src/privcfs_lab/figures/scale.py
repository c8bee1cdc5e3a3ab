"""Cost of a release against the number of nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from privcfs_lab.figures.style import ACCENT, NAMES, SHADES, legend_below, panels

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
    top = 1.9 * max(row.whole for row in rows)
    for number, row in enumerate(sorted(real, key=lambda row: row.nodes)):
        panel.annotate(
            NAMES[row.name].replace(", stand-in features", "\n(stand-in features)"),
            (row.nodes, row.whole),
            xytext=(row.nodes, top * (0.58, 0.69, 0.8, 0.91)[number % 4]),
            ha="center",
            fontsize=7,
            arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.6, "shrinkB": 4},
        )
    panel.set_xscale("log")
    panel.set_ylim(0, top)
    panel.set_xlabel("nodes")
    panel.set_ylabel("milliseconds")
    legend_below(figure, lines, 1)
    return figure
