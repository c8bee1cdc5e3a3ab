"""Schemas of features: what they read, what they say, and what they refuse with which words."""

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcfs import FeatureChange, Intervention, PublicContext, Schema, hiding
from privcfs.errors import ContextError, InputError
from privcfs.public.schema.amounts import parse_amount, show_amount
from privcfs.public.schema.category import Category
from privcfs.public.schema.number import Number
from tests.worlds import random_gcn

COLUMNS = ("age", "months", "rent", "own", "savings_100", "savings_500", "birth")
LOAN: dict[str, Any] = {
    "features": {
        "Age": {
            "kind": "number",
            "column": "age",
            "unit": "years",
            "low": 18,
            "high": 90,
            "step": 1,
            "direction": "up",
            "largest_change": 2,
            "scale": 11.4,
            "offset": 35.5,
        },
        "LoanDuration": {
            "kind": "number",
            "column": "months",
            "unit": "months",
            "low": 6,
            "high": 72,
            "step": 6,
            "cost": 2,
            "cost_per_step": 1,
            "scale": 12,
            "offset": 21,
        },
        "Housing": {
            "kind": "category",
            "options": {"free": [], "rents": "rent", "owns": "own"},
            "transitions": {"rents": ["owns"], "free": ["rents", "owns"]},
        },
        "Savings": {
            "kind": "category",
            "options": {"below 100": [], "100 to 500": ["savings_100"], "over 500": ["savings_100", "savings_500"]},
            "direction": "up",
        },
        "YearOfBirth": {"kind": "derived", "column": "birth"},
    },
    "rules": [{"if_rises": "Age", "may_not_fall": "LoanDuration"}],
}
TOML = """
[features.Age]
kind = "number"
column = "age"
unit = "years"
low = 18
high = 90
step = 0.5
scale = 11.4
offset = 35.5

[features.Housing]
kind = "category"
options = { free = [], rents = "rent", owns = "own" }

[[rules]]
if_changes = "Housing"
may_not_rise = "Age"
"""


def loan(path: str, value: Any = None, drop: bool = False) -> dict[str, Any]:
    """The schema above with one entry set to another value, or left out."""
    changed = deepcopy(LOAN)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    inner: Any = changed
    for parent in parents:
        inner = inner[parent]
    if drop:
        del inner[last]
    else:
        inner[last] = value
    return changed


def table() -> np.ndarray:
    """Six clients in the columns above, scaled."""
    ages, months = np.array([22, 35, 51, 67, 40, 19]), np.array([6, 12, 48, 24, 72, 30])
    rent, own = np.array([1, 0, 0, 1, 0, 0]), np.array([0, 1, 0, 0, 1, 1])
    first, second = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 0, 1, 0, 0, 0])
    columns = [(ages - 35.5) / 11.4, (months - 21) / 12, rent, own, first, second, 2020 - ages]
    return np.column_stack(columns).astype(np.float32)


def context(schema: Any, **further: Any) -> PublicContext:
    model = random_gcn(np.random.default_rng(0), len(COLUMNS), classes=2)
    read = schema if isinstance(schema, str | Path | Schema) else Schema.read(schema, COLUMNS)
    return PublicContext(further.pop("features", table()), [(0, 1), (1, 2)], model, schema=read, **further)


def test_a_schema_says_what_a_row_means() -> None:
    one = context(LOAN)
    assert one.schema is not None
    levels = one.schema.present(one.feature_row(2))
    words = {name: one.schema.named(name).show(level) for name, level in levels.items()}  # type: ignore[union-attr]
    assert words == {"Age": "51", "LoanDuration": "48", "Housing": "free", "Savings": "over 500"}


@pytest.mark.parametrize("amount", [5234, 1169, 250, 18424, 999.5, 7.25])
def test_a_present_value_between_two_steps_is_told_as_it_was_written(amount: float) -> None:
    """The table holds it in 32 bits, and scaled, so that its last digits are lost."""
    fields = {"kind": "number", "column": 0, "low": 0, "high": 20000, "step": 500, "scale": 2820, "offset": 3270}
    (feature,) = Schema.read({"features": {"Amount": fields}}).features
    level = feature.present(np.array([np.float32((amount - 3270) / 2820)], np.float64))
    assert level is not None
    assert feature.show(level) == str(amount)


