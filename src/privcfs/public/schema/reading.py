"""Schemas from files and dictionaries; every mistake is refused with its place and what to do."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from privcfs.errors import ContextError
from privcfs.public.schema.amounts import amount, whole
from privcfs.public.schema.category import FLAG, Category
from privcfs.public.schema.feature import Feature, Freedom
from privcfs.public.schema.fixed import Fixed
from privcfs.public.schema.number import Number
from privcfs.public.schema.place import Place
from privcfs.public.schema.rules import MOVES, Rule, Sum, Together
from privcfs.public.schema.schema import Schema
from privcfs.tables.parsing import read_text, shown

Table = Mapping[str, Any]
MOST_FEATURES, MOST_LEVELS, MOST_COST = 100_000, 10_000, 1000
DIRECTIONS = {"any": 0, "up": 1, "down": -1}
FREEDOM = {"change", "direction", "largest_change", "cost", "cost_per_step"}
SCALING = {"scale", "offset"}
KEYS = {
    "number": {"column", "unit", "low", "high", "step"} | SCALING | FREEDOM,
    "flag": {"column"} | SCALING | FREEDOM,
    "category": {"options", "transitions"} | SCALING | FREEDOM,
    "fixed": {"column", "unit"},
    "derived": {"column", "unit"},
}
CONDITION, CONSEQUENCE = re.compile(r"if_(\w+)s"), re.compile(r"(may_not|must)_(\w+)")


def read_schema(source: str | Path | Table, columns: Sequence[str] = ()) -> Schema:
    """A schema from a TOML file or from dictionaries; `columns` names the columns of the feature table."""
    if isinstance(source, Mapping):
        return _schema(source, columns, Place("schema"))
    return schema_from_text(read_text(Path(source), "schema", ContextError), Path(source).name, columns)


def schema_from_text(text: str, source: str, columns: Sequence[str] = ()) -> Schema:
    """A schema from the text of a TOML file; errors call it `source`."""
    place = Place(source)
    try:
        tables = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place.refuse(f"is not a TOML file ({error})", "docs/recourse.md has an example")
    return _schema(tables, columns, place)


def _schema(tables: Table, columns: Sequence[str], place: Place) -> Schema:
    if unknown := set(tables) - {"columns", "features", "rules"}:
        place.refuse(f"unknown table {shown(min(unknown))}", "there are columns, features and rules")
    features, rules = tables.get("features", {}), tables.get("rules", [])
    if not isinstance(features, Mapping) or not features or len(features) > MOST_FEATURES:
        place.refuse("names no features", "write a table [features.NAME] for each")
    if not isinstance(rules, list) or not all(isinstance(one, Mapping) for one in rules):
        place.refuse("rules is not a list of tables", "write [[rules]] above each rule")
    table = _Columns.of(tables.get("columns"), columns, place)
    found = tuple(_feature(str(name), fields, table, place) for name, fields in features.items())
    _refuse_shared_columns(found, table, place)
    by_name = {one.name: one for one in found}
    checked = tuple(_rule(fields, by_name, place, number) for number, fields in enumerate(rules, 1))
    _refuse_contradictions(checked, place)
    return Schema(found, checked, place.source)


@final
@dataclass(frozen=True, slots=True)
class _Columns:
    """What the columns of the feature table are called; empty where they have numbers alone."""

    numbers: Mapping[str, int]

    @classmethod
    def of(cls, listed: object, given: Sequence[str], place: Place) -> "_Columns":
        if listed is not None and not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
            place.refuse("columns is not a list of names", "list the columns of the feature table in order")
        names = list(given) or listed or []
        if listed is not None and given and list(given) != listed:
            place.refuse("columns differs from the header of the feature table", "drop columns, or match them")
        if len(set(names)) < len(names):
            twice = next(name for number, name in enumerate(names) if name in names[:number])
            place.refuse(f"the feature table has two columns {shown(twice)}", "give every column a name of its own")
        return cls({name: number for number, name in enumerate(names)})

    def number(self, column: object, place: Place) -> int:
        """The position of a column, which is given by name or by number."""
        if isinstance(column, int) and not isinstance(column, bool) and column >= 0:
            if self.numbers and column >= len(self.numbers):
                place.refuse(f"column {column} does not exist", f"give a number below {len(self.numbers)}")
            return column
        if isinstance(column, str) and column in self.numbers:
            return self.numbers[column]
        if not self.numbers:
            place.refuse(
                f"column {shown(str(column))} is a name, and nothing says which column of the model's input that is",
                "list them as columns = [...] at the top, or give the column's number, counted from 0",
            )
        return place.refuse(f"column {shown(str(column))} does not exist", "name a column of the feature table")


def _feature(name: str, fields: object, columns: _Columns, place: Place) -> Feature:
    place.checked_name(name, "the name of a feature")
    here = place.feature(name)
    if not isinstance(fields, Mapping):
        here.refuse("is not a table", f'write [features."{name}"] above its keys')
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        here.refuse(f"kind is {shown(str(kind))}", f"choose one of {', '.join(KINDS)}")
    if unknown := set(fields) - KEYS[kind] - {"kind"}:
        here.refuse(f"unknown key {shown(min(unknown))}", f"a {kind} has {', '.join(sorted(KEYS[kind]))}")
    return KINDS[kind](name, fields, columns, here)


def _number(name: str, fields: Table, columns: _Columns, here: Place) -> Feature:
    for key in ("low", "high", "step"):
        if key not in fields:
            here.refuse(f"{key} is missing", "a number needs low, high and step")
    low, high, step = (amount(fields[key], key, here) for key in ("low", "high", "step"))
    if step <= 0:
        here.refuse(f"step is {fields['step']}", "write a number above 0")
    if low >= high:
        here.refuse(f"low is {fields['low']}, and high is {fields['high']}", "low must be less than high")
    if (high - low) / step > MOST_LEVELS:
        here.refuse(f"there are more than {MOST_LEVELS} steps from low to high", "write a larger step")
    scale, offset = _scaling(fields, 1, here)
    column = columns.number(fields.get("column", name), here)
    return Number(name, (column,), low, high, step, scale[0], offset[0], _unit(fields, here), _freedom(fields, here))


def _flag(name: str, fields: Table, columns: _Columns, here: Place) -> Feature:
    scales, offsets = _scaling(fields, 1, here)
    column = columns.number(fields.get("column", name), here)
    return Category(name, (column,), FLAG, ((False,), (True,)), scales, offsets, None, _freedom(fields, here))


def _category(name: str, fields: Table, columns: _Columns, here: Place) -> Feature:
    options = fields.get("options")
    if not isinstance(options, Mapping) or len(options) < 2:
        here.refuse("has fewer than two options", 'write options = { "one" = "its column", "another" = "its column" }')
    named = [here.checked_name(option, "the name of an option") for option in options]
    switched = [_switched(option, options[option], columns, here) for option in named]
    every = tuple(sorted({column for one in switched for column in one}))
    if not every:
        here.refuse("no option has a column", "name the columns that each option switches on")
    patterns = tuple(tuple(column in one for column in every) for one in switched)
    for number, pattern in enumerate(patterns):
        if pattern in patterns[:number]:
            other = named[patterns.index(pattern)]
            what = f"options {shown(other)} and {shown(named[number])} switch on the same columns"
            here.refuse(what, "give every option columns of its own")
    scales, offsets = _scaling(fields, len(every), here)
    transitions = _transitions(fields.get("transitions"), named, here)
    return Category(name, every, tuple(named), patterns, scales, offsets, transitions, _freedom(fields, here))


def _switched(option: str, columns: object, table: _Columns, here: Place) -> frozenset[int]:
    """The columns that an option switches on: one, several of a cumulative code, or an explicit empty list."""
    listed = columns if isinstance(columns, list) else [columns]
    numbers = [table.number(one, here) for one in listed]
    if len(set(numbers)) < len(numbers):
        here.refuse(f"option {shown(option)} names a column twice", "name each column once")
    return frozenset(numbers)


def _transitions(table: object, options: list[str], here: Place) -> tuple[tuple[int, ...], ...] | None:
    if table is None:
        return None
    if not isinstance(table, Mapping) or not all(isinstance(one, list) for one in table.values()):
        here.refuse("transitions is not a table of lists", 'write transitions = { "one" = ["another"] }')
    for option in [*table, *(one for reached in table.values() for one in reached)]:
        if option not in options:
            here.refuse(f"transitions name {shown(str(option))}", f"choose among {', '.join(options)}")
    return tuple(tuple(sorted({options.index(one) for one in table.get(option, [])})) for option in options)


def _fixed(name: str, fields: Table, columns: _Columns, here: Place) -> Feature:
    column = columns.number(fields.get("column", name), here)
    return Fixed(name, (column,), str(fields["kind"]), _unit(fields, here))


KINDS: Mapping[str, Callable[[str, Table, _Columns, Place], Feature]] = {
    "number": _number,
    "flag": _flag,
    "category": _category,
    "fixed": _fixed,
    "derived": _fixed,
}


def _unit(fields: Table, here: Place) -> str:
    return here.checked_name(fields["unit"], "the unit") if "unit" in fields else ""


def _scaling(fields: Table, count: int, here: Place) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Scales and offsets, one for each column; a single number serves all columns."""
    found = []
    for key, default in (("scale", 1), ("offset", 0)):
        given = fields.get(key, default)
        listed = given if isinstance(given, list) else [given] * count
        if len(listed) != count:
            here.refuse(f"{key} has {len(listed)} numbers for {count} columns", "write one, or one for each column")
        found.append(tuple(amount(one, key, here) for one in listed))
    if any(scale <= 0 for scale in found[0]):
        here.refuse(f"scale is {fields.get('scale')}", "write a number above 0")
    return found[0], found[1]


