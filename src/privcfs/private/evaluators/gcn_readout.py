"""The logits of a target of a two-layer GCN, from the pre-activations of the hidden rows that it aggregates.

Zone: private
Claim: `class_logits` equals the sum over hidden rows of relu(offset + slope x input), times the second weight matrix,
    plus the second bias, for every state and every mask.
Why: let `highest` be the largest input of a unit under any mask, and `below` = input - `highest`. Where a unit is
    active at `highest`, with activation `peak`, relu(offset + slope x input) = peak + slope x below + slope x deficit,
    where deficit = max(-peak / slope - below, 0) replaces what the relu cuts off. Elsewhere the unit is 0 under all
    masks.
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn_hidden_rows import PreActivations
from privcfs.private.evaluators.gcn_work import work
from privcfs.public.models.gcn import GCN

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
CHUNK = 32  # Hidden rows whose deficits are added together.
MOST_WEIGHTS = 2**22  # Upper bound on the entries of a table of weights, which bounds memory for targets of any degree.
LOOK = 60  # Cost of selecting one more entry, in multiplications; measured.


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """The hidden units of each row, relative to the largest input of each unit under any mask."""

    below: Floats  # (units, masks): the input minus the largest input; never above 0.
    peaks: Floats  # (rows, units): activation at the largest input.
    is_active: Bools  # (rows, units): whether that activation is above 0.
    floors: Floats  # (rows, units): the value of `below` at which the activation becomes 0.
    is_crossing: Bools  # (rows, units): whether the unit is active under some masks and 0 under others.

    @classmethod
    def of(cls, rows: PreActivations, inputs: Floats) -> "_Units":
        """Evaluates the units at the largest input; `inputs` has shape (units, masks)."""
        slopes = rows.slopes[:, None]
        highest = inputs.max(axis=1)
        below = inputs - highest[:, None]
        peaks = np.maximum(rows.offsets + slopes * highest, 0)
        is_active = peaks > 0
        floors = np.where(is_active, -peaks / slopes, -np.inf).astype(np.float32)
        return cls(below, peaks, is_active, floors, floors > below.min(axis=1))

    def deficits(self, row: Numbers, unit: Numbers) -> Floats:
        """What the relu cuts off, over the slope, for each given row and unit under every mask."""
        deficits: Floats = np.maximum(self.floors[row, unit, None] - self.below[unit], 0)
        return deficits


def class_logits(read: Floats, rows: PreActivations, inputs: Floats, model: GCN, allowance: Allowance) -> Floats:
    """Logits of the target: (classes, states, masks).

    `read` has shape (states, rows) and is 1 where the target aggregates a row. `inputs` has shape (units, masks): the
    target's first-layer input under each mask. A mask changes an input so little that few units cross 0. Where crossing
    units are few, all logits are one matrix product; where they are many, it costs less to add their deficits by rows.
    """
    allowance.spend(work(entries=4 * rows.offsets.size + 2 * inputs.size + 4 * read.size))
    units = _Units.of(rows, inputs)
    slopes_read = read * rows.slopes
    outputs = len(read) * model.number_of_classes
    if _fits_one_product(units.is_crossing.sum(axis=1), outputs, inputs.shape[1]):
        row, unit = np.nonzero(units.is_crossing)
        logits = _one_product(read, slopes_read, units, (row, unit), model, allowance)
    else:
        row, unit = np.empty((2, 0), np.int64)
        logits = _one_product(read, slopes_read, units, (row, unit), model, allowance)
        _add_deficits_by_rows(logits, slopes_read, units, model, allowance)
    return logits


def _fits_one_product(crossing: Numbers, outputs: int, masks: int) -> bool:
    """Whether one product with all crossing units is cheaper than adding by rows, and fits into the bounded memory.

    `crossing` is the number of crossing units of each row, and `outputs` the number of states times classes.
    """
    crossing_rows, all_crossing = np.count_nonzero(crossing), crossing.sum()
    cost_at_once = all_crossing * (outputs + LOOK)
    cost_by_rows = crossing_rows * (outputs + LOOK * (crossing.max() + 4))
    largest_table = all_crossing * max(outputs + LOOK, masks)
    return bool(cost_at_once <= cost_by_rows and largest_table <= MOST_WEIGHTS)


def _one_product(
    read: Floats,
    slopes_read: Floats,
    units: _Units,
    crossing: tuple[Numbers, Numbers],
    model: GCN,
    allowance: Allowance,
) -> Floats:
    """Logits as one product of weights (outputs, terms) and terms (terms, masks).

    The terms are 1 for the peaks, `below` for the linear part, and the deficit of each unit in `crossing`, which is
    given by row and unit.
    """
    row, unit = crossing
    hidden, masks = units.below.shape
    terms, outputs = 1 + hidden + len(row), len(read) * model.number_of_classes
    products = read.size * (hidden + model.number_of_classes) + outputs * terms * masks
    allowance.spend(work(entries=(outputs + masks) * 2 * terms + outputs * masks, products=products))
    readout = np.ascontiguousarray(model.second.T)[:, None]
    peak_weights = (read @ (units.peaks @ model.second) + model.second_bias).T[:, :, None]
    linear_weights = (slopes_read @ units.is_active.astype(np.float32)) * readout
    deficit_weights = slopes_read[:, row] * readout[:, :, unit]
    weights = np.concatenate([peak_weights, linear_weights, deficit_weights], axis=2)
    values = np.concatenate([np.ones_like(units.below[:1]), units.below, units.deficits(row, unit)])
    logits: Floats = (weights.reshape(peak_weights.size, -1) @ values).reshape(*peak_weights.shape[:2], -1)
    return logits


def _add_deficits_by_rows(logits: Floats, slopes_read: Floats, units: _Units, model: GCN, allowance: Allowance) -> None:
    """Adds the deficits of all crossing units to the logits, a chunk of hidden rows at a time."""
    crossing = units.is_crossing.sum(axis=1)
    rows = np.flatnonzero(crossing)
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        allowance.spend(_deficit_work(logits.shape, len(chunk), int(crossing[chunk].max()), units.below.shape[0]))
        crossing_first = np.argsort(~units.is_crossing[chunk], axis=1, kind="stable")
        unit = crossing_first[:, : crossing[chunk].max()]
        deficits = units.deficits(chunk[:, None], unit)
        deficits_read_out = np.matmul(model.second[unit].transpose(0, 2, 1), deficits)
        logits += np.matmul(slopes_read[:, chunk], deficits_read_out.transpose(1, 0, 2))


def _deficit_work(shape: tuple[int, ...], rows: int, crossing: int, hidden: int) -> int:
    """The work of adding the deficits of some rows, of which each has at most `crossing` crossing units."""
    classes, states, masks = shape
    entries = 2 * masks * (rows * (crossing + classes) + classes * states)
    return work(entries=entries, keys=rows * hidden, products=rows * masks * classes * (crossing + states))
