"""Weighted sums of first-layer inputs: what message passing of the first GCN layer adds up for a hidden row.

Zone: private
Claim: each sum equals the weighted sum of the feature rows of its nodes, multiplied by the first weight matrix.
Why: the product is linear, so the rows may be multiplied before they are summed (where the context keeps the products)
    or after (where it does not).
Check: tests/private/test_evaluators.py::test_every_way_through_the_fast_evaluator_gives_the_same_scores
"""

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn_work import work
from privcfs.public.context import Readable
from privcfs.public.models.gcn import GCN
from privcfs.tables.neighbours import gather

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
MOST_CELLS = 2**20  # Upper bound on the entries of a dense table of summed feature rows.


def first_layer_sums(
    context: Readable, model: GCN, nodes: Numbers, weights: Floats, borders: Numbers, allowance: Allowance
) -> Floats:
    """Weighted sums of the first-layer inputs of nodes, one sum for each segment of `nodes`.

    The first-layer input of a node is its feature row times the first weight matrix. Segment i has the nodes from
    position `borders[i]` to below `borders[i + 1]`; no segment is empty. `weights` has one number for each node.
    """
    units = len(model.first_bias)
    if context.inputs is None:
        starts, cells = context.features.indptr, (len(borders) - 1) * model.number_of_features
        read = int((starts[nodes + 1] - starts[nodes]).sum())
        allowance.spend(work(read=read, entries=cells, products=cells * units))
        return _sums_from_features(context, model, nodes, weights, borders)
    allowance.spend(work(entries=len(nodes) * units))
    weighted_inputs = weights[:, None] * context.inputs[nodes]
    sums: Floats = np.add.reduceat(weighted_inputs, borders[:-1])
    return sums


def _sums_from_features(context: Readable, model: GCN, nodes: Numbers, weights: Floats, borders: Numbers) -> Floats:
    """The same sums from the sparse feature table: feature rows are summed first, in blocks of segments."""
    table, width = context.features, model.number_of_features
    position, entries = gather(table.indptr, nodes)
    values, columns = table.data[entries] * weights[position], table.indices[entries]
    segment = np.searchsorted(borders, position, side="right") - 1
    entry_borders = np.searchsorted(position, borders)
    segments, segments_per_block = len(borders) - 1, max(MOST_CELLS // width, 1)
    products = []
    for start in range(0, segments, segments_per_block):
        stop = min(start + segments_per_block, segments)
        block = slice(entry_borders[start], entry_borders[stop])
        cell = (segment[block] - start) * width + columns[block]
        summed_rows = np.bincount(cell, values[block], minlength=(stop - start) * width).reshape(-1, width)
        products.append(summed_rows.astype(np.float32) @ model.first)
    return np.concatenate(products)