def _freedom(fields: Table, here: Place) -> Freedom:
    """How a person can change it."""
    changes = fields.get("change", True)
    if not isinstance(changes, bool):
        here.refuse(f"change is {shown(str(changes))}", "write true or false, without quotes")
    direction = fields.get("direction", "any")
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        here.refuse(f"direction is {shown(str(direction))}", "choose one of any, up, down")
    largest = None if "largest_change" not in fields else amount(fields["largest_change"], "largest_change", here)
    if largest is not None and largest <= 0:
        here.refuse(f"largest_change is {fields['largest_change']}", "write a number above 0, or change = false")
    cost = whole(fields.get("cost", 1), "cost", here, 1, MOST_COST)
    return Freedom(
        changes,
        DIRECTIONS[direction],
        largest,
        cost,
        whole(fields.get("cost_per_step", 0), "cost_per_step", here, 0, MOST_COST),
    )


def _refuse_shared_columns(features: tuple[Feature, ...], columns: _Columns, place: Place) -> None:
    names = {number: name for name, number in columns.numbers.items()}
    owner: dict[int, str] = {}
    for feature in features:
        for column in feature.columns:
            if column in owner:
                place.feature(feature.name).refuse(
                    f"column {shown(names.get(column, str(column)))} belongs to feature {shown(owner[column])} already",
                    "let every column belong to one feature",
                )
            owner[column] = feature.name


