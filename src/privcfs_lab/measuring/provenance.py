"""Which source code decides a result: the module that computes it, and everything that it imports from this project."""

import ast
import hashlib
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PACKAGES = ("privcfs", "privcfs_lab")
DATA = (".npz", ".safetensors")  # a package's own data files decide, too


@cache
def code_digest(module: str) -> str:
    """Names the code and embedded data behind a module such as `privcfs_lab.measuring.study`; twelve hex digits."""
    whole = hashlib.sha256()
    for path in sorted(deciding_files(module)):
        whole.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()[:12]


def deciding_files(module: str) -> set[Path]:
    """The files of a module, of all that it imports, directly or indirectly, and of the data beside them."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file(waiting.pop())
        if path is None or path in found:
            continue
        found.add(path)
        if path.name == "__init__.py":
            found.update(one for one in path.parent.iterdir() if one.suffix in DATA)
        waiting += _imports(path)
    return found


def _file(module: str) -> Path | None:
    """Where a module of this project is; none for other libraries, and for a name that is no module."""
    if module.split(".")[0] not in PACKAGES:
        return None
    place = SOURCE / module.replace(".", "/")
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _imports(path: Path) -> list[str]:
    """What a file imports; `from package import name` may name a module or something inside one."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found
