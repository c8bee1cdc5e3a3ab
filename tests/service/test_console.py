"""The web console in a real browser: Debian's chromium, driven by playwright."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.served import Served
from tests.service.test_http import in_names

CHROMIUM = shutil.which("chromium")
SCREENSHOTS = os.environ.get("PRIVCFS_SCREENSHOTS")
PICTURES = {"ask-desk", "ask-phone", "budget-desk", "ledger-desk"}  # in docs/service.md
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium, as root")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=[(1100, 800), (390, 844)], ids=["desk", "phone"])
def page(browser: Any, served: Served, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, height = request.param
    opened = browser.new_page(viewport={"width": width, "height": height})
    heard: list[str] = []
    opened.on("console", lambda one: heard.append(one.text) if one.type == "error" else None)
    opened.on("pageerror", lambda error: heard.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda one: asked.append(one.url))
    opened.goto(served.url)
    opened.size = "desk" if width > 1000 else "phone"
    yield opened
    wide = opened.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    opened.close()
    assert not wide, "nothing is wider than the screen"
    expected = ("401", "403", "404", "ERR_FAILED")  # refusals, and answers that a test loses on purpose
    assert [text for text in heard if not any(one in text for one in expected)] == []
    assert all(url.startswith((served.url, "data:", "blob:")) for url in asked), "nothing is loaded from elsewhere"
    assert not any("privcfs_" in url for url in asked), "no key in a URL"


def picture(page: Any, name: str) -> None:
    if SCREENSHOTS and f"{name}-{page.size}" in PICTURES:
        page.wait_for_timeout(300)
        page.screenshot(path=str(Path(SCREENSHOTS) / f"console-{name}-{page.size}.png"), full_page=True)


def sign_in(page: Any, secret: str) -> None:
    page.get_by_label("Your key").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("tab", name="Ask").wait_for()


def test_an_analyst_sees_the_cost_before_paying_and_the_answer_after(page: Any, served: Served) -> None:
    sign_in(page, served.key(f"ann {page.size}"))
    page.get_by_label("Node").fill("person-3")
    page.get_by_text("candidates, the same whatever").wait_for()
    page.get_by_role("button", name="Pay 1 and ask").wait_for()
    assert page.locator("#before").inner_text().split("\n")[1] == "epsilon 1"
    assert "4 of your own limit" in page.locator("#before").inner_text()
    assert page.get_by_text(re.compile(r"^person-[0-9]+ - person-[0-9]+$")).count() > 1
    page.get_by_role("button", name="Try it on public data").click()
    page.get_by_text("public data only, not paid").wait_for()
    page.get_by_role("button", name="Pay 1 and ask").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    page.get_by_text("For nothing, public data alone suggest: ").wait_for()
    assert page.locator("#picture svg circle").count() > 1
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the certificate").click()
    certificate = json.loads(Path(waiting.value.path()).read_text())
    assert certificate["target"] == 3
    assert certificate["labels"]["3"] == "person-3"
    assert page.locator("#words").inner_text() == in_names(certificate["intervention"])
    assert not re.search(r"(delete|add) [0-9]", page.locator("#zero").inner_text())
    drawn = page.locator("#picture svg text").all_text_contents()
    assert "person-3" in drawn
    assert all(re.fullmatch(r"person-[0-9]+", name) for name in drawn)
    legend = page.locator("#legend").inner_text()
    for kind, words in (("delete", "dashed: to delete"), ("add", "thick: to add")):
        assert (words in legend) == bool(certificate["intervention"][kind])
    (served.shell.folder / "release.json").write_text(json.dumps(certificate))
    assert served.shell.ask("verify", "release.json")["valid"]
    picture(page, "ask")
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("You: epsilon 1 of 4 spent").wait_for()


def test_the_owner_sees_everyone_and_makes_and_revokes_keys(page: Any, served: Served) -> None:
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("Everyone: epsilon").wait_for()
    page.get_by_text("an edge from all answers together").first.wait_for()
    picture(page, "budget")
    page.get_by_role("tab", name="Keys").click()
    who = f"bob {page.size}"
    page.get_by_label("Analyst").fill(who)
    page.get_by_role("button", name="Make a key").click()
    secret = page.get_by_text("shown this once").inner_text().split()[-1]
    assert served.ask("GET", "/v1/me", secret).json()["analyst"] == who
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Revoke key {secret.split('_')[1]} of {who}").click()
    page.get_by_role("cell", name="revoked").last.wait_for()
    assert served.ask("GET", "/v1/me", secret).status_code == 401
    page.get_by_role("tab", name="Ledger").click()
    page.get_by_role("cell", name="OPENED").wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the head").click()
    newest = served.ask("GET", "/v1/ledger/head", served.owner).json()
    assert json.loads(Path(waiting.value.path()).read_text()) == newest
    picture(page, "ledger")
    page.get_by_role("tab", name="Log").click()
    page.get_by_role("cell", name="POST /v1/keys").first.wait_for()
    page.get_by_text("0 evaluations given up for work, 0 evaluations failed otherwise").wait_for()


def test_the_cap_of_a_key_is_the_limit_that_its_analyst_and_the_owner_see(page: Any, served: Served) -> None:
    who = f"cap {page.size}"
    sign_in(page, served.key(who, "--cap", "2"))
    page.get_by_text("2 of your own limit").wait_for()
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("You: epsilon 0 of 2 spent in 0 answers").wait_for()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, served.owner)
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text(f"{who}: epsilon 0 of 2 spent in 0 answers").wait_for()
    assert "no limit" not in page.locator("#meters").inner_text()


def test_a_picture_cuts_long_names_visibly_and_keeps_every_node_that_is_named(page: Any) -> None:
    script = """() => {
      const around = { target: 0, pairs: [], labels: { 99: "Universitätsklinikum" } };
      around.neighbours = [...Array(24)].map((_, one) => one + 1);
      const picture = neighbourhood(around, { delete: [], add: [[0, 99]], mask: [] }, [0, 99]);
      return [...picture.querySelectorAll("g")].map((one) => [...one.children].map((part) => part.textContent));
    }"""
    drawn = page.evaluate(script)
    assert ["Universitätsklinikum", "", "Universitätsk…"] in drawn
    assert len(drawn) == 25


def test_a_wrong_key_and_a_wrong_node_are_explained(page: Any, served: Served) -> None:
    page.get_by_label("Your key").fill("privcfs_wrong_key")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("a valid key is needed").wait_for()
    sign_in(page, served.key(f"carl {page.size}"))
    page.get_by_label("Node").fill("nobody")
    page.get_by_text("is not a node").wait_for()
    assert page.get_by_role("button", name="Pay").is_disabled()


def test_a_question_whose_answer_is_lost_pays_once(page: Any, served: Served) -> None:
    secret = served.key(f"eva {page.size}")
    sign_in(page, secret)
    page.get_by_label("Node").fill("person-4")
    page.get_by_role("button", name="Pay 1 and ask").wait_for()

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/v1/releases", lose, times=1)
    page.get_by_role("button", name="Pay 1 and ask").click()
    page.get_by_text("Asking the same again pays once").wait_for()
    page.get_by_role("button", name="Pay 1 and ask").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert served.ask("GET", "/v1/budget", secret).json()["yours"]["spent"] == "1"


def test_the_keyboard_is_enough(page: Any, served: Served) -> None:
    page.get_by_label("Your key").focus()
    page.keyboard.type(served.key(f"dora {page.size}"))
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Ask").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="What a price means").wait_for()
    assert page.evaluate("document.activeElement.id") == "tab-budget"
