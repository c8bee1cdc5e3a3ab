"""A picture of an answer: the target, its public neighbourhood with names, and what the answer changes.

It is drawn from public values and the answer alone, so it never shows a secret edge. Every kind of line has dashes
and a sign of its own, so that a picture is legible without colours. `to_svg` needs no further package, `plot` needs
matplotlib.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from privcfs.errors import InputError, MissingDependency
from privcfs.public.advice import Advice
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention, Pair, pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OTHERS = 16  # neighbours of the target that are drawn; more names are not legible. What changes is always drawn.
WIDTH, ROW, MIDDLE, LEFT, RIGHT = 560, 30, 280, 164, 396  # of an SVG, in its units
LONGEST_NAME, LONGEST_NOTE = 16, 64  # letters
BESIDE_NAME = 0.7  # where the sign of a line stands that starts at the target, so that it does not cover its name
INK, PAPER = "#1b2430", "#ffffff"


class Style(NamedTuple):
    """How a kind of line is drawn: colour, width, dashes, and the sign in its middle."""

    colour: str
    width: float
    dashes: tuple[int, ...]
    sign: str
    meaning: str


STYLES = {
    "public": Style("#8a94a0", 1.2, (), "", "public connection"),
    "delete": Style("#b3261e", 3, (8, 5), "×", "to end"),  # noqa: RUF001
    "add": Style("#0b5cad", 3, (2, 4), "+", "new"),
}


class Answer(Protocol):
    """What can be drawn: a release, a public guess, or advice."""

    @property
    def target(self) -> int:
        """The node's number."""

    @property
    def intervention(self) -> Intervention:
        """What changes."""


class Dot(NamedTuple):
    """A node of the picture."""

    x: float
    y: float
    name: str
    side: int  # of its name: -1 for the left, 1 for the right, 0 for below


class Stroke(NamedTuple):
    """A line of the picture: a curve from one point to another that is drawn towards a third one.

    `share` says how far along it the sign stands.
    """

    start: tuple[float, float]
    bend: tuple[float, float]
    end: tuple[float, float]
    kind: str
    share: float = 0.5

    @property
    def sign(self) -> tuple[float, float]:
        """Where its sign stands."""
        weights = ((1 - self.share) ** 2, 2 * self.share * (1 - self.share), self.share**2)
        points = (self.start, self.bend, self.end)
        x, y = (sum(weight * one[axis] for weight, one in zip(weights, points, strict=True)) for axis in (0, 1))
        return x, y


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of one change; a notebook shows it.

    Attributes:
        words: What the picture shows, for those who cannot see it.
        height: Its height; it is 560 wide.
        dots: The nodes; the first is the target.
        strokes: The lines.
        notes: Lines of text below: changes and masks of features, and how many neighbours are not drawn. Default: none.
    """

    words: str
    height: float
    dots: tuple[Dot, ...]
    strokes: tuple[Stroke, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of lines that are drawn."""
        return tuple(kind for kind in STYLES if any(one.kind == kind for one in self.strokes))

    def to_svg(self, alone: bool = True) -> str:
        """The picture as the text of an SVG; names and values in it are escaped.

        Args:
            alone: Whether it will be a file of its own, as by default, or a part of an HTML page.

        Returns:
            The text.
        """
        space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
        return "".join(
            [
                f'<svg{space} viewBox="0 0 {WIDTH} {self.height:.0f}" role="img" '
                f'aria-label="{escape(self.words)}" font-family="system-ui, sans-serif" font-size="13" fill="{INK}">',
                *(_svg_stroke(one) for one in self.strokes),
                *(_svg_dot(one, number == 0) for number, one in enumerate(self.dots)),
                *(_svg_text(12, y, note, "start") for y, note in self._placed_notes()),
                "</svg>",
            ]
        )

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.to_svg()

    def save(self, path: str | Path) -> None:
        """Writes the picture into a file.

        Args:
            path: A file; `.svg` needs no further package, any other ending that matplotlib knows needs matplotlib.
        """
        if Path(path).suffix == ".svg":
            Path(path).write_text(self.to_svg(), encoding="utf-8")
            return
        figure: Any = self.plot().figure
        figure.savefig(path, dpi=150, bbox_inches="tight")

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draws the picture with matplotlib.

        Args:
            axes: Where to draw; by default a new figure.

        Returns:
            The axes.

        Raises:
            MissingDependency: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingDependency("plot needs matplotlib; run: pip install 'privcfs[plot]'.") from None
        if axes is None:
            axes = Figure(figsize=(WIDTH / 80, self.height / 80)).add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, WIDTH), ylim=(self.height, 0), aspect="equal")
        axes.axis("off")
        for stroke in self.strokes:
            _plot_stroke(axes, stroke)
        for number, dot in enumerate(self.dots):
            _plot_dot(axes, dot, number == 0)
        for y, note in self._placed_notes():
            axes.text(12, y, _plain(note), color=INK, fontsize=9)
        return axes

    def _placed_notes(self) -> Iterator[tuple[float, str]]:
        """The notes with the heights at which they stand."""
        first = self.height - 20 * len(self.notes) + 8
        return ((first + 20 * number, note) for number, note in enumerate(self.notes))


