"""The post-mortem: how far the heuristic's vector moves, and what each placement of the noise leaks and achieves."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privcfs_lab.figures.style import ACCENT, DASHES, MARKERS, NAMES, SHADES, dashed_handle, legend_below, panels
from privcfs_lab.measuring.measure import Records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
FLOOR = 0.01  # distances below it are drawn on a linear axis
SHARP = 200  # dots per inch of the strips, which are too many points for shapes
FACES = ("white", SHADES[3], SHADES[1], ACCENT)
RIMS = (ACCENT, SHADES[3], SHADES[3], ACCENT)


def draw_post_mortem(found: Mapping[tuple[str, str], Records], spectrum: Points, assumed: float) -> "Figure":
    """Left: a strip of distances for each variant and data set; right: AUC against valid rate, by placement."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 2, width=4.9, height=3.7)
    figure.set_dpi(SHARP)
    left, right = axes[0]
    _strips(left, found)
    left.axhline(assumed, color="#555555", linestyle=DASHES, linewidth=0.9)
    placements, names = (list(dict.fromkeys(key[part] for key in spectrum)) for part in (0, 1))
    for (placement, data), points in spectrum.items():
        number, marker = placements.index(placement), MARKERS[names.index(data)]
        x, y = zip(*points, strict=True)
        right.plot(x, y, linestyle="", marker=marker, color=FACES[number], markeredgecolor=RIMS[number], ms=6)
    right.set_xlim(-0.03, 1.03)
    right.set_ylim(0.45, 1.03)
    right.set_xlabel("valid rate, borderline targets")
    right.set_ylabel("largest AUC for one private pair")
    sorts = [
        Line2D([], [], linestyle="", marker="D", color=face, markeredgecolor=rim, ms=5, label=placement)
        for face, rim, placement in zip(FACES, RIMS, placements, strict=True)
    ]
    shapes = [
        Line2D([], [], linestyle="", marker=MARKERS[number], color="#555555", ms=5, label=NAMES[name])
        for number, name in enumerate(names)
    ]
    ticks = Line2D([], [], color="black", linewidth=1.1, label="mean and largest")
    legend_below(figure, [ticks, dashed_handle("what the noise assumes"), *shapes, *sorts], 4)
    return figure


def _strips(panel: "Axes", found: Mapping[tuple[str, str], Records]) -> None:
    names, variants = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1))
    rng = np.random.default_rng(0)
    for (name, variant), records in found.items():
        number, moves = names.index(name), records["distance"]
        place = variants.index(variant) + 0.44 * (number - 0.5)
        x = place + rng.uniform(-0.16, 0.16, len(moves))
        marker, shade = MARKERS[number], SHADES[1 + number]
        panel.plot(x, moves, linestyle="", marker=marker, color=shade, ms=2, alpha=0.35, rasterized=True)
        for value in (moves.mean(), moves.max()):
            panel.plot([place - 0.19, place + 0.19], [value, value], color="black", linewidth=1.1)
    panel.set_yscale("symlog", linthresh=FLOOR)
    panel.set_ylim(bottom=-FLOOR / 4)
    panel.set_xticks(range(len(variants)), [variant.replace(" ", "\n") for variant in variants], fontsize=8)
    panel.grid(axis="x", visible=False)
    panel.set_ylabel("distance of the two vectors (L2)")
