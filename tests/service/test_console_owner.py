"""The owner's part of the console, in a real browser."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from privcfs.gate.accounting import Limit, Losses
from tests.service.browsing import ask_about, check_width, needs_chromium, picture, sign_in
from tests.service.served import Served

pytestmark = needs_chromium


def test_the_owner_sees_everyone_and_makes_and_revokes_keys(page: Any, served: Served) -> None:
    ask = {"target": "person-3", "epsilon": "0.5"}
    assert served.ask("POST", "/v1/releases", served.key(f"al {page.size}"), ask).status_code == 200
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("Everyone: epsilon").wait_for()
    page.get_by_text("about one connection from all answers together").first.wait_for()
    page.get_by_text("at this pace the").wait_for()
    foreseen = served.ask("GET", "/v1/overview", served.owner).json()["forecast"]["last_7_days"]
    assert f"epsilon {foreseen['spent']} was spent" in page.locator("#forecast").inner_text()
    assert foreseen["used_up"] in page.locator("#forecast").inner_text()
    page.get_by_role("cell", name="any two graphs").wait_for()
    picture(page, "budget")
    page.get_by_role("tab", name="Keys").click()
    who = f"bob {page.size}"
    page.get_by_label("Name of the analyst or person").fill(who)
    page.get_by_label("May spend at most").fill("0,5")
    page.get_by_text("Write a point and no comma").wait_for()
    assert page.get_by_role("button", name="Make a key").is_disabled()
    page.get_by_label("May spend at most").fill("0.5")
    page.get_by_label("Nodes, one a line").fill("person-1\nperson-2")
    page.get_by_role("button", name="Make a key").click()
    secret = page.get_by_text("shown this once").inner_text().split()[-1]
    assert served.ask("GET", "/v1/me", secret).json()["analyst"] == who
    row = page.locator("#key-rows tr", has_text=who)
    assert "0.5" in row.inner_text()
    assert "person-1, person-2" in row.inner_text()
    revoke = page.get_by_role("button", name=f"Revoke key {secret.split('_')[1]} of {who}")
    box = revoke.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= page.viewport_size["width"], "in frame"
    page.on("dialog", lambda dialog: dialog.accept())
    revoke.click()
    page.get_by_role("cell", name="revoked").last.wait_for()
    assert served.ask("GET", "/v1/me", secret).status_code == 401
    page.reload()
    page.get_by_role("cell", name="revoked").last.wait_for()
    assert secret not in page.content(), "it was shown once"
    picture(page, "keys")


def test_the_ledger_shows_days_nodes_and_costs(page: Any, served: Served) -> None:
    who = f"lea {page.size}"
    ask = {"target": "person-7", "epsilon": "0.25", "request_id": "seven"}
    assert served.ask("POST", "/v1/releases", served.key(who), ask).status_code == 200
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Ledger").click()
    page.get_by_role("cell", name="ledger opened").wait_for()
    row = page.locator("#rows tr", has_text=who).filter(has_text="paid").inner_text()
    for words in ("person-7", "0.25", "seven"):
        assert words in row
    day = json.loads(next(one["body"] for one in ledger(served) if one["request_id"] == "seven"))["day"]
    assert day in row
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the head").click()
    newest = served.ask("GET", "/v1/ledger/head", served.owner).json()
    assert json.loads(Path(waiting.value.path()).read_text()) == newest
    picture(page, "ledger")


def ledger(served: Served) -> list[dict[str, Any]]:
    text = served.ask("GET", "/v1/ledger", served.owner).text
    return [json.loads(line) for line in text.splitlines()]


def test_the_log_is_free_of_noise_and_can_be_filtered(page: Any, served: Served) -> None:
    made = served.ask("POST", "/v1/keys", served.owner, {"analyst": f"lou {page.size}"}).json()
    dear = {"target": "person-3", "epsilon": "60"}
    assert served.ask("POST", "/v1/releases", made["secret"], dear).status_code in (402, 429)
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Ledger").click()
    page.get_by_role("cell", name="ledger opened").wait_for()
    page.get_by_role("tab", name="Log").click()
    page.get_by_role("cell", name="POST /v1/keys").first.wait_for()
    assert "GET /v1/ledger" not in page.locator("#log-rows").inner_text()
    page.get_by_label("With these words").fill(f"lou {page.size}")
    assert page.locator("#log-rows tbody tr").count() == 1
    page.get_by_label("With these words").fill("")
    page.get_by_label("Show").select_option("refused")
    statuses = page.locator("#log-rows td[data-name=status]").all_inner_texts()
    assert statuses
    assert all(int(one) >= 400 for one in statuses)
    page.get_by_label("Show").select_option("all")
    page.locator("#log-rows td", has_text="GET /v1/ledger").first.wait_for()
    page.get_by_text("0 evaluations given up for work, 0 evaluations failed otherwise").wait_for()


def test_the_cap_of_a_key_is_the_limit_that_its_analyst_and_the_owner_see(page: Any, served: Served) -> None:
    who = f"cap {page.size}"
    sign_in(page, served.key(who, "--cap", "2"))
    page.get_by_text("2 of your own limit").wait_for()
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("You: epsilon 0 of 2 spent in 0 answers, 2 left").wait_for()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text(f"{who}: epsilon 0 of 2 spent in 0 answers").wait_for()
    assert "no limit" not in page.locator("#meters").inner_text()


def test_what_needs_attention_is_said(page: Any, served: Served) -> None:
    secret = served.key(f"max {page.size}", "--cap", "0.1", "--days", "5")
    assert served.ask("POST", "/v1/releases", secret, {"target": "person-1", "epsilon": "0.1"}).status_code == 200
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    alerts = page.locator("#alerts")
    alerts.get_by_text(f"max {page.size} spent epsilon 0.1 of 0.1").wait_for()
    alerts.get_by_text(f"of max {page.size} ends on ").wait_for()


def test_losses_of_a_person_follow_her_connections(page: Any, served: Served) -> None:
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    field = page.get_by_label("A person's number of connections")
    field.fill("3")
    page.get_by_role("cell", name="a person with 3 connections").wait_for()
    field.fill("1")
    page.get_by_role("cell", name="a person with 1 connection", exact=True).wait_for()
    rows = page.locator("#losses tbody tr")
    assert rows.nth(0).locator("td").nth(1).inner_text() == rows.nth(1).locator("td").nth(1).inner_text()
    field.fill("many")
    page.get_by_text("Write a whole number from 1 on.").wait_for()


def test_sums_of_losses_are_those_of_the_ledger(page: Any) -> None:
    """The same formula as `Losses.person`, exactly, in the browser."""
    limit = Limit.of("10", None)
    cases = [("0.1", "0.2", "0.3", "9.7"), ("1", "0", "0.000000001", "2"), ("0", "0", "0", "5")]
    for whole, edge_level, dearest, everything in cases:
        at_node, spent = Fraction(dearest), Fraction(everything)
        losses = Losses(Fraction(whole), Fraction(edge_level), at_node, at_node, spent, limit)
        for edges in (1, 2, 10, 1000):
            script = "async ([found, m]) => (await import('/owner.js')).personLoss(found, m)"
            shown = page.evaluate(script, [losses.to_dict(), str(edges)])
            assert Fraction(shown) == losses.person(edges)


def test_no_part_of_the_owner_s_page_is_wider_than_a_phone(phone: Any, served: Served) -> None:
    long = "W" * 150
    served.ask("POST", "/v1/keys", served.owner, {"analyst": long})
    ask = {"target": "person-1", "epsilon": "0.01", "request_id": "r" * 100}
    secret = served.key("wide " + long[:100])
    assert served.ask("POST", "/v1/releases", secret, ask).status_code == 200
    sign_in(phone, served.owner)
    for tab in ("Ask", "My answers", "Budget", "Ledger", "Keys", "Log"):
        phone.get_by_role("tab", name=tab).click()
        phone.wait_for_timeout(500)
        check_width(phone)
        beyond = """() => [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility()
          && one.getBoundingClientRect().right > window.innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"""
        assert phone.evaluate(beyond) == [], tab


def test_an_owner_asks_like_an_analyst(page: Any, served: Served) -> None:
    sign_in(page, served.owner)
    ask_about(page, "person-8", "0.01")
