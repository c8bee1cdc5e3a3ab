"""What a column of a result means: one reading for every page, so that a name has one definition."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from privcfs_lab.experiments.cells import MORE_ARMS, verdict
from privcfs_lab.figures.page import MEAN, Column, Estimate, Value
from privcfs_lab.measuring.measure import DRAWS, GRID, LARGEST, Records
from privcfs_lab.measuring.quality import regret_bound
from privcfs_lab.measuring.study import Cell
from privcfs_lab.measuring.summary import estimate, guess, rate, retention, valid_if_not_empty


@final
@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One row to be: a cell, its records, and numbers that others report for it by the column's name."""

    cell: Cell
    records: Records
    reported: Mapping[str, float | None] = field(default_factory=dict)
    title: str = ""  # of a variant
    named_arm: str = ""  # of a variant that is none of the arms

    @property
    def arm(self) -> str:
        """As it is called in every table."""
        return self.named_arm or next(name for name, method in MORE_ARMS.items() if method == self.cell.method)


Reading = Callable[[View], Value]
Field = tuple[str, Reading]


def _at(name: str, price: str) -> Reading:
    return lambda view: rate(view.records, name, price)


def _mean(name: str) -> Reading:
    return lambda view: float(view.records[name].mean())


def _draws(price: str) -> Reading:
    """The paper's estimate from 100 draws a target, with its Monte-Carlo error."""

    def read(view: View) -> Value:
        shares = view.records["drawn"][:, GRID.index(price)]
        return Estimate(float(shares.mean()), float(np.sqrt((shares * (1 - shares)).mean() / DRAWS / len(shares))))

    return read


def _bound(view: View) -> float:
    return float(np.mean([regret_bound(float(count), 8, 1.0) for count in view.records["support"]]))


def _capped(most: int) -> Reading:
    return lambda view: estimate(view.records["guess"][:, most - 1])


def _overlap(view: View) -> float | None:
    pairs = view.records["pairs"].sum()
    return float(view.records["overlap"].sum() / pairs) if pairs else None


def reported(name: str) -> Reading:
    """What others print for this row."""
    return lambda view: view.reported.get(name)


def agreement(name: str) -> Reading:
    """Whether what others print is within two standard errors of ours."""

    def read(view: View) -> Value:
        ours = FIELDS[name][1](view)
        return verdict(ours, view.reported.get(name)) if isinstance(ours, Estimate) else None

    return read


FIELDS: Mapping[str, Field] = {
    "data": ("", lambda view: view.cell.data),
    "population": ("", lambda view: view.cell.population),
    "disclosed": (".1f", lambda view: view.cell.disclosed),
    "model trained on": ("", lambda view: view.cell.trained_on),
    "arm": ("", lambda view: view.arm),
    "ablation": ("", lambda view: view.title),
    "targets": ("d", lambda view: len(view.records)),
    "margin": (".4f", _mean("margin")),
    "support": (".0f", _mean("support")),
    "near": (".1f", _mean("near")),
    "pairs that exist": (".0%", _overlap),
    "ceiling": ("", lambda view: estimate(view.records["ceiling"])),
    "ceiling targeted": ("", lambda view: estimate(view.records["ceiling_targeted"])),
    "public guess": ("", lambda view: guess(view.records)),
    "uniform draw": ("", lambda view: estimate(view.records["uniform"])),
    "guess targeted": (MEAN, lambda view: guess(view.records, "guess_targeted")),
    "guess size": (".2f", lambda view: guess(view.records, "guess_size").mean),
    "guess spurious": (".3f", lambda view: guess(view.records, "spurious").mean),
    "snapshot pollution": (".3f", _mean("polluted")),
    **{f"guess of at most {most}": (MEAN, _capped(most)) for most in range(1, LARGEST + 1)},
    **{f"@{price}": (MEAN, _at("valid", price)) for price in GRID},
    **{f"ours @{price}": (MEAN, _at("ours", price)) for price in GRID},
    **{f"draws @{price}": ("", _draws(price)) for price in GRID},
    **{f"targeted @{price}": (MEAN, _at("targeted", price)) for price in GRID},
    **{f"regret @{price}": (MEAN, _at("regret", price)) for price in GRID},
    "retention @8": ("", lambda view: retention(view.records)),
    "size @8": (".2f", lambda view: rate(view.records, "size").mean),
    "empty @8": (".1%", lambda view: rate(view.records, "empty").mean),
    "valid if not empty @8": (MEAN, lambda view: valid_if_not_empty(view.records)),
    "collision @8": (".2%", lambda view: rate(view.records, "collision").mean),
    "regret of 95 % @8": (MEAN, _at("regret_95", "8")),
    "Theorem 2 bound @8": (".3f", _bound),
}

BESIDE_PAPER: Mapping[str, Field] = {
    "@8": ("", _at("valid", "8")),
    "paper's ceiling": ("", reported("ceiling")),
    "verdict": ("", agreement("ceiling")),
    "paper @8": ("", reported("@8")),
    "verdict @8": ("", agreement("@8")),
}


def table(
    views: Iterable[View], shown: Sequence[str], hidden: Sequence[str] = (), extra: Mapping[str, Field] | None = None
) -> tuple[tuple[Column, ...], list[list[Value]]]:
    """Columns by name, those after `shown` in the files alone; `extra` defines what only one page has."""
    fields = {**FIELDS, **(extra or {})}
    columns = tuple(Column(name, fields[name][0] or ".3f", name in shown) for name in [*shown, *hidden])
    return columns, [[fields[column.name][1](view) for column in columns] for view in views]
