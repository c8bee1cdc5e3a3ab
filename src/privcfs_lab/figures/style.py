"""One look for all figures: shades that differ in grey, markers that differ in shape."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privcfs.errors import MissingDependency
from privcfs_lab.measuring.measure import GRID

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

SHADES = ("#b8c4d6", "#7f9cc0", "#3f6ba0", "#12274a")  # light to dark: also in grey
MARKERS = ("o", "s", "^", "D")
LINES = (":", "-.", "--", "-")
ACCENT = "#b3541e"
DASHES = (0, (5, 4))
GUESS: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "white", "markeredgecolor": ACCENT}
SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "path",
}
NAMES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "coauthor-cs": "Coauthor-CS",
    "coauthor-physics": "Coauthor-Physics",
    "facebook": "Facebook Page-Page",
    "arxiv": "arxiv, stand-in features",
    "arxiv-core": "arxiv core, stand-in features",
}


def panels(
    rows: int, columns: int, width: float = 4.2, height: float = 2.7
) -> "tuple[Figure, Sequence[Sequence[Axes]]]":
    """A grid of axes on a figure without a window behind it."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("Figures need matplotlib; run: pip install 'privcfs[lab]'.") from None
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes: Sequence[Sequence[Axes]] = figure.subplots(rows, columns, squeeze=False)  # type: ignore[assignment]
        return figure, axes


def rate_panels(rows: Sequence[str], names: Sequence[str]) -> "tuple[Figure, Sequence[Sequence[Axes]]]":
    """Axes for valid rates against epsilon, 0 first: a row for each of some words, and a column for each data set."""
    figure, axes = panels(len(rows), len(names), width=4.6)
    for row, words in zip(axes, rows, strict=True):
        for panel, name in zip(row, names, strict=True):
            panel.set_xticks(range(-1, len(GRID)), ["0", *GRID])
            panel.set_title(f"{NAMES[name]}, {words}", fontsize=9.5)
        row[0].set_ylabel("share of targets flipped")
    for panel in axes[-1]:
        panel.set_xlabel("epsilon")
    return figure, axes


def legend_below(figure: "Figure", handles: "Sequence[Artist]", columns: int) -> None:
    """A legend outside all axes."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS):
        figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)


def curve_handle(number: int, label: str) -> "Line2D":
    """A line of the legend for the curve of that shade."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=SHADES[number], linestyle=LINES[number], marker=MARKERS[number], label=label)


def dashed_handle(label: str) -> "Line2D":
    """A line of the legend for ceilings."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color="#555555", linestyle=DASHES, linewidth=0.9, label=label)


def guess_handle(marked: bool = False) -> "Line2D":
    """A line of the legend for row zero."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        linestyle="",
        label="public guess, epsilon 0 (marker as the curve)" if marked else "public guess, epsilon 0",
        **GUESS,
    )


def bar_handle(shade: str, label: str, hatch: str = "") -> "Patch":
    """A box of the legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=shade, edgecolor="white" if hatch else shade, hatch=hatch, label=label)
