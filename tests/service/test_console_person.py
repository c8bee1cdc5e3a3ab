"""The console for a person, on a phone, in a real browser: her decision's way out, for her alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privcfs.public.advice import Advice
from tests.service.browsing import Browsed, enter_key, needs_chromium, picture, sign_in
from tests.service.served import Served, untimed
from tests.shell import Shell, newcomer

pytestmark = needs_chromium
HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=2</script>'


def with_advice(shell: Shell) -> Shell:
    """The model is kept, and the owner says that people know their edges."""
    path = shell.folder / "vault.toml"
    settings = path.read_text()
    for before, after in (
        ('model_is = "secret"', 'model_is = "kept"'),
        ('model = "public_model.safetensors"', '# model = "public_model.safetensors"'),
        ("# people_know_their_edges = true", "people_know_their_edges = true"),
    ):
        assert before in settings
        settings = settings.replace(before, after)
    path.write_text(settings)
    return shell


def with_a_hostile_name(shell: Shell) -> Shell:
    """Renames one node; its name must stay text wherever it is shown."""
    for name in ("nodes.txt", "edges.csv", "public_edges.csv"):
        path = shell.folder / name
        text = re.sub(r"\bperson-7\b", lambda _: HOSTILE, path.read_text())
        if name.endswith(".csv"):
            text = text.replace(HOSTILE, '"' + HOSTILE.replace('"', '""') + '"')
        path.write_text(text)
    return shell


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shell = newcomer(tmp_path_factory.mktemp("person"))
    service = Served(with_a_hostile_name(with_advice(untimed(shell))))
    yield service
    assert "Traceback" not in service.stop()


def test_a_person_gets_her_advice_in_three_steps_on_a_phone(phone: Any, served: Served) -> None:
    secret = served.key("pia", "--role", "person", "--node", "person-3")
    # First step: the page is open. Second step: the key.
    enter_key(phone, secret)
    button = phone.get_by_role("button", name="Show my way out")
    button.wait_for()
    assert phone.get_by_text("This is for you alone.").first.is_visible()
    box = button.bounding_box()
    assert box["y"] + box["height"] <= phone.viewport_size["height"], "without scrolling"
    # Third step: one tap.
    button.tap()
    phone.get_by_role("heading", name="What you could do").wait_for()
    found = served.ask("POST", "/v1/advice", secret, {}).json()
    best = phone.locator("#advice-best")
    change = found["changes"][0]
    names = found["labels"]
    for pair in change["intervention"]["delete"]:
        other = next(node for node in pair if node != found["target"])
        assert f"End your connection with {names[str(other)]}" in best.inner_text()
    for pair in change["intervention"]["add"]:
        other = next(node for node in pair if node != found["target"])
        assert f"Connect with {names[str(other)]}" in best.inner_text()
    for feature in change["intervention"]["mask"]:
        assert f"Leave out feature {feature}" in best.inner_text()
    assert re.search(r"It flips the decision: [a-z ]+, (more than |less than )?[0-9]+\s%", best.inner_text())
    assert best.get_by_role("img", name=re.compile("It flips the decision")).is_visible()
    assert phone.locator("#advice-others > li").count() == len(found["changes"]) - 1
    assert phone.get_by_text("Believed present decision").is_visible()
    assert phone.get_by_text("Believed, not known").is_visible()
    assert phone.get_by_text("What this is computed from").is_visible()
    phone.get_by_text("What this rests on").click()
    assert phone.get_by_text("You know all of your own connections").is_visible()
    phone.get_by_text("What this rests on").click()
    if change["intervention"]["delete"] or change["intervention"]["add"]:
        assert "You" in phone.locator("#advice-picture text").all_text_contents()
    picture(phone, "advice")
    with phone.expect_download() as waiting:
        phone.get_by_role("button", name="Save the certificate").click()
    saved = Path(waiting.value.path()).read_text()
    assert Advice.from_json(saved).target == 3
    assert json.loads(saved)["changes"] == found["changes"]
    (served.shell.folder / "advice.json").write_text(saved)
    assert served.ask("GET", "/v1/budget", served.owner).json()["all"]["spent"] == "0"


def test_she_may_say_which_decision_she_was_told(phone: Any, served: Served) -> None:
    enter_key(phone, served.key("tia", "--role", "person", "--node", "person-5"))
    told = phone.get_by_label("Which decision were you told?")
    told.wait_for()
    assert told.locator("option").count() == 4
    told.select_option("1")
    with phone.expect_request("**/v1/advice") as sent:
        phone.get_by_role("button", name="Show my way out").tap()
    assert json.loads(sent.value.post_data) == {"target": "person-5", "told": 1}
    phone.get_by_text("You said that you were told class 1").wait_for()
    assert phone.get_by_text("Believed present decision").is_visible(), "and what follows from that"


def test_a_person_with_two_nodes_chooses(phone: Any, served: Served) -> None:
    enter_key(phone, served.key("two", "--role", "person", "--node", "person-1", "--node", "person-2"))
    phone.get_by_label("About whom?").select_option("person-2")
    with phone.expect_response("**/v1/advice") as answered:
        phone.get_by_role("button", name="Show my way out").tap()
    assert answered.value.json()["target"] == 2


def test_a_mistyped_price_of_advice_is_explained(phone: Any, served: Served) -> None:
    enter_key(phone, served.key("uma", "--role", "person", "--node", "person-4"))
    phone.get_by_text("Use other people's connections too, at a price").click()
    price = phone.get_by_label("Price (epsilon); leave it empty")
    for written in ("abc", "-1", "0", "0,1"):
        price.fill(written)
        assert phone.locator("#person-epsilon-problem").is_visible()
        assert phone.locator("#person-show").is_disabled()
    price.fill("1")
    phone.get_by_role("button", name="Pay 1 and show my way out", disabled=False).click()
    phone.get_by_text("read at a price of epsilon 1").wait_for()
    assert served.ask("GET", "/v1/budget", served.owner).json()["all"]["spent"] == "1"


def test_nothing_of_hers_is_left_after_signing_out(phone: Any, served: Served) -> None:
    enter_key(phone, served.key("ria", "--role", "person", "--node", "person-6"))
    phone.get_by_role("button", name="Show my way out").tap()
    phone.get_by_role("heading", name="What you could do").wait_for()
    phone.get_by_role("button", name="Sign out").click()
    phone.get_by_label("Your key").wait_for()
    assert phone.evaluate("sessionStorage.length + localStorage.length") == 0
    assert phone.locator("#advice-best").text_content() == ""


def test_whom_a_proxy_names_is_asked_for_no_key(browser: Any, served: Served) -> None:
    """The browser sends no key; the proxy, here the test, says who asks."""
    secret = served.key("oia", "--role", "person", "--node", "person-3")

    def named(route: Any) -> None:
        route.continue_(headers={**route.request.headers, "authorization": f"Bearer {secret}"})

    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.route("**/v1/**", named)
    page.goto(served.url)
    page.get_by_role("button", name="Show my way out").click()
    page.get_by_role("heading", name="What you could do").wait_for()
    assert not page.get_by_label("Your key").is_visible()
    assert not page.get_by_role("button", name="Sign out").is_visible()
    page.close()


def test_a_hostile_name_of_a_node_stays_text(browser: Any, served: Served) -> None:
    key = served.key("sly", "--role", "person", "--node", HOSTILE)
    browsed = Browsed(browser, served.url, "phone")
    page = browsed.page
    enter_key(page, key)
    page.get_by_text(HOSTILE).first.wait_for()
    page.get_by_role("button", name="Show my way out").click()
    page.get_by_role("heading", name="What you could do").wait_for()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, served.owner)
    page.get_by_label("Node", exact=True).fill("onerror")
    page.get_by_role("option", name=HOSTILE).click()
    page.get_by_role("button", name="Pay 1 and ask", disabled=False).click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    for tab, part in (("My answers", "answers"), ("Ledger", "ledger"), ("Keys", "keys"), ("Log", "log")):
        page.get_by_role("tab", name=tab).click()
        page.locator(f"#{part}").get_by_text("onerror").first.wait_for()
    assert page.evaluate("window.broken") is None
    assert page.locator("main img[src=x], main script").count() == 0
    browsed.close()
