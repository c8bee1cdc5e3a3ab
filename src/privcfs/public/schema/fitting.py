"""Whether a schema and a feature table fit each other: columns that exist, and present values that it knows."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from privcfs.public.schema.feature import Feature
from privcfs.public.schema.place import Place
from privcfs.public.schema.schema import Schema
from privcfs.tables.parsing import shown

ROWS = 1 << 16  # how many rows are looked at together


def refuse_misfit(schema: Schema, features: sp.csr_array, nodes: Sequence[str] | None, are_public: bool) -> None:
    """Refuses columns that the table does not have and, in a public table, rows with no value in a range."""
    place = Place(schema.source)
    for feature in schema.features:
        beyond = [column for column in feature.columns if column >= features.shape[1]]
        if beyond:
            place.feature(feature.name).refuse(
                f"column {beyond[0]} does not exist", f"the feature table has columns 0 to {features.shape[1] - 1}"
            )
    if not are_public:
        return
    columns = sorted({column for feature in schema.features for column in feature.columns})
    where = {column: position for position, column in enumerate(columns)}
    for start in range(0, features.shape[0], ROWS):
        block = features[start : start + ROWS][:, columns].toarray().astype(np.float64)
        for feature in schema.features:
            values = block[:, [where[column] for column in feature.columns]]
            fits = feature.fits(values)
            if not fits.all():
                row = int(np.argmin(fits))
                node = start + row
                name = shown(nodes[node]) if nodes else str(node)
                _refuse_value(feature, values[row].tolist(), name, place.feature(feature.name))


def _refuse_value(feature: Feature, values: list[float], node: str, place: Place) -> None:
    if feature.kind != "number":
        place.refuse(
            f"node {node} shows the columns {values}, which is none of its options",
            "add the option, or correct columns, scale, offset or the feature table",
        )
    level = feature.present(np.array(values))
    value = "no number" if level is None else feature.show(level)
    place.refuse(
        f"the present value {value} of node {node} lies outside the range",
        "widen low or high, or correct scale, offset or the feature table",
    )
