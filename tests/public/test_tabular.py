"""Answers as tables: the same rows as a list, as a DataFrame and in a notebook, where nothing in them is markup."""

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from privcfs import FeatureChange, Intervention, Release, Vault
from privcfs.errors import MissingDependency
from privcfs.gate.accounting import Balance
from privcfs.public.release import Guarantee
from privcfs.public.tabular import Tabular
from tests.schemas import schema_world

CHANGED = Intervention(
    delete=((0, 3),),
    mask=(7,),
    change=(FeatureChange("LoanDuration", "24", "48", "months"), FeatureChange("Guarantor", "yes")),
)
RELEASE = Release(
    target=3,
    intervention=CHANGED,
    epsilon=Fraction(1),
    mechanism="m",
    guarantee=Guarantee(Fraction(1), Fraction(1)),
    context_digest="c",
    assumptions=(),
    analyst="ann",
    request_id="r",
    labels={0: "<b>anna</b>", 3: "carl"},
    confidence=0.25,
)


def test_a_release_has_a_row_for_each_element() -> None:
    frame = RELEASE.to_frame()
    assert frame.columns.tolist() == ["target", "epsilon", "confidence", "operation", "what", "from", "to", "unit"]
    assert frame["operation"].tolist() == ["delete", "mask", "change", "change"]
    assert frame["what"].tolist() == ["<b>anna</b> - carl", "feature 7", "Guarantor", "LoanDuration"]
    (row,) = frame[frame["what"] == "LoanDuration"].to_dict("records")
    assert (row["from"], row["to"], row["unit"], row["target"]) == ("48", "24", "months", "carl")
    assert frame["confidence"].tolist() == [0.25] * 4


def test_no_text_is_markup_in_a_notebook() -> None:
    html = RELEASE._repr_html_()
    assert "&lt;b&gt;anna&lt;/b&gt; - carl" in html
    assert "<b>" not in html
    assert "pure 1-differential privacy" in html
    assert html.count("<tr>") == 5


def test_an_answer_without_changes_says_so() -> None:
    nothing = replace(RELEASE, intervention=Intervention())
    assert nothing.to_frame()["operation"].tolist() == ["nothing"]


def test_everything_that_an_analyst_gets_is_a_table(tmp_path: Path) -> None:
    world = schema_world(7, nodes=20)
    ledger = f"sqlite:///{tmp_path / 'budget.db'}"
    vault = Vault(world.graph, world.context, ledger=ledger, limit="9", people_know_their_edges=True)
    advice, candidates = vault.advise(3), vault.propose(3)
    shown: list[Tabular] = [vault.release(3, "1"), vault.guess(3), advice, candidates, vault.balance()]
    for one in shown:
        frame = one.to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert len(frame) == len(one.rows()) > 0
        assert one._repr_html_().startswith(("<p>", "<table>"))
        assert one._repr_html_().count("<tr>") <= 21
    assert set(advice.to_frame()["alternative"]) == set(range(1, len(advice.changes) + 1))
    assert candidates.to_frame()["says"].tolist() == [str(one) for one in candidates]
    assert f"{len(candidates) - 20:,} more rows: to_frame()" in candidates._repr_html_()


def test_a_balance_is_one_row() -> None:
    frame = Balance(Fraction(10), Fraction(5, 2), Fraction(0), 3).to_frame()
    assert frame.to_dict("records")[0]["left"] == "7.5"


def test_without_pandas_one_hears_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match=r"to_frame needs pandas; run: pip install 'privcfs\[table\]'"):
        RELEASE.to_frame()
    assert "<table>" in RELEASE._repr_html_(), "a notebook needs no pandas"
