"""The loss decomposition: what is left after each stage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from privcfs_lab.figures.style import ACCENT, GUESS, NAMES, SHADES, bar_handle, guess_handle, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = ("edge-only", "joint")
HATCHES = ("///", "")


def draw_losses(
    chains: Mapping[tuple[str, str, str], tuple[Sequence[float], float]], stages: Sequence[str]
) -> "Figure":
    """One row per protocol, one column per data set; bars of both arms, with the steps written on them."""
    names = list(dict.fromkeys(name for name, _, _ in chains))
    protocols = list(dict.fromkeys(protocol for _, protocol, _ in chains))
    figure, axes = panels(len(protocols), len(names), width=4.6, height=2.8)
    for row, protocol in zip(axes, protocols, strict=True):
        for panel, name in zip(row, names, strict=True):
            for number, arm in enumerate(ARMS):
                values, zero = chains[name, protocol, arm]
                x = [stage + 0.42 * (number - 0.5) for stage in range(len(values))]
                shade = SHADES[1 if number == 0 else 3]
                panel.bar(x, values, 0.4, color=shade, hatch=HATCHES[number], edgecolor="white")
                for position, value, before in zip(x[1:], values[1:], values[:-1], strict=True):
                    panel.text(position, value + 0.02, f"{value - before:+.2f}", ha="center", fontsize=7)
                last = len(values)
                panel.plot([last + 0.42 * (number - 0.5)], [zero], **GUESS)
                panel.text(last + 0.42 * (number - 0.5), zero + 0.05, arm[0], ha="center", fontsize=7, color=ACCENT)
            panel.set_xticks(range(len(stages) + 1), [*(stage.replace(" ", "\n") for stage in stages), "public\nguess"])
            panel.set_ylim(0, 1.12)
            panel.set_title(f"{NAMES[name]}, {protocol}", fontsize=9.5)
            panel.grid(axis="x", visible=False)
    for row in axes:
        row[0].set_ylabel("share of targets flipped")
    handles = [bar_handle(SHADES[1], "edge-only (e)", "///"), bar_handle(SHADES[3], "joint (j)"), guess_handle()]
    legend_below(figure, handles, 3)
    return figure
