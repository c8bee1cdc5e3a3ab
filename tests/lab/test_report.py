"""Pages, files and figures."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from privcfs_lab.experiments import ablations, frontier, losses, populations
from privcfs_lab.experiments.scale import made_graph
from privcfs_lab.figures.page import Column, Estimate, Page, Picture, save_figure
from privcfs_lab.figures.scale import Timed, draw_scale
from privcfs_lab.measuring.study import Study

STUDY = Study((0,), 1, None, most=2)
PAGE = Page(
    "A title",
    "About it.",
    (Column("data"), Column("ceiling"), Column("empty", ".1%"), Column("more", ".2f", shown=False)),
    [["cora", Estimate(0.5, 0.1), 0.25, 1.0], ["citeseer", None, 0.0, None]],
)


def test_a_page_shows_its_command_and_what_is_shown(tmp_path: Path) -> None:
    PAGE.write(tmp_path, "a", "privcfs-lab a")
    page = (tmp_path / "a.md").read_text()
    assert page.startswith("# A title\n\n| data |")
    assert page.endswith("\n## Details\n\nAbout it.\n\nWritten by `privcfs-lab a`.\n")
    assert "| cora | 0.500 ± 0.100 | 25.0% |" in page
    assert "| citeseer | - | 0.0% |" in page
    assert "more" not in page


def test_a_page_opens_with_what_it_says(tmp_path: Path) -> None:
    PAGE.write(tmp_path, "a", "privcfs-lab a", "123", "It shows this. So that follows.")
    assert (tmp_path / "a.md").read_text().startswith("# A title\n\nIt shows this. So that follows.\n\n| data |")
    assert json.loads((tmp_path / "a.json").read_text())["lead"] == "It shows this. So that follows."


def test_files_hold_numbers_and_every_column(tmp_path: Path) -> None:
    PAGE.write(tmp_path, "a", "privcfs-lab a")
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"data": "cora", "ceiling": "0.5", "ceiling ±": "0.1", "empty": "0.25", "more": "1.0"}
    assert rows[1]["ceiling"] == rows[1]["more"] == ""
    whole = json.loads((tmp_path / "a.json").read_text())
    assert whole["rows"][0]["ceiling"] == {"mean": 0.5, "error": 0.1}
    assert whole["rows"][1]["more"] is None


def figures() -> list[Figure]:
    pages = [frontier.borderline(STUDY), losses.decomposition(STUDY), populations.page(STUDY)]
    timed = [Timed("made", 1000, 1.0, 3.0), Timed("made", 10_000, 1.1, 3.1), Timed("cora", 2708, 1.2, 3.4)]
    return [picture.draw() for page in pages for picture in page.pictures] + [draw_scale(timed)]


def test_legends_cover_no_data_and_axes_are_labelled() -> None:
    for figure in figures():
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        for axes in figure.axes:
            assert not box.overlaps(axes.get_window_extent())
            assert axes.get_legend() is None
            assert axes.get_title() or axes.get_xlabel()
        assert any(axes.get_ylabel() for axes in figure.axes)


def test_every_result_figure_marks_the_public_guess() -> None:
    for figure in figures()[:-1]:
        words = [text.get_text() for text in figure.legends[0].get_texts()]
        assert any("public guess" in word for word in words)


def test_shades_differ_in_grey() -> None:
    from privcfs_lab.figures.style import SHADES

    grey = [0.299 * int(shade[1:3], 16) + 0.587 * int(shade[3:5], 16) + 0.114 * int(shade[5:], 16) for shade in SHADES]
    assert min(-np.diff(grey)) > 30


def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    timed = [Timed("made", 1000, 1.0, 3.0), Timed("cora", 2708, 1.2, 3.4)]
    for name in ("first.svg", "second.svg"):
        save_figure(draw_scale(timed), tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_picture_is_written_beside_its_page(tmp_path: Path) -> None:
    picture = Picture("words", lambda: draw_scale([Timed("made", 1000, 1.0, 3.0)]))
    Page("T", "A.", (Column("x"),), [["1"]], (picture, picture)).write(tmp_path, "p", "c")
    assert "![words](p.svg)\n\n![words](p-2.svg)" in (tmp_path / "p.md").read_text()
    assert (tmp_path / "p-2.svg").exists()


def test_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from privcfs.errors import MissingDependency

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match="Figures need matplotlib"):
        draw_scale([])


def test_pending_ablations_have_their_place() -> None:
    page = ablations.page(STUDY)
    words = [str(row[1]) for row in page.rows]
    for letter in "abcdefhij":
        assert any(word.startswith(f"({letter})") for word in words), letter


def test_made_graphs_have_one_degree_at_any_size() -> None:
    for nodes in (1000, 5000):
        world = made_graph(nodes)
        assert set(np.bincount(world.pairs.ravel(), minlength=nodes).tolist()) == {8}
        assert world.context.number_of_nodes == nodes