def test_a_change_is_told_in_units_and_encoded_for_the_model() -> None:
    one = context(LOAN)
    assert one.schema is not None
    (change,) = one.schema.encode([FeatureChange("LoanDuration", "24")], one.schema.present(one.feature_row(2)))
    assert str(change.change) == "LoanDuration: 48 -> 24 months"
    assert change.columns == (1,)
    assert change.values == (float(np.float32(0.25)),)
    assert change.cost == 2 + 4
    (unknown,) = one.schema.encode([FeatureChange("Housing", "owns")], {})
    assert (str(unknown.change), unknown.columns, unknown.values) == ("set Housing to owns", (2, 3), (0.0, 1.0))


@pytest.mark.parametrize("node", range(6))
def test_every_present_level_is_encoded_as_the_table_has_it(node: int) -> None:
    one = context(LOAN)
    assert one.schema is not None
    for name, level in one.schema.present(one.feature_row(node)).items():
        feature = one.schema.named(name)
        assert feature is not None
        row = table()[node, list(feature.columns)]
        assert np.array_equal(np.array(feature.encoded(level), np.float32), row), name


def test_what_a_person_can_reach_follows_direction_largest_change_and_transitions() -> None:
    schema = Schema.read(LOAN, COLUMNS)
    age, housing, savings, birth = (schema.named(one) for one in ("Age", "Housing", "Savings", "YearOfBirth"))
    assert isinstance(age, Number)
    assert [age.show(one) for one in age.reachable(Fraction(51))] == ["52", "53"]
    assert age.reachable(Fraction(90)) == ()
    assert isinstance(housing, Category)
    assert [housing.show(one) for one in housing.reachable(Fraction(1))] == ["owns"]
    assert housing.reachable(Fraction(2)) == ()
    assert isinstance(savings, Category)
    assert [savings.show(one) for one in savings.reachable(Fraction(1))] == ["over 500"]
    assert birth is not None
    assert birth.reachable(Fraction(1)) == ()


def test_where_the_present_level_is_secret_only_what_anyone_can_reach_is_offered() -> None:
    schema = Schema.read(LOAN, COLUMNS)
    offered = {one.name: len(one.reachable(None)) for one in schema.features}
    assert offered == {"Age": 0, "LoanDuration": 12, "Housing": 0, "Savings": 0, "YearOfBirth": 0}
    duration = schema.named("LoanDuration")
    assert duration is not None
    assert duration.price(None, Fraction(60)) == 2 + 9, "as if the present level were as far away as possible"


def test_rules_hold_of_changes_that_are_made_together() -> None:
    rules = [
        {"if_rises": "Age", "may_not_fall": "LoanDuration"},
        {"if_changes": "Savings", "must_change": "Housing"},
        {"sum": ["Age", "LoanDuration"], "at_most": 100},
    ]
    schema = Schema.read(LOAN | {"rules": rules}, COLUMNS)
    before = {"Age": Fraction(51), "LoanDuration": Fraction(48), "Housing": Fraction(0), "Savings": Fraction(0)}

    def keeps(**changed: int) -> bool:
        return schema.keeps_rules(before, {name: Fraction(level) for name, level in changed.items()})

    assert keeps(Age=52)
    assert not keeps(Age=53), "the sum is 101"
    assert not keeps(Age=52, LoanDuration=42), "one rises and the other one falls"
    assert keeps(Age=52, Savings=1, Housing=1)
    assert not keeps(Savings=1)
    assert schema.keeps_rules({}, {})
    assert not schema.keeps_rules({}, {"Age": Fraction(52)}), "a secret present level keeps no rule for sure"
    faults = schema.faults([FeatureChange("Age", "53"), FeatureChange("Savings", "100 to 500")], before)
    assert faults == [
        "rule: if Savings changes, Housing must change",
        "rule: the sum of Age, LoanDuration is at most 100",
    ]


def test_a_file_is_read_as_a_dictionary_is(tmp_path: Path) -> None:
    path = tmp_path / "features.toml"
    path.write_text(TOML)
    schema = Schema.read(path, COLUMNS)
    assert [one.name for one in schema.features] == ["Age", "Housing"]
    assert str(schema.rules[0]) == "if Housing changes, Age may not rise"
    listed = tmp_path / "listed.toml"
    listed.write_text(f"columns = {list(COLUMNS)!r}\n{TOML}")
    assert Schema.read(listed).digest == schema.digest
    assert Schema.read(listed, COLUMNS).digest == schema.digest
    with pytest.raises(ContextError, match=r"listed.toml: columns differs from the header .*; drop columns, or match"):
        Schema.read(listed, COLUMNS[::-1])


