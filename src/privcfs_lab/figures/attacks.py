"""Known attacks: how well each tells private edges, by what it is run against."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privcfs_lab.attacks.attack import Success
from privcfs_lab.figures.style import ACCENT, DASHES, NAMES, SHADES, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = (("o", "white", ACCENT), ("o", SHADES[3], SHADES[3]), ("D", SHADES[3], SHADES[3]), ("D", "white", SHADES[3]))
SKETCHES = (("v", SHADES[3], SHADES[3]), ("v", "white", SHADES[3]))
MORE_LOOKS = (
    ("s", SHADES[1], SHADES[1]),
    ("s", "white", SHADES[1]),
    ("^", SHADES[0], "#555555"),
    ("X", ACCENT, ACCENT),
)


def draw_attacks(found: Mapping[tuple[str, str, str], Success]) -> "Figure":
    """A line for each attack, a mark for each victim; by data, attack and victim."""
    from matplotlib.lines import Line2D

    data, attacks, victims = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1, 2))
    looks = dict(zip(victims, LOOKS + SKETCHES + MORE_LOOKS, strict=True))
    figure, axes = panels(1, len(data), width=4.6, height=5.2)
    for panel, name in zip(axes[0], data, strict=True):
        for row, attack in enumerate(attacks):
            for number, victim in enumerate(victims):
                made, (marker, face, rim) = found[name, attack, victim], looks[victim]
                y = row + 0.09 * (number - (len(victims) - 1) / 2)
                reach = min(made.auc + made.auc_error, 1.0)
                panel.plot([made.auc - made.auc_error, reach], [y, y], color=rim, linewidth=0.9)
                panel.plot([made.auc], [y], marker=marker, color=face, markeredgecolor=rim, ms=5, linestyle="")
        panel.axvline(0.5, color="#555555", linestyle=DASHES, linewidth=0.9)
        panel.set_yticks(range(len(attacks)), attacks if panel is axes[0][0] else [""] * len(attacks), fontsize=8)
        panel.invert_yaxis()
        panel.set_xlim(0.35, 1.03)
        panel.set_xlabel("AUC, with 95 % interval")
        panel.set_title(NAMES[name], fontsize=9)
        panel.grid(axis="y", visible=False)
    handles = [
        Line2D([], [], marker=marker, color=face, markeredgecolor=rim, ms=5, linestyle="", label=victim)
        for victim, (marker, face, rim) in looks.items()
    ]
    legend_below(figure, handles, 3)
    return figure