def _rule(fields: Table, features: Mapping[str, Feature], place: Place, number: int) -> Rule:
    here = Place(place.source, f"rule {number}")
    return _sum(fields, features, here) if "sum" in fields else _together(fields, features, here)


def _known(name: object, features: Mapping[str, Feature], here: Place) -> Feature:
    if not isinstance(name, str) or name not in features:
        here.refuse(f"feature {shown(str(name))} does not exist", "name a feature of this schema")
    return features[name]


def _sum(fields: Table, features: Mapping[str, Feature], here: Place) -> Rule:
    if unknown := set(fields) - {"sum", "at_least", "at_most"}:
        here.refuse(f"unknown key {shown(min(unknown))}", "a sum has at_least and at_most")
    if not isinstance(fields["sum"], list) or len(fields["sum"]) < 2:
        here.refuse("sum is not a list of features", "name at least two")
    terms = [_known(one, features, here) for one in fields["sum"]]
    if len({one.name for one in terms}) < len(terms):
        here.refuse("sum names a feature twice", "name each once")
    for one in terms:
        if not isinstance(one, Number):
            here.refuse(f"feature {shown(one.name)} is a {one.kind}", "add up numbers alone")
    low, high = (None if key not in fields else amount(fields[key], key, here) for key in ("at_least", "at_most"))
    if low is None and high is None:
        here.refuse("a sum has no bound", "write at_least, at_most or both")
    numbers = [one for one in terms if isinstance(one, Number)]
    least, most = sum((one.low for one in numbers), Fraction(0)), sum((one.high for one in numbers), Fraction(0))
    if (low is not None and high is not None and low > high) or (low or least) > most or (high or most) < least:
        here.refuse("contradicts itself or the ranges of its features: no values keep it", "change its bounds")
    return Sum(tuple(one.name for one in terms), low, high)


