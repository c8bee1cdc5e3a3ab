"""Pictures of answers: public values alone, every element told, names escaped, and legible without colours."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import privcfs
from privcfs import FeatureChange, Intervention, PublicContext
from privcfs.errors import InputError, MissingDependency
from privcfs.public.advice import Advice, Change
from privcfs.public.picture import MOST_OTHERS, STYLES, Picture, picture, picture_of
from privcfs.public.public_answer import PublicAnswer

NODES = 40
HOSTILE = '<script>"&$x_1$</script>'
CHANGES = (FeatureChange("LoanDuration", "24", "48", "months"), FeatureChange("Guarantor", "yes"))
EVERYTHING = Intervention(delete=((0, 5), (3, 9)), add=((0, 30), (31, 32)), mask=(1,), change=CHANGES)


@pytest.fixture(scope="module")
def context() -> PublicContext:
    rng = np.random.default_rng(0)
    model = privcfs.GCN(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    names = [HOSTILE, *(f"client-{number}" for number in range(1, NODES))]
    pairs = [(0, number) for number in range(1, 25)]
    return PublicContext(rng.normal(size=(NODES, 2)), pairs, model, node_ids=names)


def test_everything_that_changes_is_drawn_and_names_are_escaped(context: PublicContext) -> None:
    drawn = picture_of(0, EVERYTHING, context)
    assert drawn.kinds == ("public", "delete", "add")
    assert [one.kind for one in drawn.strokes].count("delete") == 2
    assert {one.name for one in drawn.dots} >= {HOSTILE, *(f"client-{node}" for node in (3, 5, 9, 30, 31, 32))}
    svg = drawn.to_svg()
    assert "<script" not in svg
    texts = "|".join("".join(one.itertext()) for one in ElementTree.fromstring(svg).iter())
    for said in ("mask feature 1", CHANGES[0].feature + ": 48 -> 24 months", "set Guarantor to yes", "are not drawn"):
        assert said in texts


def test_only_pairs_of_the_snapshot_are_drawn_as_public(context: PublicContext) -> None:
    drawn = picture_of(0, Intervention(delete=((0, 5),), add=((0, 7), (0, 30))), context)
    place = {(one.x, one.y): one.name for one in drawn.dots}
    public = {place[one.end] for one in drawn.strokes if one.kind == "public"}
    assert public <= {f"client-{node}" for node in range(1, 25)} - {"client-5", "client-7"}
    assert len(drawn.dots) == 1 + MOST_OTHERS, "the target, what changes, and as many neighbours as are legible"
    assert not picture_of(39, Intervention(), context).strokes


def test_kinds_of_lines_differ_without_colours_and_no_two_names_overlap(context: PublicContext) -> None:
    assert len({(style.dashes, style.sign) for style in STYLES.values()}) == len(STYLES)
    drawn = picture_of(0, EVERYTHING, context)
    for side in (-1, 1):
        heights = sorted(one.y for one in drawn.dots if one.side == side)
        assert np.diff(heights).min() >= 20


def test_answers_are_drawn_and_advice_has_a_picture_for_each_alternative(context: PublicContext) -> None:
    guess = PublicAnswer(0, Intervention(change=CHANGES[:1]), 0.5)
    assert picture(guess, context).notes[0] == "LoanDuration: 48 -> 24 months"
    changes = (Change(Intervention(change=CHANGES[1:]), 0.9), Change(Intervention(delete=((0, 5),)), 0.4))
    advice = Advice(0, changes, {1: 1.0}, "digest", ())
    assert picture(advice, context).kinds == ("public",)
    assert picture(advice, context, 2).kinds == ("public", "delete")
    with pytest.raises(InputError, match="from 1 to 2"):
        picture(advice, context, 3)


def test_matplotlib_draws_the_same_and_its_absence_is_told(
    context: PublicContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: Picture = picture_of(0, EVERYTHING, context)
    texts = {one.get_text() for one in drawn.plot().texts}
    assert {"client-5", "client-30", "+", "LoanDuration: 48 -> 24 months"} <= texts
    drawn.save(tmp_path / "one.png")
    drawn.save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text(encoding="utf-8") == drawn.to_svg() == drawn._repr_svg_()
    assert (tmp_path / "one.png").stat().st_size > 5000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match=r"privcfs\[plot\]"):
        drawn.plot()
