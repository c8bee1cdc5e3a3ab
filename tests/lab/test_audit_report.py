"""The audit's report: one page, every part, a verdict, and an exit code that tells."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privcfs_lab.audit.report import breaches, html
from privcfs_lab.cli import commands as cli
from privcfs_lab.figures.page import Column, Estimate, Page

PAGE = Page(
    "A part",
    "With *emphasis*, `code` and a < b.",
    (Column("check"), Column("seen", ".2f"), Column("hidden", shown=False), Column("within")),
    [["one", 0.5, "x", "yes"], ["two", Estimate(1.0, 0.1), "y", None], ["three", None, "z", "no"]],
)
SOUND = replace(PAGE, rows=PAGE.rows[:2])


def test_a_breach_is_named_and_coloured() -> None:
    assert breaches(PAGE) == ["three, z"]
    assert breaches(SOUND) == []
    page = html({"part": PAGE, "other": SOUND}, "quick", "Written by a test.")
    assert "1 breaches" in page
    assert page.count("<tr class=broken>") == 1
    assert "No breach" not in page
    assert "<em>emphasis</em>" in page
    assert "<code>code</code> and a &lt; b" in page
    assert "hidden" not in page


def test_without_a_breach_it_says_so_and_is_well_formed() -> None:
    page = html({"part": SOUND}, "full", "Written by a test.")
    assert "No breach in 1 judged rows. Depth: full." in page
    for tag in ("section", "table", "tr", "td", "ul", "main"):
        assert len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>")


@pytest.mark.parametrize(("page", "code"), [(SOUND, 0), (PAGE, 1)])
def test_the_exit_code_tells(page: Page, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run_audit", lambda *_: {"part": page})
    done = CliRunner().invoke(cli.app, ["audit", "--write", str(tmp_path / "new" / "a.html")])
    assert done.exit_code == code
    assert ("breach: A part: three, z" in done.output) == bool(code)
    assert (tmp_path / "new" / "a.html").read_text().startswith("<!doctype html>")


def test_a_mistyped_depth_is_refused() -> None:
    command = [sys.executable, "-c", "from privcfs_lab.cli.commands import main; main()", "audit", "--depth", "deep"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "choose one of quick, full" in done.stderr
