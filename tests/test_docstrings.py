"""Everything that `privcfs` exports documents each parameter with its default, what it returns and what it raises."""

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import pytest

import privcfs
from privcfs.errors import InputError, error_named

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$", re.MULTILINE)


def exported() -> Iterator[tuple[str, Any]]:
    """Exported functions, classes and their public methods; errors and enumerations have nothing to be called with."""
    for name in privcfs.__all__:
        item = getattr(privcfs, name)
        if not inspect.isclass(item):
            yield name, item
        elif not issubclass(item, Exception | Enum):
            yield name, item
            for key, member in vars(item).items():
                plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                if inspect.isfunction(plain) and not key.startswith("_"):
                    yield f"{name}.{key}", plain


def words_about(item: Any) -> str:
    """A class is called as its `__init__` says; the words about its parameters may stand in either place."""
    parts = [inspect.getdoc(item) or ""]
    if inspect.isclass(item) and "__init__" in vars(item):
        parts.append(inspect.getdoc(item.__init__) or "")
    return "\n".join(parts)


def parameters_of(item: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(item).parameters)
    return {name: one for name, one in found.items() if name not in ("self", "cls")}


def raises(item: Any) -> bool:
    """Whether the code of a function, or of what a class runs when it is made, has a raise statement of its own."""
    made_by = [vars(item)[name] for name in ("__init__", "__post_init__") if name in vars(item)]
    parts = [one for one in made_by if inspect.isfunction(one)] if inspect.isclass(item) else [item]
    return any(re.search(r"^\s+raise ", inspect.getsource(one), re.MULTILINE) for one in parts if owned(one))


def owned(function: Any) -> bool:
    """Whether there is source code: what `dataclass` generates has none."""
    return not function.__code__.co_filename.startswith("<")


def faults(item: Any) -> list[str]:
    """What the words about something exported leave out."""
    text = words_about(item)
    if not text:
        return ["no docstring"]
    sections = dict(zip(*[iter(SECTION.split(text)[1:])] * 2, strict=True))
    found = []
    for name, parameter in parameters_of(item).items():
        explained = sections.get("Args", "") + sections.get("Attributes", "")
        line = re.search(rf"^\s+{name}: (.+(?:\n\s{{8,}}.+)*)", explained, re.MULTILINE)
        if line is None:
            found.append(f"parameter {name} is not explained")
        elif parameter.default is not inspect.Parameter.empty and not re.search(r"[Dd]efault", line[1]):
            found.append(f"the default of {name} is not said")
    returned = inspect.signature(item).return_annotation if inspect.isfunction(item) else None
    if returned not in (None, "None") and "Returns" not in sections and parameters_of(item):
        found.append("what it returns is not said")
    if raises(item) and "Raises" not in sections:
        found.append("what it raises is not said")
    named = re.findall(r"^    (\w+):", sections.get("Raises", ""), re.MULTILINE)
    return found + [f"{name} is no error of privcfs" for name in named if error_named(name).__name__ != name]


@pytest.mark.parametrize(("name", "item"), list(exported()), ids=[name for name, _ in exported()])
def test_what_is_exported_is_documented(name: str, item: Any) -> None:
    assert not faults(item), name


def test_the_check_sees_what_is_left_out() -> None:
    def twin(target: int, epsilon: str = "1") -> int:
        """Does something.

        Args:
            epsilon: The price.
        """
        if target < 0:
            raise InputError("target is negative; give a node number.")
        return target + len(epsilon)

    assert faults(twin) == [
        "parameter target is not explained",
        "the default of epsilon is not said",
        "what it returns is not said",
        "what it raises is not said",
    ]


def test_the_check_sees_errors_that_do_not_exist() -> None:
    def twin(target: int) -> None:
        """Does something.

        Args:
            target: The node.

        Raises:
            NodeError: There is no such node.
        """

    assert faults(twin) == ["NodeError is no error of privcfs"]
