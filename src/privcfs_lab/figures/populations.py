"""Population gating: ceiling, release and public guess, by who is explained."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privcfs_lab.figures.style import GUESS, NAMES, SHADES, bar_handle, guess_handle, legend_below, panels
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.summary import estimate, guess, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[str, str, float, str]


def draw_populations(records: Mapping[Key, Records]) -> "Figure":
    """One row per arm, one column per data set."""
    names, populations, shares, arms = (list(dict.fromkeys(key[part] for key in records)) for part in range(4))
    figure, axes = panels(len(arms), len(names), width=4.6)
    for row, arm in zip(axes, arms, strict=True):
        for panel, name in zip(row, names, strict=True):
            for place, population in enumerate(populations):
                for number, share in enumerate(shares):
                    found = records[str(name), str(population), float(share), str(arm)]
                    x = place + 0.4 * (number - 0.5)
                    _bars(panel, found, x, SHADES[1 + 2 * number])
            panel.set_xticks(range(len(populations)), [str(word) for word in populations])
            panel.set_ylim(0, 1.08)
            panel.set_title(f"{NAMES[str(name)]}, {arm}", fontsize=9.5)
            panel.grid(axis="x", visible=False)
        row[0].set_ylabel("share of targets flipped")
    handles = [
        bar_handle(shade, f"ceiling, {float(share):.0%} of edges disclosed")
        for shade, share in zip(SHADES[1::2], shares, strict=False)
    ]
    hatched = [
        bar_handle(shade, f"release at epsilon 8, {float(share):.0%}", "////")
        for shade, share in zip(SHADES[1::2], shares, strict=False)
    ]
    legend_below(figure, [*handles, guess_handle(), *hatched], 3)
    return figure


def _bars(panel: "Axes", found: Records, x: float, shade: str) -> None:
    ceiling, valid = estimate(found["ceiling"]), rate(found, "valid")
    whiskers: dict[str, Any] = {"ecolor": "#808080", "capsize": 2, "error_kw": {"elinewidth": 0.8}}
    panel.bar(x - 0.09, ceiling.mean, 0.17, color=shade, yerr=ceiling.error, **whiskers)
    panel.bar(x + 0.09, valid.mean, 0.17, color=shade, hatch="////", edgecolor="white", yerr=valid.error, **whiskers)
    panel.plot([x], [guess(found).mean], **GUESS)
