"""The notebooks of the documentation run as they stand, and the pages show what they show."""

import json
from pathlib import Path
from typing import Any

import pytest
from tools.notebooks import FOLDER, page, run

NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return found


def kinds(notebook: dict[str, Any]) -> list[list[str]]:
    """Which kinds of output each cell has; what is drawn differs from run to run."""
    return [
        [kind for output in cell.get("outputs", ()) for kind in output.get("data", {"text/plain": None})]
        for cell in notebook["cells"]
    ]


def test_the_notebooks_that_the_documentation_names_are_there() -> None:
    assert {"first-answer", "owners-afternoon", "advice-for-a-loan", "population"} <= set(NAMES)
    nav = Path("mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"notebooks/{name}.md" in nav for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_is_committed(name: str) -> None:
    committed = read(name)
    assert kinds(run(committed)) == kinds(committed)
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == page(committed, name)
    assert any("text/html" in one or "image/svg+xml" in one for one in kinds(committed)), "answers show themselves"
