"""Many questions: what the adaptive analyst gains, and what the books allow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privcfs_lab.audit.composition import EACH, QUESTIONS, TOTAL, accounted
from privcfs_lab.figures.style import DASHES, MARKERS, NAMES, SHADES, dashed_handle, legend_below, panels
from privcfs_lab.measuring.measure import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_composition(found: Mapping[str, Records]) -> "Figure":
    """Left: a total of 8, divided by all questions; right: 1 for each. Largest advantage over targets."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 2, width=4.6, height=3.4)
    plans = {
        f"total epsilon {TOTAL:.0f}": [(k, TOTAL / k) for k in QUESTIONS],
        f"epsilon {EACH:.0f} a question": [(k, EACH) for k in QUESTIONS],
    }
    for panel, (title, plan) in zip(axes[0], plans.items(), strict=True):
        for number, records in enumerate(found.values()):
            rows = [records[(records["questions"] == k) & np.isclose(records["price"], price)] for k, price in plan]
            tops = [float(row["advantage"].max()) for row in rows]
            panel.plot(QUESTIONS, tops, marker=MARKERS[number % 4], color=SHADES[number % len(SHADES)], ms=5)
        books = [accounted(k, price)["zCDP"] for k, price in plan]
        panel.plot(QUESTIONS, books, color="#555555", linestyle=DASHES, linewidth=0.9)
        panel.set_xscale("log")
        panel.set_ylim(-0.03, 1.05)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("questions")
    axes[0][0].set_ylabel("largest advantage of the analyst")
    handles = [
        Line2D([], [], marker=MARKERS[number % 4], color=SHADES[number % len(SHADES)], label=_label(name))
        for number, name in enumerate(found)
    ]
    legend_below(figure, [*handles, dashed_handle("allowed by zCDP accounting")], 3)
    return figure


def _label(name: str) -> str:
    data, population = name.split(", ")
    return f"{NAMES[data]}, {population}"
