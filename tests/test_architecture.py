"""The direction of imports is the privacy policy; headers name their tests; trusted code is silent and exact."""

import ast
import re
from pathlib import Path

import pytest

import privcfs
from privcfs import errors

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/privcfs"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES, MOST_BRANCHES = 35, 10  # of a function in trusted code
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.ExceptHandler, ast.BoolOp, ast.comprehension)
TRUSTED = [path for path in FILES if path.relative_to(SOURCE).parts[0] in ("private", "gate", "owner")]
LAYERS = {
    "errors.py": set(),
    "forks.py": set(),
    "tables": {"errors", "tables"},
    "public": {"errors", "tables", "public"},
    "private": {"errors", "forks", "tables", "public", "private"},
    "gate": {"errors", "forks", "tables", "public", "private", "gate"},
    "owner": {"errors", "tables", "public", "private", "gate", "owner"},
    "embedded": {"errors", "tables", "public", "private", "embedded"},
    "pyg.py": {"errors", "public", "gate"},
    "service": {"errors", "public", "gate", "owner", "service"},
    "fleet": {"errors", "public", "gate", "owner", "fleet"},
    "client.py": {"errors", "public"},
    "cli": {"errors", "tables", "public", "private", "gate", "owner", "embedded", "fleet", "service", "cli"},
}


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imported(path: Path) -> set[str]:
    """Which parts of the package a file imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: imports are absolute"
            modules = [node.module or ""]
        found |= {module.split(".")[1] for module in modules if module.startswith("privcfs.")}
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path != SOURCE / "__init__.py"],
    ids=name,
)
def test_imports_follow_the_privacy_policy(path: Path) -> None:
    zone = path.relative_to(SOURCE).parts[0]
    assert imported(path) <= LAYERS[zone]


def test_the_policy_rejects_a_file_that_breaks_it(tmp_path: Path) -> None:
    twin = tmp_path / "peek.py"
    twin.write_text("def peek():\n    from privcfs.private.graph import PrivateGraph\n")
    assert not imported(twin) <= LAYERS["public"]


def modules(path: Path) -> set[str]:
    """Everything that a file imports, by its full name."""
    tree = ast.walk(ast.parse(path.read_text()))
    found = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    tree = ast.walk(ast.parse(path.read_text()))
    return found | {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}


def uses_the_laboratory(path: Path) -> bool:
    return any(module.split(".")[0] == "privcfs_lab" for module in modules(path))


def test_nothing_but_the_laboratory_and_its_tests_imports_the_laboratory() -> None:
    assert not [name(path) for path in FILES if uses_the_laboratory(path)]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    outside = [path for path in tests if path.relative_to(ROOT / "tests").parts[0] != "lab"]
    assert not [str(path.relative_to(ROOT)) for path in outside if uses_the_laboratory(path)]


def test_the_check_sees_a_file_that_imports_the_laboratory(tmp_path: Path) -> None:
    twin = tmp_path / "twin.py"
    twin.write_text("from privcfs_lab.audit import checks\n")
    assert uses_the_laboratory(twin)


def test_every_file_has_a_zone() -> None:
    assert {path.relative_to(SOURCE).parts[0] for path in FILES} == {*LAYERS, "__init__.py"}


@pytest.mark.parametrize("path", TRUSTED, ids=name)
def test_trusted_code_neither_prints_nor_logs(path: Path) -> None:
    tree = ast.parse(path.read_text())
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & {"print", "input", "open", "exec", "eval"}
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not modules & {"logging", "pickle", "random", "sys"}


HEADER = re.compile(r"Zone: (private|gate|owner)\nClaim: .+?\nWhy: .+?\nCheck: (tests/\S+\.py)::(test_\w+)", re.DOTALL)


@pytest.mark.parametrize(
    "path",
    [path for path in TRUSTED if path.name != "__init__.py" or path.parent.name != path.relative_to(SOURCE).parts[0]],
    ids=name,
)
def test_every_claim_names_a_test_that_exists(path: Path) -> None:
    header = ast.get_docstring(ast.parse(path.read_text())) or ""
    match = HEADER.search(header)
    assert match, "a trusted file says Zone, Claim, Why and Check"
    assert match[1] == path.relative_to(SOURCE).parts[0]
    assert f"def {match[3]}(" in (ROOT / match[2]).read_text()


def draw_sources() -> dict[str, str]:
    """The files that a draw runs through."""
    files = [*(SOURCE / "gate/mechanisms").glob("*.py"), SOURCE / "gate/randomness.py", SOURCE / "public/grid.py"]
    return {path.name: path.read_text() for path in files}


def draw_functions(sources: dict[str, str]) -> list[ast.FunctionDef]:
    """Every function that a draw may run: each `draw`, and whatever these mention by name, directly or indirectly."""
    nodes = [node for source in sources.values() for node in ast.walk(ast.parse(source))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    mentioned, before = {"draw"}, set[str]()
    while mentioned != before:
        before = set(mentioned)
        for function in (one for one in functions if one.name in before):
            for node in ast.walk(function):
                if isinstance(node, ast.Name | ast.Attribute):
                    mentioned.add(node.id if isinstance(node, ast.Name) else node.attr)
    return [function for function in functions if function.name in mentioned]


def floats_in(function: ast.AST) -> list[str]:
    """Float literals, true divisions of plain numbers and calls that make floats."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            found.append(f"literal {node.value}")
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in {"float", "exp", "log", "tanh"} or re.search(r"(math|np)\.(exp|log|float\d+|divide)", called):
                found.append(called)
    return found


