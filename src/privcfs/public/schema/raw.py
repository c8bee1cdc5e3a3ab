"""Tables that hold values as people write them, such as 48 or "rents", turned into what the model reads."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import ContextError
from privcfs.public.schema.amounts import DECIMAL
from privcfs.public.schema.feature import Feature
from privcfs.public.schema.place import Place
from privcfs.public.schema.schema import Schema
from privcfs.tables.named_columns import Table
from privcfs.tables.parsing import is_number, shown

Encode = Callable[[str], tuple[float, ...] | None]


def encoded_table(schema: Schema, table: Table) -> NDArray[np.float64]:
    """The feature table of a file whose columns are called like the features of a schema.

    Args:
        schema: The schema; its features have all columns of the feature table between them.
        table: The file. Columns that are called like no feature are passed over.

    Returns:
        One row for each row of the file.

    Raises:
        ContextError: A feature has no column in the file, a cell is none of its values, or columns are missing.
    """
    names = [one.name for one in schema.features]
    cells = Table(table.file, table.nodes, names).cells(ContextError)
    width = 1 + max(column for one in schema.features for column in one.columns)
    if missing := set(range(width)) - {column for one in schema.features for column in one.columns}:
        Place(schema.source).refuse(
            f"column {min(missing)} belongs to no feature, so a raw table has no value for it",
            "describe it as a feature of kind fixed",
        )
    found = np.zeros((len(cells.rows), width))
    for place, feature in enumerate(schema.features):
        encode = _encoder(feature)
        for row, (line, texts) in enumerate(cells.rows):
            numbers = encode(texts[place])
            if numbers is None:
                what = f"line {line}, column {shown(feature.name)}, holds {shown(texts[place])}"
                raise ContextError(f"features file {Path(table.file).name}: {what}; {_expected(feature)}.")
            found[row, list(feature.columns)] = numbers
    return found


def _encoder(feature: Feature) -> Encode:
    """What turns a cell into numbers; None for a cell that is no value."""
    if feature.kind == "number":  # A present value may lie between two steps; the range is checked with the schema.
        return lambda text: feature.encoded(Fraction(text)) if DECIMAL.fullmatch(text) else None
    if feature.kind in ("fixed", "derived"):
        return lambda text: (float(text),) if is_number(text) else None
    known = {feature.show(level): feature.encoded(level) for level in feature.levels}
    return known.get


def _expected(feature: Feature) -> str:
    if feature.levels and feature.kind != "number":
        return f"write one of {', '.join(feature.show(level) for level in feature.levels)}"
    return "write a decimal number, such as 24 or 0.5"
