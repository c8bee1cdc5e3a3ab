"""The six figures of the front page of results, drawn from the rows of the committed pages."""

from collections.abc import Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from privcfs_lab.figures.scale import Timed, draw_scale
from privcfs_lab.figures.style import ACCENT, DASHES, GUESS, NAMES, SHADES, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]
Pages = Mapping[str, Rows]
GREY = "#555555"
HALF = 0.5
CEILING: dict[str, Any] = {"marker": "_", "markersize": 13, "markeredgewidth": 1.6, "color": GREY}
# What is shown of each data set: page, column, label and look, from left to right.
REACHED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("recourse", "row zero", "free guess", GUESS),
    ("recourse", "@1", "release, epsilon 1", {"marker": "s", "color": SHADES[1]}),
    ("recourse", "@8", "release, epsilon 8", {"marker": "s", "color": SHADES[3]}),
    ("advice", "advice", "advice to the person, price 0", {"marker": "D", "color": ACCENT}),
    ("population", "sketch", "sketch, paid once for everyone", {"marker": "^", "color": SHADES[2]}),
    ("recourse", "ceiling", "ceiling of the list", CEILING),
)
WAYS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "sketch": ("a sketch, paid once", {"marker": "^", "color": SHADES[3], "linestyle": "-"}),
    "mixture": ("mixture of several ways", {"marker": "o", "color": SHADES[2], "linestyle": "--"}),
    "accounts": ("accounts of nodes", {"marker": "s", "color": SHADES[2], "linestyle": "-."}),
    "whole": ("the total divided by all", {"marker": "D", "color": SHADES[1], "linestyle": ":"}),
}
SURE: Mapping[str, tuple[str, dict[str, Any]]] = {
    "confidence": ("release, epsilon 1", {"marker": "s", "color": SHADES[3]}),
    "advice": ("advice", {"marker": "D", "color": ACCENT}),
    "population": ("sketch", {"marker": "^", "color": SHADES[1]}),
}

SEARCHES = {
    "climbing": "climbing on real graphs",
    "climbing, guided release": "climbing, default method",
    "every graph": "every graph on five nodes",
    "constructed": "constructed graphs",
}