def test_no_float_stands_in_the_probability_path() -> None:
    functions = draw_functions(draw_sources())
    names = {function.name for function in functions}
    assert names >= {
        "draw",
        "_toss",
        "decay",
        "spread",
        "level_weights",
        "_line",
        "_point",
        "lowest_density",
        "integer",
    }
    assert not names & {"probabilities", "auc", "renyi"}, "what is only reported may use floats"
    assert [floats_in(function) for function in functions] == [[]] * len(functions)


def test_a_float_anywhere_in_a_draw_is_found() -> None:
    sources = draw_sources()
    before = "        front, low = self._front(length), lowest_density(epsilon)\n"
    assert before in sources["rank_profile.py"]
    sources["rank_profile.py"] = sources["rank_profile.py"].replace(before, f"{before}        low = low * 1.0\n")
    assert any(floats_in(function) for function in draw_functions(sources))
    assert floats_in(ast.parse("np.exp(score)")), "the check sees a softmax"


def test_scores_are_unsealed_only_where_they_must_be() -> None:
    allowed = {"private", "gate"}
    users = {name(path) for path in FILES if ".unseal()" in path.read_text()}
    assert {Path(user).parts[0] for user in users} <= allowed
    gate = {user for user in users if user.startswith("gate")}
    assert all(user.startswith("gate/mechanisms/") for user in gate)


def test_the_error_tree_in_the_header_is_the_real_one() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"PrivcfsError"}
    real = {key for key, value in vars(errors).items() if isinstance(value, type)}
    assert drawn == real
    for key in real:
        kind = getattr(errors, key)
        assert issubclass(kind, errors.PrivcfsError)
        assert 400 <= kind.status < 600
        assert 0 < kind.exit_code < 64


def test_the_public_names_are_the_documented_ones() -> None:
    assert all(hasattr(privcfs, item) for item in privcfs.__all__)
    assert len(set(privcfs.__all__)) == len(privcfs.__all__)
    readme = (ROOT / "README.md").read_text()
    for item in ("PrivateGraph.from_csv", "PublicContext", "load_model", "Vault", "release"):
        assert item in readme


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert not {path.stem for path in FILES} & {"utils", "util", "helpers", "common", "base", "core", "manager", "misc"}


def size(function: ast.AST) -> tuple[int, int]:
    """Lines of code below the docstring, and places where the flow branches or repeats."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
    return lines, sum(isinstance(node, BRANCHES) for node in ast.walk(function))


@pytest.mark.parametrize("path", TRUSTED, ids=name)
def test_functions_of_trusted_code_are_short_and_branch_little(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines, branches = size(node)
            assert lines <= MOST_LINES, f"{node.name} has {lines} lines; give its steps names"
            assert branches <= MOST_BRANCHES, f"{node.name} branches {branches} times; give its cases names"


def test_the_bounds_on_functions_see_long_and_branching_ones() -> None:
    long = "def long():\n" + "    step()\n" * (MOST_LINES + 1)
    branching = "def branching():\n" + "    step() if a else [b for b in c if d and e]\n" * MOST_BRANCHES
    assert size(ast.parse(long).body[0])[0] > MOST_LINES
    assert size(ast.parse(branching).body[0])[1] > MOST_BRANCHES
