"""Statlog German credit (UCI): 1,000 loans with named attributes, and pairs of similar clients (chirag126/nifty).

The pairs were made from the attributes by those who published them. So they illustrate a secret and are none.
"""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs import Schema
from privcfs.errors import SettingsError
from privcfs_lab.datasets.dataset import Dataset, Split, undirected

TABLE, PAIRS = "GermanCredit/raw/german.csv", "GermanCredit/raw/german_edges.txt"
LABEL, GRANTED, REFUSED = "GoodCustomer", 1, 0
CAPTION = (
    "Edges were made from attributes by their publishers; 60 % training nodes and 30 % test nodes by a public draw."
)


class Scaling(NamedTuple):
    """The model gets (number - offset) / scale: about the mean and the deviation, in round numbers."""

    offset: float
    scale: float


SCALED = {
    "Age": Scaling(35.5, 11.4),
    "LoanDuration": Scaling(21, 12),
    "LoanAmount": Scaling(3270, 2820),
    "LoanRateAsPercentOfIncome": Scaling(3, 1.1),
    "YearsAtCurrentHome": Scaling(2.8, 1.1),
    "NumberOfOtherLoansAtBank": Scaling(1.4, 0.6),
    "NumberOfLiableIndividuals": Scaling(1.2, 0.4),
}
PURPOSES = (
    *("Business", "Education", "Electronics", "Furniture", "HomeAppliances"),
    *("NewCar", "Other", "Repairs", "Retraining", "UsedCar"),
)
FLAGS = (
    *("ForeignWorker", "Single", "HasTelephone", "CheckingAccountBalance_geq_0", "CheckingAccountBalance_geq_200"),
    *("SavingsAccountBalance_geq_100", "SavingsAccountBalance_geq_500", "MissedPayments", "NoCurrentLoan"),
    *("CriticalAccountOrLoansElsewhere", "OtherLoansAtBank", "OtherLoansAtStore", "HasCoapplicant", "HasGuarantor"),
    *("OwnsHouse", "RentsHouse", "Unemployed", "YearsAtCurrentJob_lt_1", "YearsAtCurrentJob_geq_4"),
    "JobClassIsSkilled",
)
COLUMNS = (*SCALED, *FLAGS, "Male", *(f"Purpose_{one}" for one in PURPOSES))


def load(folder: Path) -> Dataset:
    """Attributes as numbers, pairs and decisions: class 1 is a loan that was granted."""
    rows = _rows(folder / TABLE)
    table = np.array([_encoded(row) for row in rows], np.float32)
    labels = np.array([GRANTED if int(row[LABEL]) == 1 else REFUSED for row in rows], np.int64)
    ends = _pairs(folder / PAIRS)
    order = np.random.default_rng(0).permutation(len(labels))
    shares = np.split(order, [int(0.6 * len(order)), int(0.7 * len(order))])
    split = Split(*(np.sort(one) for one in shares))
    return Dataset("german-credit", sp.csr_array(table), undirected(ends[:, 0], ends[:, 1]), labels, split, CAPTION)


def schema() -> Schema:
    """What each attribute is called and what a client can change about it. Judgements of ours, for a demonstration."""
    number = {"kind": "number"}
    free: dict[str, dict[str, Any]] = {
        "LoanDuration": {
            **number,
            "unit": "months",
            "low": 3,
            "high": 72,
            "step": 3,
            "largest_change": 24,
            "cost_per_step": 1,
        },
        "LoanAmount": {
            **number,
            "unit": "DM",
            "low": 250,
            "high": 18500,
            "step": 250,
            "direction": "down",
            "largest_change": 5000,
        },
        "Age": {**number, "unit": "years", "low": 18, "high": 100, "step": 1, "change": False},
        "LoanRateAsPercentOfIncome": {"kind": "derived"},
        "YearsAtCurrentHome": {"kind": "fixed", "unit": "years"},
        "NumberOfOtherLoansAtBank": {"kind": "fixed"},
        "NumberOfLiableIndividuals": {"kind": "fixed"},
        "CheckingAccount": {
            "kind": "category",
            "options": {
                "none or below 0": [],
                "0 to 200": "CheckingAccountBalance_geq_0",
                "200 and more": ["CheckingAccountBalance_geq_0", "CheckingAccountBalance_geq_200"],
            },
            "direction": "up",
            "cost": 2,
            "cost_per_step": 1,
        },
        "SavingsAccount": {
            "kind": "category",
            "options": {
                "below 100": [],
                "100 to 500": "SavingsAccountBalance_geq_100",
                "500 and more": ["SavingsAccountBalance_geq_100", "SavingsAccountBalance_geq_500"],
            },
            "direction": "up",
            "cost": 2,
            "cost_per_step": 2,
        },
        "HasTelephone": {"kind": "flag", "direction": "up"},
        "OtherLoansAtBank": {"kind": "flag", "direction": "down", "cost": 3},
        "HasCoapplicant": {"kind": "flag", "direction": "up", "cost": 3},
        "HasGuarantor": {"kind": "flag", "direction": "up", "cost": 3},
        "JobClassIsSkilled": {"kind": "flag", "direction": "up", "cost": 8},
        "Unemployed": {"kind": "flag", "direction": "down", "cost": 8},
        "Housing": {
            "kind": "category",
            "options": {"for free": [], "rents": "RentsHouse", "owns": "OwnsHouse"},
            "change": False,
        },
        "YearsAtCurrentJob": {
            "kind": "category",
            "options": {"below 1": "YearsAtCurrentJob_lt_1", "1 to 4": [], "4 and more": "YearsAtCurrentJob_geq_4"},
            "change": False,
        },
        "Purpose": {"kind": "category", "options": {one: f"Purpose_{one}" for one in PURPOSES}, "change": False},
        "Male": {"kind": "fixed"},
    }
    for name in ("ForeignWorker", "Single", "MissedPayments", "NoCurrentLoan", "CriticalAccountOrLoansElsewhere"):
        free[name] = {"kind": "fixed"}
    free["OtherLoansAtStore"] = {"kind": "fixed"}
    for name, fields in free.items():
        if fields["kind"] == "number":
            fields |= SCALED[name]._asdict()
    rules = [{"if_rises": "SavingsAccount", "may_not_rise": "CheckingAccount"}]  # The same money is saved once.
    return Schema.read({"features": free, "rules": rules}, COLUMNS)


def _encoded(row: dict[str, str]) -> list[float]:
    numbers = [(float(row[name]) - scaling.offset) / scaling.scale for name, scaling in SCALED.items()]
    flags = [float(row[name]) for name in FLAGS]
    purposes = [float(row["PurposeOfLoan"] == one) for one in PURPOSES]
    return [*numbers, *flags, float(row["Gender"] == "Male"), *purposes]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise SettingsError(
            f"data file {path} does not exist; set PRIVCFS_DATA to the folder with data sets."
        ) from None


def _pairs(path: Path) -> NDArray[np.int64]:
    try:
        return np.loadtxt(path).astype(np.int64)
    except OSError:
        raise SettingsError(
            f"data file {path} does not exist; set PRIVCFS_DATA to the folder with data sets."
        ) from None