def _together(fields: Table, features: Mapping[str, Feature], here: Place) -> Rule:
    conditions = [(found[1], fields[key]) for key in fields if (found := CONDITION.fullmatch(key))]
    consequences = [(found[2], fields[key], found[1]) for key in fields if (found := CONSEQUENCE.fullmatch(key))]
    known = all(one[0] in MOVES for one in (*conditions, *consequences))
    if (len(conditions), len(consequences), len(fields)) != (1, 1, 2) or not known:
        here.refuse(
            f"has the keys {', '.join(shown(str(key)) for key in fields)}",
            "write if_rises, if_falls or if_changes, and may_not_rise, may_not_fall, may_not_change or the same with "
            "must; or sum with at_least and at_most",
        )
    (how, first), (second_how, second, word) = conditions[0], consequences[0]
    one, other = _known(first, features, here), _known(second, features, here)
    if one.name == other.name:
        here.refuse(f"is about feature {shown(one.name)} alone", "use direction or transitions for that")
    rule = Together(one.name, how, other.name, second_how, word == "must")
    if isinstance(one, Fixed) or not _can(one, how):
        here.refuse(f"feature {shown(one.name)} never {how}s", "drop the rule, or let the feature change")
    if rule.must and not _can(other, second_how):
        here.refuse(
            f"contradicts feature {shown(other.name)}, which must {second_how} and cannot",
            f"let it {second_how}, or forbid that {one.name} {how}s",
        )
    return rule


def _can(feature: Feature, how: str) -> bool:
    """Whether a feature can move so at all."""
    freedom = feature.freedom
    return freedom.changes and not (
        (how == "rise" and freedom.direction < 0) or (how == "fall" and freedom.direction > 0)
    )


def _refuse_contradictions(rules: tuple[Rule, ...], place: Place) -> None:
    """Two rules of which no change that falls under both can keep both."""
    pairs = [one for one in rules if isinstance(one, Together)]
    for number, one in enumerate(pairs):
        for other in pairs[:number]:
            same = (one.first, one.second) == (other.first, other.second)
            if same and _overlap(one.first_moves, other.first_moves) and not _both(one, other):
                Place(place.source, "rules").refuse(f"contradict each other: {other}; {one}", "drop one of them")


def _overlap(first: str, second: str) -> bool:
    return first == second or "change" in (first, second)


def _both(one: Together, other: Together) -> bool:
    """Whether some move of the second feature keeps both rules."""
    every = {"rise": {"rise", "change"}, "fall": {"fall", "change"}, "stay": set[str]()}
    return any(all((rule.second_moves in words) == rule.must for rule in (one, other)) for words in every.values())
