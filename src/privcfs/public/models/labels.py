"""Public labels from a file, for training a public model, and which of them are held out to test it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import ContextError, InputError
from privcfs.tables.names import Nodes
from privcfs.tables.parsing import csv_rows, is_number, shown

Numbers = NDArray[np.int64]
MOST_CLASSES = 10_000
HELD_OUT = 5  # one of so many labelled nodes
NODE_WORDS = {"node", "node_id", "id", "name"}
CLASS_WORDS = {"class", "label", "y"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The classes of some nodes: node numbers in ascending order, their class numbers, and what the classes are called.

    `names` has the name of class 0, of class 1 and so on; where classes are numbers, the name is the number.
    """

    nodes: Numbers
    classes: Numbers
    names: tuple[str, ...]

    def held_out(self, seed: int) -> NDArray[np.bool_]:
        """Which labelled nodes test a model that is trained without their labels: a fifth, at random.

        Classes are represented in proportion, as far as whole nodes allow; one node of each class always stays.
        """
        rng = np.random.default_rng(seed)
        share = np.empty(len(self.nodes))
        for one in np.unique(self.classes):
            members = rng.permutation(np.flatnonzero(self.classes == one))
            share[members] = (np.arange(len(members)) + rng.random()) / len(members)
            share[members[-1]] = np.inf
        wanted = np.argsort(share, kind="stable")[: len(self.nodes) // HELD_OUT]
        held = np.zeros(len(self.nodes), np.bool_)
        held[wanted] = np.isfinite(share[wanted])
        return held


def read_labels(path: Path, nodes: Nodes, order: Sequence[str] = ()) -> Labels:
    """Labels from rows node,class (by number, or by name where nodes have names) or from one class per line, in order.

    Classes that are whole numbers keep them. Others are numbered as in `order`, or alphabetically without one.
    """
    rows = list(csv_rows(path, "labels", ContextError))
    while rows and not rows[-1][1]:
        rows.pop()
    width = next((len(cells) for _, cells in rows if cells), 0)
    if width not in (1, 2):
        _refuse(f"has {width} columns", "write rows node,class, or one class per node in node order")
    read = _by_node if width == 2 else _in_order
    found = read(rows, nodes)
    if not found:
        _refuse("names no node", "write rows node,class, or one class per node in node order")
    names, numbers = _numbered(list(found.values()), order)
    listed = sorted(found)
    classes = np.array([numbers[found[node]] for node in listed], np.int64)
    if len(np.unique(classes)) < 2:
        _refuse(f"has one class only, {shown(names[int(classes[0])])}", "a model needs labels of two classes or more")
    return Labels(np.array(listed, np.int64), classes, names)


def _by_node(rows: list[tuple[int, list[str]]], nodes: Nodes) -> dict[int, str]:
    """Rows node,class."""
    found: dict[int, str] = {}
    rows = [(line, cells) for line, cells in rows if cells]
    if len(rows[0][1]) == 2 and _is_header(rows[0][1], nodes):
        rows = rows[1:]
    for line, cells in rows:
        if len(cells) != 2:
            _refuse(f"line {line} has {len(cells)} columns", "write node,class in every row")
        node, name = _node(line, cells[0], nodes), _class(line, cells[1])
        if found.setdefault(node, name) != name:
            said = f"line {line} gives node {nodes.show(node)} the class {shown(name)}"
            _refuse(f"{said}, but an earlier line {shown(found[node])}", "keep one of them")
    return found


def _in_order(rows: list[tuple[int, list[str]]], nodes: Nodes) -> dict[int, str]:
    """One class per line, for every node."""
    if rows[0][1] and rows[0][1][0].lower() in CLASS_WORDS:
        rows = rows[1:]
    for line, cells in rows:
        if len(cells) > 1:
            _refuse(f"line {line} has {len(cells)} columns", "write one class per line, or node,class in every row")
    classes = [_class(line, "".join(cells)) for line, cells in rows]
    if len(classes) != nodes.count:
        _refuse(
            f"has one column and {len(classes)} rows, but there are {nodes.count} nodes",
            "give every node a class, in node order, or write rows node,class",
        )
    return dict(enumerate(classes))


def _is_header(cells: list[str], nodes: Nodes) -> bool:
    """Whether a first row names its columns; a row about a node of that very name does not."""
    words = cells[0].lower() in NODE_WORDS and cells[1].lower() in CLASS_WORDS
    return words and cells[0] not in (nodes.numbers or {})


def _node(line: int, text: str, nodes: Nodes) -> int:
    try:
        number = nodes.number(text)
    except KeyError:
        number = -1
    if not 0 <= number < nodes.count:
        known = "names of node_ids" if nodes.numbers else f"numbers from 0 to {nodes.count - 1}"
        _refuse(f"line {line} names an unknown node {shown(text)}", f"use {known}; a header must read node,class")
    return number


def _class(line: int, text: str) -> str:
    if not text:
        _refuse(f"line {line} has an empty cell in the place of a class", "write a class, or leave out the whole row")
    if not text.isprintable():
        _refuse(f"line {line} has the unprintable class {shown(text)}", "give every class a plain name")
    return text


def _numbered(found: Sequence[str], order: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """The name of class 0, of class 1 and so on; and the number of each class as it is written in the file."""
    if not order and all(map(is_number, found)):
        return _whole_numbers(found)
    if len(set(order)) < len(order) or not all(name and name.isprintable() for name in order):
        raise InputError("classes must be different names with commas between them, such as: --classes low,high.")
    unlisted = sorted(set(found) - set(order)) if order else []
    if unlisted:
        _refuse(f"has the class {shown(unlisted[0])}, which --classes lacks", "list every class there")
    names = tuple(order or sorted(set(found)))
    return names, {name: number for number, name in enumerate(names)}


def _whole_numbers(found: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Classes that are numbers, as tables write them: 1, 01 and 1.0 are class 1."""
    numbers = {text: float(text) for text in found}
    for text, number in numbers.items():
        if not number.is_integer() or not 0 <= number < MOST_CLASSES:
            what = f"has the class {shown(text)}, which is no whole number from 0 to {MOST_CLASSES - 1}"
            _refuse(what, "number the classes from 0, or list them in order with --classes")
    names = tuple(str(number) for number in range(int(max(numbers.values())) + 1))
    return names, {text: int(number) for text, number in numbers.items()}


def _refuse(what: str, remedy: str) -> NoReturn:
    raise ContextError(f"labels {what}; {remedy}.")
