"""A fork takes the locks in the order of a release, and each side gives them back."""

import ast
from pathlib import Path

import pytest

from privcfs import forks
from privcfs.forks import Order, at_fork

SOURCE = Path(forks.__file__).parent


def hooks_of_their_own(files: list[Path]) -> set[str]:
    """Files that hook into a fork without `at_fork`."""
    return {
        path.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "register_at_fork"
    }


def test_handlers_run_in_the_stated_order_and_backwards_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "HANDLERS", [])
    seen: list[str] = []
    for order in reversed(Order):
        at_fork(
            order,
            before=lambda name=order.name: seen.append(f"take {name}"),  # type: ignore[misc]
            in_parent=lambda name=order.name: seen.append(f"give {name}"),  # type: ignore[misc]
        )
    forks._before()
    forks._in_parent()
    forks._in_child()
    names = [order.name for order in Order]
    assert seen == [*(f"take {name}" for name in names), *(f"give {name}" for name in reversed(names))]


def test_handlers_of_one_place_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's connections are closed under the lock of connections, which is registered first."""
    monkeypatch.setattr(forks, "HANDLERS", [])
    seen: list[int] = []
    for number in range(3):
        at_fork(Order.CONNECTIONS, before=lambda number=number: seen.append(number))  # type: ignore[misc]
    forks._before()
    assert seen == [0, 1, 2]


def test_every_part_of_the_program_is_in_the_order() -> None:
    import privcfs.gate.ledger.postgres
    import privcfs.gate.vault  # noqa: F401

    assert {one.order for one in forks.HANDLERS} == set(Order)


def test_nothing_else_hooks_into_a_fork(tmp_path: Path) -> None:
    assert hooks_of_their_own(sorted(SOURCE.rglob("*.py"))) == {"forks.py"}
    twin = tmp_path / "twin.py"
    twin.write_text("import os\nos.register_at_fork(before=print)\n")
    assert hooks_of_their_own([twin]) == {"twin.py"}