def test_the_header_of_a_feature_table_names_the_columns(tmp_path: Path) -> None:
    path, features = tmp_path / "features.toml", tmp_path / "features.csv"
    path.write_text(TOML)
    np.savetxt(features, table(), delimiter=",", header=",".join(COLUMNS), comments="")
    one = context(path, features=features)
    assert one.schema is not None
    assert one.schema.digest == Schema.read(path, COLUMNS).digest
    with pytest.raises(ContextError, match=r"features.toml, feature 'Age': column 'age' is a name, and nothing"):
        context(path)


def test_the_digest_of_a_context_says_which_schema_it_has() -> None:
    plain = PublicContext(table(), [(0, 1), (1, 2)], random_gcn(np.random.default_rng(0), len(COLUMNS), classes=2))
    dearer = context(loan("features/Age/cost", 3))
    assert len({plain.digest, context(LOAN).digest, dearer.digest}) == 3
    assert repr(Schema.read(LOAN, COLUMNS)) == f"Schema({Schema.read(LOAN, COLUMNS).digest})"


@pytest.mark.parametrize("text", ["0", "24", "0.5", "-3.25", "0.000001", "123456789.5"])
def test_amounts_are_shown_as_they_are_read(text: str) -> None:
    value = parse_amount(text)
    assert value is not None
    assert show_amount(value) == text