def picture(answer: Answer, context: PublicContext, alternative: int = 1) -> Picture:
    """Draws an answer.

    Args:
        answer: A release, a public guess or advice.
        context: The public context; names and the public snapshot come from it.
        alternative: Which change of advice to draw, counted from 1, the best one and the default.

    Returns:
        The picture.

    Raises:
        InputError: There is no such alternative.
    """
    changes = [one.intervention for one in answer.changes] if isinstance(answer, Advice) else [answer.intervention]
    if not 1 <= alternative <= len(changes):
        raise InputError(f"alternative is {alternative}; choose one from 1 to {len(changes)}.")
    return picture_of(answer.target, changes[alternative - 1], context)


def picture_of(target: int, intervention: Intervention, context: PublicContext) -> Picture:
    """Draws an intervention about a node, given by its number."""
    near = [int(one) for one in context.disclosed.neighbours(target)]
    changed = sorted({*intervention.nodes} - {target})
    further = [node for node in near if node not in changed]
    others = sorted([*changed, *further[: max(MOST_OTHERS - len(changed), 0)]])
    height = max(ROW * -(-len(others) // 2), 2 * ROW) + 36
    place = {target: (float(MIDDLE), height / 2), **_columns(others, height)}
    public = {pair(target, node) for node in near if node in place} - set(intervention.delete) - set(intervention.add)
    strokes = [_stroke(place, ends, "public") for ends in sorted(public)]
    strokes += [_stroke(place, ends, "delete") for ends in intervention.delete]
    strokes += [_stroke(place, ends, "add") for ends in intervention.add]
    dots = [Dot(*place[target], context.label(target), 0)]
    dots += [Dot(*place[node], context.label(node), -1 if place[node][0] == LEFT else 1) for node in others]
    hidden = len(changed) + len(further) - len(others)
    notes = _notes(intervention, hidden)
    words = f"{context.label(target)}: {context.named(intervention)}"
    return Picture(words, height + 20 * len(notes), tuple(dots), tuple(strokes), tuple(notes))


def _columns(others: list[int], height: float) -> dict[int, tuple[float, float]]:
    """The other nodes in a column on each side, where no name can lie on a line or on another name."""
    half = -(-len(others) // 2)
    sides = ((LEFT, others[:half]), (RIGHT, others[half:]))
    return {
        node: (float(x), height * (number + 0.5) / len(column))
        for x, column in sides
        for number, node in enumerate(column)
    }


def _stroke(place: dict[int, tuple[float, float]], ends: Pair, kind: str) -> Stroke:
    """A straight line, or an arc towards the middle where both ends are in one column."""
    first, second = sorted(ends, key=lambda node: place[node][0] != MIDDLE)  # The target comes first.
    start, end = place[first], place[second]
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if start[0] == end[0]:
        x += 60 if x < MIDDLE else -60
    return Stroke(start, (x, y), end, kind, BESIDE_NAME if start[0] == MIDDLE else 0.5)


def _notes(intervention: Intervention, hidden: int) -> list[str]:
    """What has no place among nodes and lines."""
    texts = [f"mask feature {feature}" for feature in intervention.mask] + [str(one) for one in intervention.change]
    notes = [line for text in texts for line in wrap(text, LONGEST_NOTE)]
    return notes + ([f"{hidden} further public connections are not drawn"] if hidden else [])


def _shown(name: str) -> str:
    """A name, whole or cut with an ellipsis."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _svg_stroke(one: Stroke) -> str:
    style, (x, y) = STYLES[one.kind], one.sign
    (x1, y1), (bx, by), (x2, y2) = one.start, one.bend, one.end
    line = (
        f'<path d="M{x1:.1f} {y1:.1f} Q{bx:.1f} {by:.1f} {x2:.1f} {y2:.1f}" fill="none" stroke="{style.colour}" '
        f'stroke-width="{style.width}" stroke-dasharray="{" ".join(map(str, style.dashes))}"/>'
    )
    if not style.sign:
        return line
    sign = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="{PAPER}" stroke="{style.colour}" stroke-width="1.5"/>'
    return f'{line}{sign}<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" font-weight="bold">{style.sign}</text>'


def _svg_dot(one: Dot, is_target: bool) -> str:
    radius, fill = (11, INK) if is_target else (7, PAPER)
    x, y, anchor = _name_place(one)
    return (
        f'<g><title>{escape(one.name)}</title><circle cx="{one.x:.1f}" cy="{one.y:.1f}" r="{radius}" fill="{fill}" '
        f'stroke="{INK}" stroke-width="1.5"/>{_svg_text(x, y + 5, _shown(one.name), anchor, is_target)}</g>'
    )


def _svg_text(x: float, y: float, text: str, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    halo = f'style="paint-order:stroke;stroke:{PAPER};stroke-width:4px"'  # or lines would cross the name
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} {halo}>{escape(text)}</text>'


def _name_place(one: Dot) -> tuple[float, float, str]:
    """Where a node's name stands, and which part of it stands there."""
    if not one.side:
        return one.x, one.y + 22, "middle"
    return one.x + 14 * one.side, one.y, "start" if one.side > 0 else "end"


def _plot_stroke(axes: "Axes", one: Stroke) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    style = STYLES[one.kind]
    curve = Curve([one.start, one.bend, one.end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
    dashes: Any = (0, [length / style.width for length in style.dashes]) if style.dashes else "solid"
    width = style.width * 0.9
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=style.colour, linewidth=width, linestyle=dashes, zorder=1))
    if style.sign:
        badge = {"boxstyle": "circle,pad=0.15", "facecolor": PAPER, "edgecolor": style.colour}
        centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold", "zorder": 2}
        axes.text(*one.sign, style.sign, color=INK, bbox=badge, **centred)


def _plot_dot(axes: "Axes", one: Dot, is_target: bool) -> None:
    from matplotlib.patches import Circle
    from matplotlib.patheffects import withStroke

    radius, fill = (11, INK) if is_target else (7, PAPER)
    axes.add_patch(Circle((one.x, one.y), radius, facecolor=fill, edgecolor=INK, linewidth=1.3, zorder=3))
    x, y, anchor = _name_place(one)
    sides: dict[str, Any] = {"ha": {"start": "left", "end": "right"}.get(anchor, "center"), "va": "center"}
    effects = [withStroke(linewidth=3, foreground=PAPER)]
    weight = "bold" if is_target else "normal"
    name = _plain(_shown(one.name))
    axes.text(x, y, name, color=INK, fontsize=9, fontweight=weight, path_effects=effects, zorder=4, **sides)


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")
