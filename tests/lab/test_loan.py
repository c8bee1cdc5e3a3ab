"""The page about a loan: all answers are judged alike, DiCE keeps to ranges, and bars are written by the code."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from privcfs.embedded.loan import GRANTED, load_bank
from privcfs.errors import MissingDependency
from privcfs.gate import schema_trials
from privcfs.gate.method import constraints_of
from privcfs_lab.baselines import dice
from privcfs_lab.experiments import loan
from privcfs_lab.experiments.loan import ANSWERS, RECORD, Loan
from privcfs_lab.measuring.simulate import Simulation
from tests.conftest import DATA


@pytest.mark.filterwarnings("ignore")  # of the package that is compared
def test_dice_answers_within_ranges_or_says_that_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = load_bank()
    question = dice.Question(bank.context(), bank.pairs, 213, GRANTED, 0)
    if importlib.util.find_spec("dice_ml") is not None:
        answers = dice.alternatives(question, 2)
        assert 0 < len(answers) <= 2
        for one in answers:
            faults = constraints_of(Loan().method, question.context).faults(213, one)
            assert all(fault.startswith("rule: ") for fault in faults), "it cannot be told rules, and keeps to the rest"
    monkeypatch.setattr(dice, "is_installed", lambda: False)
    with pytest.raises(MissingDependency, match=r"privcfs\[dice\]"):
        dice.alternatives(question, 2)


def test_a_few_clients_are_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not (DATA / "GermanCredit").is_dir():
        pytest.skip("needs GermanCredit: set PRIVCFS_DATA to the folder that holds it")
    monkeypatch.setenv("PRIVCFS_DATA", str(DATA))
    monkeypatch.setattr(schema_trials, "TARGETS", 8)
    monkeypatch.setitem(sys.modules, "dice_ml", None)
    monkeypatch.setattr(dice, "is_installed", lambda: False)
    records = Loan().records(Simulation("german-credit", 0, "snapshot", tmp_path), 6)
    assert len(records) == 6
    judged = records[records["already"] == 0]
    for name in ("zero", "snapshot", "advice", "release"):
        assert (judged[name]["answered"] == 1).all()
        assert judged[name]["obeyed"] == pytest.approx(1)
        assert (judged[name]["size"] < 3 + 1e-9).all()
    assert not judged["dice"]["answered"].any()


def made_up(**valid: float) -> np.ndarray:
    found = np.zeros(10, RECORD)
    for name in ANSWERS:
        found[name]["obeyed"], found[name]["valid"] = 1, valid.get(name, 0.5)
    return found


@pytest.mark.parametrize(
    ("name", "valid", "ratio", "said"),
    [
        ("advice", {"advice": 0.95}, 1.2, "met"),
        ("advice", {"advice": 0.85}, 3.0, "missed: valid 0.90, cost ratio 1.3"),
        ("release", {"release": 0.9, "snapshot": 0.8}, None, "met"),
        ("release", {"release": 0.9, "snapshot": 1.0}, None, "missed: above the best public guess (1.000)"),
        ("dice", {}, None, ""),
    ],
)
def test_bars_are_written_as_they_are(name: str, valid: dict[str, float], ratio: float | None, said: str) -> None:
    assert loan._asked(name, made_up(**valid), ratio) == said
    broken = made_up(**valid)
    broken[name]["obeyed"][3] = 0.9
    if said:
        assert "every answer obeys" in loan._asked(name, broken, ratio)