def test_an_amount_without_a_short_decimal_is_rounded() -> None:
    assert show_amount(Fraction(1, 3)) == "0.333333"
    assert parse_amount("1e9") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("features/Age/column", "size"), "feature 'Age': column 'size' does not exist; name a column of the feature"),
        (("features/Age/column", 12), "feature 'Age': column 12 does not exist; give a number below 7"),
        (("features/Age/column", "months"), "feature 'LoanDuration': column 'months' belongs to feature 'Age' already"),
        (("features/Age/kind", "age"), "feature 'Age': kind is 'age'; choose one of number, flag, category, fixed"),
        (("features/Age/hight", 3), "feature 'Age': unknown key 'hight'; a number has change, column, cost"),
        (("features/Age/low", "18"), "feature 'Age': low is '18'; write a number without quotes"),
        (("features/Age/low", 95), "feature 'Age': low is 95, and high is 90; low must be less than high"),
        (("features/Age/step", 0), "feature 'Age': step is 0; write a number above 0"),
        (("features/Age/step", 1e-9), "feature 'Age': there are more than 10000 steps from low to high"),
        (("features/Age/high", float("nan")), "feature 'Age': high is nan; write a finite number"),
        (("features/Age/offset", float("inf")), "feature 'Age': offset is inf; write a finite number"),
        (("features/Age/high", 1e300), "feature 'Age': high is 1e+300; write a number of at most 10"),
        (("features/Age/scale", 0), "feature 'Age': scale is 0; write a number above 0"),
        (("features/Age/scale", [1, 2]), "feature 'Age': scale has 2 numbers for 1 columns; write one"),
        (("features/Age/cost", 0), "feature 'Age': cost is 0; write a whole number from 1 to 1000"),
        (("features/Age/cost", -2), "feature 'Age': cost is -2; write a whole number from 1 to 1000"),
        (("features/Age/cost", 1.5), "feature 'Age': cost is 1.5; write a whole number from 1 to 1000"),
        (("features/Age/cost", float("nan")), "feature 'Age': cost is nan; write a finite number"),
        (("features/Age/cost_per_step", -1), "feature 'Age': cost_per_step is -1; write a whole number from 0"),
        (("features/Age/direction", "left"), "feature 'Age': direction is 'left'; choose one of any, up, down"),
        (("features/Age/largest_change", 0), "feature 'Age': largest_change is 0; write a number above 0, or change"),
        (("features/Age/change", "no"), "feature 'Age': change is 'no'; write true or false, without quotes"),
        (("features/Age/unit", "<b>"), "feature 'Age': the unit '<b>' holds markup or a control character"),
        (("features/Housing/options", {"free": []}), "feature 'Housing': has fewer than two options"),
        (
            ("features/Housing/options", {"free": [], "none": []}),
            "feature 'Housing': no option has a column; name the columns that each option switches on",
        ),
        (
            ("features/Housing/options/free", "own"),
            "feature 'Housing': options 'free' and 'owns' switch on the same columns; give every option columns",
        ),
        (("features/Housing/options/free", ["own", "own"]), "feature 'Housing': option 'free' names a column twice"),
        (
            ("features/Housing/transitions/rents", ["sells"]),
            "feature 'Housing': transitions name 'sells'; choose among",
        ),
        (("features/Housing/transitions", ["owns"]), "feature 'Housing': transitions is not a table of lists"),
        (("features/a\x1b[1m", {}), "the name of a feature 'a\\x1b[1m' holds markup or a control character"),
        (("features/<i>", {}), "the name of a feature '<i>' holds markup or a control character; use letters"),
        (("features/ x", {}), "the name of a feature is ' x'; write plain text without blanks at its ends"),
        (("features/" + "x" * 81, {}), "has 81 letters; use at most 80"),
        (("features/Age", 3), "feature 'Age': is not a table; write"),
        (("features", {}), "schema: names no features; write a table"),
        (("feature", {}), "schema: unknown table 'feature'; there are columns, features and rules"),
        (("rules", {}), "schema: rules is not a list of tables"),
        (("rules/0/if_rises", "Size"), "rule 1: feature 'Size' does not exist; name a feature of this schema"),
        (("rules/0/may_not_fall", "Age"), "rule 1: is about feature 'Age' alone; use direction or transitions"),
        (("rules/0/may_fall", "Age"), "rule 1: has the keys 'if_rises', 'may_not_fall', 'may_fall'; write if_rises"),
        (("rules/0", {"if_falls": "Age", "may_not_rise": "Savings"}), "rule 1: feature 'Age' never falls; drop the"),
        (
            ("rules/0", {"if_changes": "LoanDuration", "must_fall": "Age"}),
            "rule 1: contradicts feature 'Age', which must fall and cannot; let it fall, or forbid",
        ),
        (
            ("rules", [LOAN["rules"][0], {"if_changes": "Age", "must_fall": "LoanDuration"}]),
            "rules: contradict each other: if Age rises, LoanDuration may not fall; if Age changes, LoanDuration must",
        ),
        (("rules/0", {"sum": ["Age", "LoanDuration"]}), "rule 1: a sum has no bound; write at_least, at_most or both"),
        (("rules/0", {"sum": ["Age"], "at_most": 3}), "rule 1: sum is not a list of features; name at least two"),
        (("rules/0", {"sum": ["Age", "Age"], "at_most": 3}), "rule 1: sum names a feature twice; name each once"),
        (("rules/0", {"sum": ["Age", "Savings"], "at_most": 3}), "rule 1: feature 'Savings' is a category; add up"),
        (
            ("rules/0", {"sum": ["Age", "LoanDuration"], "at_most": 3}),
            "rule 1: contradicts itself or the ranges of its features: no values keep it; change its bounds",
        ),
        (
            ("rules/0", {"sum": ["Age", "LoanDuration"], "at_most": 40, "at_least": 41}),
            "rule 1: contradicts itself or the ranges",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_what_to_do(change: tuple[str, Any], words: str) -> None:
    with pytest.raises(ContextError) as caught:
        Schema.read(loan(*change), COLUMNS)
    text = str(caught.value)
    assert words in text
    assert text.startswith("schema")
    assert text.endswith(".")
    assert text.isprintable()


@pytest.mark.parametrize("key", ["low", "high", "step"])
def test_a_number_needs_a_range(key: str) -> None:
    with pytest.raises(ContextError, match=f"feature 'Age': {key} is missing; a number needs low, high and step"):
        Schema.read(loan(f"features/Age/{key}", drop=True), COLUMNS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("features/Age/high", 60),
            "feature 'Age': the present value 67 of node 'dora' lies outside the range; widen low or high, or correct",
        ),
        (
            ("features/Housing/options", {"rents": "rent", "owns": "own"}),
            r"feature 'Housing': node 'carl' shows the columns \[0.0, 0.0\], which is none of its options; add the",
        ),
        (
            ("features/Savings/options/over 500", ["savings_500"]),
            r"feature 'Savings': node 'carl' shows the columns \[1.0, 1.0\], which is none of its options",
        ),
    ],
)
def test_a_present_value_that_the_schema_does_not_know_is_refused(change: tuple[str, Any], words: str) -> None:
    without_transitions = loan(*change)
    without_transitions["features"]["Housing"].pop("transitions")
    names = ["anna", "bert", "carl", "dora", "emil", "fred"]
    with pytest.raises(ContextError, match=words):
        context(without_transitions, node_ids=names)
    secret = hiding(features=True)
    assert context(without_transitions, assumptions=secret).schema, "a public part of secret features need not fit"