def draw_reached(pages: Pages) -> "Figure":
    """Free guess, release, advice, sketch and ceiling on each data set."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 1, width=8.2, height=3.6)
    panel, rows = axes[0][0], {page: _of_data(pages[page]) for page in ("recourse", "advice", "population")}
    names = list(rows["recourse"])
    for place, name in enumerate(names):
        for number, (page, column, _, look) in enumerate(REACHED):
            value = rows[page].get(name, {}).get(column)
            if value is not None:
                _point(panel, place + (number - 2.5) * 0.13, value, {"markersize": 6} | look)
    panel.set_xticks(range(len(names)), [NAMES[name] for name in names])
    panel.grid(visible=False, axis="x")
    panel.set_ylabel("share of targets flipped")
    handles = [Line2D([], [], linestyle="", label=label, **({"markersize": 6} | look)) for _, _, label, look in REACHED]
    legend_below(figure, handles, 3)
    return figure


def draw_population(pages: Pages) -> "Figure":
    """What one total achieves for everyone, by the way in which it is spent."""
    half = [row for row in pages["population"] if row["disclosed"] == HALF]
    names = list(dict.fromkeys(row["data"] for row in half))
    figure, axes = panels(1, len(names), width=min(4.2, 10 / len(names)), height=3.0)
    for panel, name in zip(axes[0], names, strict=True):
        rows = sorted((row for row in half if row["data"] == name), key=lambda row: float(row["total"]))
        for column, (label, look) in WAYS.items():
            curve = [(0.0, _mean(rows[0]["row zero"]))]
            curve += [(float(row["total"]), _mean(row[column])) for row in rows if row.get(column) is not None]
            if len(curve) > 1:
                panel.plot(*zip(*curve, strict=True), label=label, markersize=5, **look)
        panel.plot([0], [_mean(rows[0]["row zero"])], linestyle="", label="free guess", **GUESS)
        panel.axhline(_mean(rows[0]["advice"]), color=ACCENT, label="advice to each person, price 0")
        panel.axhline(
            _mean(rows[0]["ceiling"]), color=GREY, linestyle=DASHES, linewidth=0.9, label="ceiling of the list"
        )
        panel.set(title=NAMES[name], xlabel="epsilon for everyone together")
        panel.set_xticks([0.0, *(float(row["total"]) for row in rows)])
    axes[0][0].set_ylabel("share of targets flipped")
    legend_below(figure, [line for line in axes[0][0].lines if not str(line.get_label()).startswith("_")], 4)
    return figure


def draw_calibration(pages: Pages) -> "Figure":
    """Mean confidence against the valid rate, and the calibration error by data set."""
    figure, axes = panels(1, 2, width=4.1, height=3.3)
    scatter, errors = axes[0]
    names = [row["data"] for row in pages["confidence"]]
    scatter.plot([0.5, 0.9], [0.5, 0.9], color=GREY, linestyle=DASHES, linewidth=0.9, label="perfect forecaster")
    for shift, (page, (label, look)) in zip((-0.15, 0.0, 0.15), SURE.items(), strict=True):
        rows = _of_data(pages[page])
        valid = {"confidence": "valid", "advice": "advice", "population": "sketch"}[page]
        said = {"confidence": "mean confidence"}.get(page, "confidence")
        known = {name: row for name, row in rows.items() if name in names and row.get(said) is not None}
        scatter.plot(
            [row[said] for row in known.values()],
            [_mean(row[valid]) for row in known.values()],
            linestyle="",
            label=label,
            **look,
        )
        places = [names.index(name) + shift for name in known]
        errors.plot(places, [row["calibration error"] for row in known.values()], linestyle="", **look)
    for place, row in enumerate(pages["confidence"]):
        errors.plot([place - 0.25, place + 0.25], [row["perfect forecaster"]] * 2, color=GREY, linestyle=DASHES)
    scatter.set(xlabel="mean confidence", ylabel="share that is valid", aspect="equal")
    errors.set_xticks(
        range(len(names)), [NAMES[name].replace(" ", "\n").replace("-", "-\n") for name in names], fontsize=8
    )
    errors.set(ylabel="calibration error", ylim=(0, None))
    errors.grid(visible=False, axis="x")
    legend_below(figure, scatter.lines, 4)
    return figure


def draw_speed(pages: Pages) -> "Figure":
    """Milliseconds of a release against the number of nodes."""
    local, whole = "propose and evaluate, ms", "whole release, ms"
    return draw_scale([Timed(row["graph"], row["nodes"], row[local], row[whole]) for row in pages["scale"]])


def draw_bounds(pages: Pages) -> "Figure":
    """Which share of its bound each audit has used up: one line a kind of search, a point a row."""
    shares = {name: sorted(found) for name, found in _shares(pages).items() if found}
    figure, axes = panels(1, 1, width=8.2, height=0.6 + 0.36 * len(shares))
    panel = axes[0][0]
    for place, found in enumerate(shares.values()):
        panel.plot(found, [place] * len(found), linestyle="", marker="|", markersize=9, color=SHADES[2])
        panel.plot(found[-1:], [place], linestyle="", marker="D", markersize=5, color=SHADES[3])
    panel.axvline(1, color=ACCENT)
    panel.annotate(
        "what is promised", (1, -0.75), ha="right", fontsize=8, color=ACCENT, xytext=(-4, 0), textcoords="offset points"
    )
    panel.set_yticks(range(len(shares)), list(shares))
    panel.set(xlim=(0, 1.03), ylim=(len(shares) - 0.5, -1.1), xlabel="share of the promised loss that was found")
    panel.grid(visible=False, axis="y")
    return figure


def _shares(pages: Pages) -> dict[str, list[float]]:
    asked = [row for row in pages["audit-black-box"] if row["kind"] == "shipped"]
    bets = [row for row in pages.get("audit-transcripts", ()) if row["kind"] == "shipped"]
    limits = [row["share of the limits"] for row in pages["audit-accounts"]]
    shares = {
        "asked only, proven with 95 %": [row["proven at least"] / float(row["claimed epsilon"]) for row in asked],
        "asked only, exact for those graphs": [row["exact"] / float(row["claimed epsilon"]) for row in asked],
        "bets on transcripts, proven with 95 %": [row["proven, times stated"] for row in bets],
        "sampled pairs of real graphs": [log(row["largest ratio"]) / log(row["bound"]) for row in pages["audit-pairs"]],
    }
    for search, words in SEARCHES.items():
        shares[words] = [row["share of epsilon"] for row in pages["audit-worst-case"] if row["search"] == search]
    return shares | {"accounts of nodes, whole transcripts": [share for share in limits if share is not None]}


def draw_paper(pages: Pages) -> "Figure":
    """Our numbers against the paper's printed ones."""
    figure, axes = panels(1, 2, width=4.1, height=3.6)
    rows = [row for name in ("general", "borderline") for row in pages[f"frontier-{name}"] if row["arm"] == "edge-only"]
    ceilings = [(row["reported ceiling"], row["ceiling"]) for row in rows]
    prices = ("0.5", "1", "2", "4", "8")
    rates = [(row[f"reported @{price}"], row[f"@{price}"]) for row in rows for price in prices]
    for panel, title, points in zip(
        axes[0], ("ceilings", "valid rates, epsilon 0.5 to 8"), (ceilings, rates), strict=True
    ):
        known = [(printed, ours) for printed, ours in points if printed is not None and ours is not None]
        panel.plot([0, 1], [0, 1], color=GREY, linestyle=DASHES, linewidth=0.9)
        panel.errorbar(
            [printed for printed, _ in known],
            [_mean(ours) for _, ours in known],
            [2 * ours["error"] for _, ours in known],
            linestyle="",
            marker="o",
            markersize=4,
            color=SHADES[3],
            ecolor=SHADES[0],
        )
        panel.set(title=title, xlabel="printed in the paper", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes[0][0].set_ylabel("ours, ± two standard errors")
    return figure


def _of_data(rows: Rows) -> dict[str, Mapping[str, Any]]:
    """The main row of each data set: half of the edges public, two changes, most targets, the largest total."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        hard = row.get("population") == "borderline"
        if not hard and row.get("disclosed", HALF) == HALF and row.get("cap", 2) == 2:
            before = chosen.get(row["data"])
            if before is None or float(row.get("total", 0)) > float(before.get("total", 0)):
                chosen[row["data"]] = row
    return chosen


def _point(panel: "Axes", at: float, value: Any, look: Mapping[str, Any]) -> None:
    if isinstance(value, dict):
        low, high = value["mean"] - value["error"], value["mean"] + value["error"]
        panel.plot([at, at], [low, high], color="#bbbbbb", linewidth=1, zorder=1)
    panel.plot([at], [_mean(value)], linestyle="", **look)


def _mean(value: Any) -> float:
    return float(value["mean"] if isinstance(value, dict) else value)
