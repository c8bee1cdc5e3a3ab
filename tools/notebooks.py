"""Runs the notebooks of the documentation and writes them with their outputs, as notebooks and as pages.

python -m tools.notebooks          every notebook in docs/notebooks
python -m tools.notebooks NAME     one of them

A notebook is run cell by cell in one namespace and in an empty folder of its own, without Jupyter.
"""

import ast
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs/notebooks"
SHOWN = (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_"))
Cell = dict[str, Any]


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The same notebook with the outputs of its cells; an error in a cell is raised."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        cells = [_run_cell(cell, number, namespace) for number, cell in enumerate(notebook["cells"], 1)]
    return {**notebook, "cells": cells}


def page(notebook: dict[str, Any], name: str) -> str:
    """A notebook as a page in Markdown."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_shown(one) for one in cell.get("outputs", ())]
    parts.append(
        f"Written by `python -m tools.notebooks {name}` from [the notebook]({name}.ipynb), which the tests run."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _run_cell(cell: Cell, number: int, namespace: dict[str, Any]) -> Cell:
    if cell["cell_type"] != "code":
        return cell
    tree = ast.parse("".join(cell["source"]), f"cell {number}")
    last = tree.body[-1] if tree.body else None
    value, printed = None, io.StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(tree.body[:-1], []), f"cell {number}", "exec"), namespace)
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
        else:
            exec(compile(tree, f"cell {number}", "exec"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append(_output(value, number))
    return {**cell, "execution_count": number, "outputs": outputs}


def _output(value: Any, number: int) -> dict[str, Any]:
    data = {"text/plain": _lines(repr(value))}
    for kind, method in SHOWN:
        if hasattr(type(value), method):
            data[kind] = _lines(getattr(value, method)())
    return {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}}


def _shown(output: dict[str, Any]) -> str:
    """An output in Markdown: a picture or a table where there is one, text otherwise."""
    data = output.get("data", {})
    for kind, _ in SHOWN:
        if kind in data:
            return "<div>" + "".join(data[kind]).replace("\n", "") + "</div>"
    text = "".join(output.get("text", data.get("text/plain", [])))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main(names: list[str]) -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        done = run(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(page(done, path.stem), encoding="utf-8")
        print(path.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