def test_a_schema_by_numbers_is_refused_by_a_table_with_fewer_columns() -> None:
    by_number = {"features": {"Size": {"kind": "flag", "column": 9}}}
    with pytest.raises(ContextError, match="feature 'Size': column 9 does not exist; the feature table has columns 0"):
        context(Schema.read(by_number))


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "features.toml"
    path.write_text("[features.Age\n")
    with pytest.raises(ContextError, match=r"features.toml: is not a TOML file \(.*\); docs/recourse.md has an"):
        Schema.read(path)
    with pytest.raises(ContextError, match=r"schema file .* does not exist"):
        Schema.read(tmp_path / "none.toml")
    path.write_text("columns = ['a', 'a']\n[features.x]\nkind = 'flag'\ncolumn = 'a'\n")
    with pytest.raises(ContextError, match="the feature table has two columns 'a'; give every column a name"):
        Schema.read(path)
    path.write_text("columns = 3\n")
    with pytest.raises(ContextError, match="names no features"):
        Schema.read(path)


def test_a_change_that_there_is_not_is_the_analyst_s_mistake() -> None:
    schema = Schema.read(LOAN, COLUMNS)
    with pytest.raises(InputError, match="feature 'Size' does not exist; choose one of Age, LoanDuration, Housing"):
        schema.level_of(FeatureChange("Size", "3"))
    with pytest.raises(InputError, match="feature LoanDuration has no value '7'; choose one of 6, 12, 18, 24"):
        schema.level_of(FeatureChange("LoanDuration", "7"))
    with pytest.raises(
        InputError, match="feature YearOfBirth has no value '7'; choose one of none, because it is fixe"
    ):
        schema.level_of(FeatureChange("YearOfBirth", "7"))
    with pytest.raises(InputError, match="a change names a feature and a value; give both"):
        FeatureChange("Age", "")
    with pytest.raises(InputError, match="both printable text"):
        FeatureChange("Age", "3\x07")


@pytest.mark.parametrize(
    "change",
    [3, [3], ["a"], [None], [{}], [{"feature": "a"}], [{"feature": 1, "to": "3"}], [{"feature": "a", "to": 3}]],
)
def test_a_change_that_is_no_change_is_refused_wherever_it_comes_from(change: Any) -> None:
    """The service turns these errors into 422; anything else would be a fault of its own."""
    with pytest.raises((InputError, KeyError, TypeError)):
        Intervention.from_dict({"delete": [], "add": [], "mask": [], "change": change})


def test_interventions_without_changes_are_written_as_before() -> None:
    """Certificates, request digests and the digests of stages contain these texts."""
    one = Intervention(delete=((3, 1),), mask=(2,))
    assert repr(one) == "Intervention(delete=((1, 3),), add=(), mask=(2,))"
    assert one.to_dict() == {"delete": [[1, 3]], "add": [], "mask": [2]}
    assert one.in_numbers() == "delete 1-3, mask feature 2"


def test_interventions_with_changes_are_read_as_they_are_written() -> None:
    months = FeatureChange("LoanDuration", "24", "48", "months")
    one = Intervention(change=(months, FeatureChange("A, b", "no")))
    again = Intervention.from_dict(one.to_dict())
    assert again == one
    assert again.to_dict() == one.to_dict()
    assert one.in_numbers() == 'set "A, b" to "no", set "LoanDuration" to "24"'
    assert repr(one) == repr(replace(one, change=tuple(replace(change, before="", unit="") for change in one.change)))
    assert str(one) == "set A, b to no, LoanDuration: 48 -> 24 months"
    assert one.subjects == {("change", "LoanDuration"), ("change", "A, b")}
    with pytest.raises(InputError, match="feature 'LoanDuration' is set to two values; keep one of the two"):
        Intervention(change=(months, FeatureChange("LoanDuration", "36")))
    with pytest.raises(InputError, match=r"write FeatureChange\(name, value\)"):
        Intervention(change=(("LoanDuration", "36"),))  # type: ignore[arg-type]
