"""Which source code decides a result: every definition that can be reached, by name, from the one that computes it.

A stamp names that code. Comments, docstrings and layout do not count, nor do definitions beside those that are reached,
so a stamp changes when a result may change, and a test can compare it without computing anything again.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

SOURCE = Path(__file__).parents[2]
PACKAGES = ("privcfs", "privcfs_lab")
DATA = (".npz", ".safetensors", ".json")  # a package's own data files decide, too
RUNS = ""  # stands for the statements of a module that bind no name, which an import runs


class Definition(NamedTuple):
    """A name that a module binds at its top level."""

    module: str
    name: str


@cache
def code_digest(maker: Callable[..., Any]) -> str:
    """Names the code and the embedded data behind a function or class of this project; twelve hex digits."""
    whole = hashlib.sha256()
    reached = deciding(maker)
    for one in sorted(reached):
        whole.update("\0".join((*one, *map(_digest, _source(one.module).binds[one.name]))).encode())
    for path in sorted({path for one in reached for path in _source(one.module).data()}):
        whole.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()[:12]


def deciding(maker: Callable[..., Any]) -> frozenset[Definition]:
    """The definition of a function or class, and all that it mentions, directly or indirectly."""
    found: set[Definition] = set()
    waiting = [Definition(maker.__module__, maker.__name__)]
    while waiting:
        for one in _places(waiting.pop()):
            for reached in (one, Definition(one.module, RUNS)):
                if reached not in found:
                    found.add(reached)
                    waiting += _mentioned(reached)
    return frozenset(found)


@final
@dataclass(frozen=True, eq=False)
class _Source:
    """One file: the statements behind each name, and what its imports bind names to."""

    path: Path
    binds: Mapping[str, list[ast.stmt]]
    imports: Mapping[str, Definition]

    def data(self) -> list[Path]:
        """What a package has beside its code."""
        beside = self.path.parent.iterdir() if self.path.name == "__init__.py" else ()
        return [path for path in beside if path.suffix in DATA]


@cache
def _source(module: str) -> _Source:
    path = _file(module)
    assert path is not None
    binds: dict[str, list[ast.stmt]] = {RUNS: []}
    imports: dict[str, Definition] = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        brought = {name: origin for node in ast.walk(statement) for name, origin in _imported(node)}
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            binds.setdefault(statement.name, []).append(statement)
            continue
        imports |= brought
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _stored(node)}
        names |= {node.name for node in ast.walk(statement) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for name in names:
            binds.setdefault(name, []).append(statement)
        if not names and not brought and not _is_text(statement):
            binds[RUNS].append(statement)
    return _Source(path, binds, imports)


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_text(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@cache
def _file(module: str) -> Path | None:
    """Where a module of this project is; none for other libraries, and for a name that is no module."""
    if module.split(".")[0] not in PACKAGES:
        return None
    place = SOURCE / module.replace(".", "/")
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _imported(node: ast.AST) -> Iterator[tuple[str, Definition]]:
    """What an import statement binds, and to what; a module is a definition without a name."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            yield bound, Definition(alias.name if alias.asname else bound, RUNS)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            yield alias.asname or alias.name, Definition(node.module, alias.name)


def _places(wanted: Definition) -> list[Definition]:
    """Where a name is really defined: imports are followed; a module that is used as a whole is all of its names."""
    if _file(f"{wanted.module}.{wanted.name}"):
        wanted = Definition(f"{wanted.module}.{wanted.name}", RUNS)
    if _file(wanted.module) is None:
        return []
    source = _source(wanted.module)
    if wanted.name == RUNS:
        return [Definition(wanted.module, name) for name in source.binds]
    if wanted.name in source.binds:
        return [wanted]
    return _places(source.imports[wanted.name]) if wanted.name in source.imports else []


@cache
def _mentioned(one: Definition) -> tuple[Definition, ...]:
    """The names of this project in the statements behind a definition."""
    source, found = _source(one.module), set()
    for statement in source.binds[one.name]:
        known = dict(source.imports) | {
            name: origin for node in ast.walk(statement) for name, origin in _imported(node)
        }
        qualified = {node.value: node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
        for node in ast.walk(statement):
            if not isinstance(node, ast.Name):
                continue
            origin = known.get(node.id, Definition(one.module, node.id))
            module = origin.module if origin.name == RUNS else f"{origin.module}.{origin.name}"
            of_module = _file(module) is not None and node in qualified
            found.add(Definition(module, qualified[node]) if of_module else origin)
    return tuple(found)


@cache
def _digest(statement: ast.stmt) -> str:
    return hashlib.sha256(repr(_shape(statement)).encode()).hexdigest()


def _shape(node: object) -> object:
    """A statement without its places, comments and docstrings, the same under every version of Python."""
    if isinstance(node, list):
        return [_shape(one) for one in node if not _is_text(one)]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, _shape(value)) for name, value in ast.iter_fields(node) if value not in (None, []))
    return [type(node).__name__, *((name, value) for name, value in fields if name != "ctx")]
