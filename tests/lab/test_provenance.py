"""Stamps: they name the code that decides a result, no more and no less, and pages with another one are known."""

import ast
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from privcfs_lab.audit.worst_case import Climbed
from privcfs_lab.cli.commands import app
from privcfs_lab.experiments import EXPERIMENTS, leads, overview, stamps
from privcfs_lab.experiments.advice import Advised
from privcfs_lab.measuring import provenance
from privcfs_lab.measuring.provenance import SOURCE, Definition, code_digest, deciding
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.study import Cell, Study, Work

RESULTS = Path(__file__).parent.parent.parent / "docs/results"
CACHES = (provenance._source, provenance._file, provenance._mentioned, provenance._digest, provenance.code_digest)
MAKER = """
from privcfs import tools, shared
from privcfs.shared import renamed as short

def result():
    '''Makes it.'''
    from privcfs.late import later
    return tools.used(TABLE["one"]), short, later

def beside():
    return 1

TABLE = {"one": 1}
"""
FILES = {
    "privcfs/__init__.py": "",
    "privcfs/tools.py": "def used(x):\n return helper(x)\ndef helper(x):\n return x\ndef unused():\n return 2\n",
    "privcfs/shared.py": "from privcfs.home import renamed\nalso = 3\n",
    "privcfs/home.py": "print('runs')\nrenamed = 4\n",
    "privcfs/late.py": "later = 5\n",
    "privcfs/unread.py": "other = 6\n",
}
DECIDES = [
    ("privcfs/tools.py", "return x", "return x + 1"),
    ("privcfs/tools.py", "helper(x)\ndef", "helper(x) or 0\ndef"),
    ("privcfs/home.py", "renamed = 4", "renamed = 7"),
    ("privcfs/home.py", "print('runs')", "print('stops')"),
    ("privcfs/late.py", "later = 5", "later = 8"),
    ("privcfs/maker.py", '"one"', '"two"'),
]
DOES_NOT = [
    ("privcfs/tools.py", "return 2", "return 3"),
    ("privcfs/shared.py", "also = 3", "also = 4"),
    ("privcfs/unread.py", "other = 6", "other = 7"),
    ("privcfs/maker.py", "return 1", "return 2"),
    ("privcfs/maker.py", "Makes it.", "Makes it well."),
    ("privcfs/maker.py", "def result():", "# a word\ndef  result( ):"),
]


