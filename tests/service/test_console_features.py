"""Named features over HTTP and in the console's forms, which know the schema: bounds, steps and choices."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privcfs import FeatureChange, Intervention
from privcfs.client import Client
from privcfs.embedded.loan import load_bank
from privcfs.errors import InputError, NotAllowed
from tests.service.browsing import choose_node, enter_key, needs_chromium, picture, sign_in
from tests.service.served import Served
from tests.shell import Shell

CLIENT = "client-214"
VAULT = """\
[graph]
edges = { file = "links.csv", source = "from", target = "to" }
people_know_their_edges = true
id = "a bank"
[public]
features = { file = "clients.csv", nodes = "client", raw = true }
snapshot = { file = "public_links.csv", source = "from", target = "to" }
model = "gcn.safetensors"
schema = "features.toml"
[budget]
ledger = "sqlite:///budget.db"
limit = "20"
[method]
candidates = "recourse-features"
answer_seconds = "off"
[actionable]
desired = 1
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("bank")
    load_bank().write(folder)
    (folder / "vault.toml").write_text(VAULT)
    service = Served(Shell(folder))
    yield service
    assert "Traceback" not in service.stop()


@pytest.fixture(scope="module")
def analyst(served: Served) -> str:
    return served.key("ann")


def test_the_features_of_a_node_are_told_with_bounds_steps_and_choices(served: Served, analyst: str) -> None:
    found = served.ask("GET", f"/v1/features/{CLIENT}", analyst).json()
    by_name = {one["feature"]: one for one in found["features"]}
    assert set(by_name) <= {"MonthlyIncome", "LoanAmount", "LoanDuration", "Savings", "Guarantor"}
    duration = by_name["LoanDuration"]
    assert (duration["unit"], duration["step"]) == ("months", "6")
    assert int(duration["most"]) - int(duration["from"]) <= 24
    assert "if LoanDuration rises, Savings may not rise" in found["rules"]
    with Client(served.url, analyst) as client:
        assert client.features(CLIENT) == found


def test_a_change_of_ones_own_is_believed_priced_and_checked(served: Served, analyst: str) -> None:
    with Client(served.url, analyst) as client:
        duration = next(one for one in client.features(CLIENT)["features"] if one["feature"] == "LoanDuration")
        change = FeatureChange("LoanDuration", duration["most"])
        found = client.believe(CLIENT, Intervention(change=(change,)))
        assert found["in_words"] == f"LoanDuration: {duration['from']} -> {duration['most']} months"
        assert found["cost"] > 1
        assert found["not_allowed"] == []
        assert set(found["believed"]) >= {"before", "after"}
        far = client.believe(CLIENT, Intervention(change=(FeatureChange("Age", "18"),)))
        assert far["not_allowed"] == ["Age cannot be changed so"]
        assert client.budget()["yours"]["spent"] == "0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"feature": "Size", "to": "3"}, "feature 'Size' does not exist; choose one of MonthlyIncome"),
        ({"feature": "LoanDuration", "to": "25"}, "feature LoanDuration has no value '25'; choose one of 6, 12"),
        (
            {"feature": "Savings", "to": "a lot"},
            "feature Savings has no value 'a lot'; choose one of none, some, plenty",
        ),
        ({"feature": "LoanDuration"}, "intervention.change.0.to: Field required"),
        ({"feature": "LoanDuration", "to": [1]}, "intervention.change.0.to"),
        ({"feature": "LoanDuration", "to": "24", "more": 1}, "change.0.more: Extra inputs are not permitted"),
    ],
)
def test_a_feature_or_value_that_does_not_exist_is_refused_in_words(
    served: Served, analyst: str, change: dict[str, Any], words: str
) -> None:
    asked = {"target": CLIENT, "intervention": {"change": [change]}}
    for path, more in (("/v1/beliefs", {}), ("/v1/confirmations", {"epsilon": "1"})):
        answer = served.ask("POST", path, analyst, {**asked, **more})
        assert answer.status_code == 422
        assert words in answer.json()["message"]


def test_a_number_in_json_is_a_value_and_a_confirmation_takes_a_change(served: Served, analyst: str) -> None:
    asked = {"target": CLIENT, "intervention": {"change": [{"feature": "LoanDuration", "to": 24}]}, "epsilon": "1"}
    found = served.ask("POST", "/v1/confirmations", analyst, asked).json()
    assert found["intervention"]["change"][0]["to"] == "24"
    assert isinstance(found["flips"], bool)


def test_a_person_sees_the_features_of_her_own_node_alone(served: Served) -> None:
    with Client(served.url, served.key("pia", "--role", "person", "--node", CLIENT)) as client:
        assert client.features(CLIENT)["target_name"] == CLIENT
        with pytest.raises(NotAllowed):
            client.features("client-005")
        with pytest.raises(InputError, match="has no value"):
            client.believe(CLIENT, Intervention(change=(FeatureChange("Guarantor", "maybe"),)))


@needs_chromium
def test_the_form_of_an_analyst_knows_the_schema(page: Any, served: Served) -> None:
    sign_in(page, served.key(f"bea {page.size}"))
    choose_node(page, CLIENT)
    page.get_by_text("Try a change of your own, for nothing").click()
    form = page.locator("#ask-own")
    button = form.get_by_role("button", name="What would become of it?")
    assert button.is_disabled(), "nothing is changed yet"
    duration = form.get_by_label("LoanDuration in months")
    least, most = (int(duration.get_attribute(name)) for name in ("min", "max"))
    for written, problem in (
        (str(least + 1), "Choose in steps of 6"),
        (str(most + 6), f"Choose from {least} to {most}."),
    ):
        duration.fill(written)
        form.get_by_text(problem).wait_for()
        assert button.is_disabled()
    duration.fill(str(most))
    choices = form.get_by_label("Guarantor").locator("option").all_inner_texts()
    assert choices[0] == "as it is"
    button.click()
    form.get_by_text("Believed decision after this change").wait_for()
    assert f"-> {most} months" in form.locator("[data-result] .words").inner_text()
    assert form.get_by_text("in the owner's currency of changes").is_visible()
    picture(page, "features")


@needs_chromium
def test_a_person_reads_changes_in_words_and_tries_one_of_her_own(phone: Any, served: Served) -> None:
    enter_key(phone, served.key("ria", "--role", "person", "--node", CLIENT))
    phone.get_by_role("button", name="Show my way out").tap()
    phone.get_by_role("heading", name="What you could do").wait_for()
    assert "->" in phone.locator("#advice-best").inner_text()
    phone.get_by_text("Try a change of your own", exact=True).tap()
    form = phone.locator("#person-own")
    form.get_by_label("Guarantor").select_option("yes")
    form.get_by_role("button", name="What would become of it?").tap()
    form.get_by_text("Believed decision now").wait_for()
    picture(phone, "advice-features")
