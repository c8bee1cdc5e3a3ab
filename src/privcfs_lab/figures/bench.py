"""What a release costs, and what it does not depend on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, final

from privcfs_lab.figures.style import ACCENT, DASHES, LINES, MARKERS, SHADES, bar_handle, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

PAPER = {"paper, RTX 4090: 2.1 s": 2100.0, "paper, RTX 4090: 4.1 s": 4100.0}  # a target, on its two data sets
GREY = "#dddddd"


@final
class Point(NamedTuple):
    """One measured size, and the milliseconds of an evaluation."""

    size: int
    milliseconds: float


@final
class Split(NamedTuple):
    """Milliseconds of each step of a release."""

    name: str
    propose: float
    charge: float
    evaluate: float
    draw: float
    whole: float

    @property
    def rest(self) -> float:
        """Checks, scores, the certificate, and keeping it."""
        return self.whole - self.propose - self.charge - self.evaluate - self.draw


@final
class Sized(NamedTuple):
    """What a graph of one size costs: milliseconds to propose and evaluate, megabytes, seconds to import."""

    nodes: int
    edges: int
    warm: float
    over_smallest: float  # in turns with the smallest graph
    touched: float  # for the first time by this process
    from_disk: float  # for the first time by anyone
    megabytes: float  # the most that was resident, after releases for all targets
    importing: float
    importing_megabytes: float


def _papers_line(panel: "Axes") -> "list[Line2D]":
    return [
        panel.axhline(value, color=ACCENT, linestyle=style, linewidth=1.0, label=words)
        for (words, value), style in zip(PAPER.items(), (DASHES, ":"), strict=True)
    ]


def draw_growth(curves: Mapping[str, Sequence[Point]]) -> "Figure":
    """Milliseconds of an evaluation against one size at a time, with the paper's times."""
    figure, axes = panels(1, len(curves), width=3.2, height=3.2)
    for panel, (label, points) in zip(axes[0], curves.items(), strict=True):
        x, y = [one.size for one in points], [one.milliseconds for one in points]
        lines = panel.plot(x, y, "o-", color=SHADES[3], label="one evaluation of all candidates, one CPU core")
        lines += _papers_line(panel)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(0.1, 10_000)
        panel.set_xlabel(label)
    axes[0][0].set_ylabel("milliseconds")
    legend_below(figure, lines, 3)
    return figure


def draw_split(splits: Sequence[Split]) -> "Figure":
    """Where the time of a release goes."""
    figure, axes = panels(1, 1, width=7.0, height=2.4)
    panel = axes[0][0]
    steps = ("propose", "charge", "evaluate", "draw", "rest")
    shades = (*SHADES, GREY)
    left = [0.0] * len(splits)
    for shade, step in zip(shades, steps, strict=True):
        values = [max(float(getattr(one, step)), 0.0) for one in splits]
        panel.barh([one.name for one in splits], values, left=left, color=shade, height=0.55)
        left = [start + value for start, value in zip(left, values, strict=True)]
    panel.set_xlabel("milliseconds, median")
    panel.invert_yaxis()
    names = (*steps[:4], "score, certificate, keeping it")
    legend_below(figure, [bar_handle(shade, name) for shade, name in zip(shades, names, strict=True)], 5)
    return figure


def draw_sizes(rows: Sequence[Sized]) -> "Figure":
    """Time and memory against the number of nodes."""
    figure, axes = panels(1, 2, width=4.2, height=3.4)
    nodes = [row.nodes for row in rows]
    time, memory = axes[0]
    lines: list[Line2D] = []
    for number, (label, values) in enumerate(
        {
            "from disk": [row.from_disk for row in rows],
            "first touch, file cached": [row.touched for row in rows],
            "warm": [row.warm for row in rows],
        }.items(),
        start=1,
    ):
        lines += time.plot(
            nodes, values, color=SHADES[number], linestyle=LINES[number], marker=MARKERS[number], label=label
        )
    lines += _papers_line(time)
    time.set_yscale("log")
    time.set_ylabel("propose and evaluate, milliseconds")
    megabytes = [row.megabytes for row in rows]
    lines += memory.plot(nodes, megabytes, "D-", color=SHADES[0], label="peak resident memory (right)")
    memory.set_ylabel("megabytes")
    memory.set_ylim(0, 1.15 * max(*megabytes, 1000))
    lines.append(memory.axhline(1000, color="#555555", linestyle=DASHES, linewidth=0.9, label="asked for: 1 GB"))
    for panel in (time, memory):
        panel.set_xscale("log")
        panel.set_xlabel("nodes, ten edges each")
    legend_below(figure, lines, 3)
    return figure


def draw_many(seconds: Sequence[float], targets: int, workers: Sequence[tuple[int, float, float]]) -> "Figure":
    """Many targets in one process, and several processes against what the machine's cores can do."""
    figure, axes = panels(1, 2, width=4.2, height=3.0)
    many, side = axes[0]
    done = [targets * number / (len(seconds) - 1) for number in range(len(seconds))]
    lines = many.plot(done, seconds, "-", color=SHADES[3], label="all Cora test nodes, durably charged, one process")
    many.set_xlabel("targets")
    many.set_ylabel("seconds")
    numbers = [number for number, _, _ in workers]
    lines += side.plot(numbers, [ours for _, ours, _ in workers], "o-", color=SHADES[2], label="evaluations")
    lines += side.plot(numbers, [peak for _, _, peak in workers], "s--", color=ACCENT, label="matrix products (sgemm)")
    side.set_xticks(numbers)
    side.set_xlabel("processes")
    side.set_ylabel("times one process")
    side.set_ylim(0, None)
    legend_below(figure, lines, 3)
    return figure