@pytest.fixture
def stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Stamps `result` of a small project, one text of one file replaced."""

    def maker() -> None: ...

    maker.__module__, maker.__name__ = "privcfs.maker", "result"
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    (tmp_path / "privcfs").mkdir()

    def stamped(file: str = "", old: str = "", new: str = "") -> str:
        for name, text in (FILES | {"privcfs/maker.py": MAKER}).items():
            assert name != file or old in text
            (tmp_path / name).write_text(text.replace(old, new, 1) if name == file else text)
        for cached in CACHES:
            cached.cache_clear()
        return code_digest(maker)

    yield stamped
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.parametrize("change", DECIDES)
def test_a_change_of_what_decides_changes_the_stamp(stamp: Callable[..., str], change: tuple[str, str, str]) -> None:
    assert stamp(*change) != stamp()


@pytest.mark.parametrize("change", DOES_NOT)
def test_a_change_of_anything_else_does_not(stamp: Callable[..., str], change: tuple[str, str, str]) -> None:
    assert stamp(*change) == stamp()


def test_data_beside_a_package_that_is_read_decide() -> None:
    read = deciding(EXPERIMENTS["zero"].run)
    files = {path.name for one in read for path in provenance._source(one.module).data()}
    assert files >= {"cora-edges.npz", "cora-gcn-paper.safetensors"}


def test_services_decide_no_measurement() -> None:
    modules = {one.module for one in deciding(Cell)}
    assert {
        "privcfs.private.evaluators.gcn",
        "privcfs.gate.mechanisms.exponential",
        "privcfs.tables.features",
    } <= modules
    assert not [name for name in modules if name.startswith(("privcfs.service", "privcfs.cli"))]


def what_ran(run: Callable[[], Any]) -> set[Definition]:
    """The top-level definitions of this project whose code runs."""
    codes = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {one for code in codes if (one := _definition(code.co_filename, code.co_firstlineno, code.co_name))}


def _definition(file: str, line: int, name: str) -> Definition | None:
    """What a line of a file belongs to, if that has a name."""
    path = Path(file)
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for statement in ast.parse(path.read_text()).body:
        decorated = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(one.lineno for one in decorated)])
        if first <= line <= (statement.end_lineno or first) and isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return None if name == "<module>" else Definition(module, statement.name)
    return None


WORKS: tuple[Work, ...] = (
    Advised("cora", "sample", 0.5),
    Climbed("cora", "borderline"),
)


@pytest.mark.parametrize("name", ["zero", "losses"])
def test_all_code_that_runs_for_a_page_is_behind_its_stamp(name: str) -> None:
    run = EXPERIMENTS[name].run
    ran = what_ran(lambda: run(Study((0,), 1, None, most=2)))
    assert len(ran) > 50
    assert ran <= deciding(run)
    own = {one for one in deciding(run) if one.module.startswith("privcfs_lab.experiments")}
    assert not ran <= own  # a stamp of the experiments alone is found out


@pytest.mark.parametrize("work", WORKS, ids=lambda work: type(work).__name__)
def test_all_code_that_runs_for_kept_work_is_behind_its_name(work: Work) -> None:
    ran = what_ran(lambda: work.records(Simulation("cora", 0), 1))
    assert len(ran) > 50
    assert ran <= deciding(type(work))


def test_the_list_of_stale_pages_is_right() -> None:
    assert stamps.known_to_be_stale(RESULTS) == list(stamps.stale(RESULTS))


def test_a_page_that_becomes_stale_and_a_fresh_one_on_the_list_are_found_out(tmp_path: Path) -> None:
    code = code_digest(EXPERIMENTS["zero"].run)
    for name, stamp in (("zero", code), ("slice", "another")):
        (tmp_path / f"{name}.json").write_text(json.dumps({"code": stamp, "command": f"privcfs-lab reproduce {name}"}))
    assert stamps.stale(tmp_path) == {"slice": "privcfs-lab reproduce slice"}
    assert stamps.known_to_be_stale(tmp_path) == []
    stamps.record(tmp_path)
    assert stamps.known_to_be_stale(tmp_path) == ["slice"]
    (tmp_path / overview.STALE).write_text("slice\nzero\n")
    assert stamps.known_to_be_stale(tmp_path) != list(stamps.stale(tmp_path))


@pytest.mark.parametrize("name", stamps.MAKERS)
def test_every_page_opens_with_two_sentences_that_its_rows_bear_out(name: str) -> None:
    rows = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    title, opening, table, *_ = (RESULTS / f"{name}.md").read_text().split("\n\n")
    assert title.startswith("# ")
    assert opening == leads.lead(name, rows)
    assert table.startswith("| ")
    assert opening.endswith(".")
    assert opening.count(". ") == 1


def test_stale_pages_are_listed_and_computed_again_and_fresh_ones_are_left_alone(tmp_path: Path) -> None:
    fresh = {"code": code_digest(EXPERIMENTS["zero"].run), "command": "privcfs-lab reproduce zero", "rows": []}
    old = {"code": "another", "command": "privcfs-lab reproduce slice", "rows": []}
    for name, page in (("zero", fresh), ("slice", old), ("bench", old | {"command": "privcfs-lab bench"})):
        (tmp_path / f"{name}.json").write_text(json.dumps(page))
    run = CliRunner()
    listed = run.invoke(app, ["stale", "--pages", str(tmp_path), "--record"])
    assert listed.exit_code == 0
    assert listed.output.splitlines()[:2] == ["slice: privcfs-lab reproduce slice", "bench: privcfs-lab bench"]
    options = ["--write", str(tmp_path), "--keep", str(tmp_path / "kept"), "--workers", "1"]
    done = run.invoke(app, ["reproduce", "stale", *options])
    assert done.exit_code == 0
    assert "bench has a command of its own: privcfs-lab bench" in done.output
    assert stamps.known_to_be_stale(tmp_path) == list(stamps.stale(tmp_path)) == ["bench"]
    assert json.loads((tmp_path / "zero.json").read_text()) == fresh
