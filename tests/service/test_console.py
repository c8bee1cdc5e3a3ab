"""The console for analysts, in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.service.browsing import ask_about, choose_node, enter_key, needs_chromium, picture, sign_in
from tests.service.served import Served
from tests.service.test_http import in_names

pytestmark = needs_chromium


def pay_button(page: Any) -> Any:
    return page.locator("#pay")


def test_an_analyst_sees_what_is_free_and_the_cost_before_paying_and_the_answer_after(
    page: Any, served: Served
) -> None:
    sign_in(page, served.key(f"ann {page.size}"))
    choose_node(page, "person-3")
    free = page.locator("#free")
    assert "First, for nothing" in free.inner_text()
    assert "Believed from imagined graphs" in free.inner_text()
    assert "The true prediction is private" in free.inner_text()
    assert page.get_by_text("Believed decision now").is_visible()
    assert page.get_by_text("Believed decision after this change").is_visible()
    page.get_by_role("button", name="Pay 1 and ask", disabled=False).wait_for()
    assert page.locator("#before").inner_text().split("\n")[1] == "epsilon 1"
    assert "4 of your own limit" in page.locator("#before").inner_text()
    page.get_by_text("What an answer may name").click()
    assert page.get_by_text(re.compile(r"^person-[0-9]+ - person-[0-9]+$")).count() > 1
    page.get_by_role("button", name="Try it on public data").click()
    page.get_by_text("public data only, not paid").wait_for()
    page.get_by_text("What an answer may name").click()
    page.get_by_role("button", name="Pay 1 and ask").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    answer = page.locator("#answer")
    page.get_by_text("For nothing, public data alone suggest: ").wait_for()
    assert re.search(r"paid (epsilon )?1\b.*\b3\b.*left", answer.locator(".paid").inner_text())
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the certificate").click()
    certificate = json.loads(Path(waiting.value.path()).read_text())
    assert certificate["target"] == 3
    assert certificate["labels"]["3"] == "person-3"
    assert answer.locator(".words").first.inner_text() == in_names(certificate["intervention"])
    assert not re.search(r"(delete|add) [0-9]", answer.locator(".zero").inner_text())
    drawn = answer.locator(".neighbourhood text").all_text_contents()
    assert "person-3" in drawn
    assert all(re.fullmatch(r"person-[0-9]+", name) for name in drawn)
    legend = answer.locator(".legend").inner_text().split("\n")
    for kind, words in (("delete", "to end"), ("add", "new")):
        assert (words in legend) == bool(certificate["intervention"][kind])
    (served.shell.folder / "release.json").write_text(json.dumps(certificate))
    assert served.shell.ask("verify", "release.json")["valid"]
    picture(page, "ask")
    page.get_by_role("tab", name="Budget").click()
    page.get_by_text("You: epsilon 1 of 4 spent in 1 answer, 3 left").wait_for()


def test_answers_are_found_again_after_a_reload(page: Any, served: Served) -> None:
    sign_in(page, served.key(f"rea {page.size}"))
    ask_about(page, "person-5", "0.5")
    said = page.locator("#answer .words").first.inner_text()
    page.reload()
    page.get_by_role("tab", name="My answers").click()
    item = page.locator("#answer-list summary")
    item.wait_for()
    assert item.count() == 1
    assert "person-5" in item.inner_text()
    assert said in item.inner_text()
    assert "0.5" in item.inner_text()
    item.click()
    page.get_by_text("Confirm this answer").wait_for()
    picture(page, "answers")
    page.reload()
    page.locator("#answer-list summary").wait_for()
    page.get_by_label("Find among them").fill("person-11")
    assert not page.locator("#answer-list summary").is_visible()
    assert served.ask("GET", "/v1/budget", served.owner).json()["analysts"][f"rea {page.size}"]["spent"] == "0.5"


def test_an_answer_is_confirmed_at_a_price_of_its_own(page: Any, served: Served) -> None:
    secret = served.key(f"cod {page.size}")
    sign_in(page, secret)
    ask_about(page, "person-6", "0.5")
    page.get_by_text("Confirm this answer").click()
    price = page.get_by_label("Price of the confirmation (epsilon)")
    price.fill("0,5")
    page.get_by_text("Write a point and no comma: 0.5").wait_for()
    assert page.get_by_role("button", name="Write a price first").is_disabled()
    price.fill("1")
    page.get_by_text("right 73 % of the time").wait_for()
    page.get_by_role("button", name="Pay 1 and confirm").click()
    page.get_by_text(re.compile("(Yes, it flips|No, it does not flip) the decision")).wait_for()
    numbers = re.findall(r"([0-9]+)\s%", page.get_by_text(re.compile("Before: .* Now: ")).inner_text())
    assert len(numbers) == 2
    assert served.ask("GET", "/v1/budget", secret).json()["yours"]["spent"] == "1.5"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("abc", "Write a number such as 1 or 0.25"),
        ("-1", "A price must be more than 0"),
        ("0", "A price must be more than 0"),
        ("0.000", "A price must be more than 0"),
        ("0,1", "Write a point and no comma: 0.1"),
        ("", "Write a price"),
        ("1e2", "Write a number such as 1 or 0.25"),
        ("0.0000000001", "nine decimal places"),
        ("65", "64 at most"),
        ("1.0625", None),
        ("5", "more than what is left"),
        ("0.000001", "least"),
    ],
)
def test_a_mistyped_price_is_explained_beside_the_field_and_cannot_be_paid(
    phone: Any, served: Served, written: str, problem: str | None
) -> None:
    sign_in(phone, served.key("typist"))
    choose_node(phone, "person-3")
    phone.get_by_role("button", name="Pay 1 and ask", disabled=False).wait_for()
    field = phone.get_by_label("Price (epsilon)", exact=True)
    field.fill(written)
    assert pay_button(phone).is_disabled(), "at once, before the service answers"
    if problem is None:
        phone.get_by_role("button", name=f"Pay {written} and ask", disabled=False).wait_for()
        return
    phone.locator("#epsilon-problem").get_by_text(problem).wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    phone.wait_for_timeout(400)
    assert pay_button(phone).is_disabled()
    assert pay_button(phone).inner_text() != "Pay 1 and ask"
    field.press("Enter")
    assert served.ask("GET", "/v1/budget", served.owner).json()["analysts"]["typist"]["spent"] == "0"
    field.fill("0.5")
    phone.get_by_role("button", name="Pay 0.5 and ask", disabled=False).wait_for()
    assert not phone.locator("#epsilon-problem").is_visible()


def test_the_button_never_names_another_price_than_the_one_that_is_paid(phone: Any, served: Served) -> None:
    """A quote that comes late does not put an old price on the button."""
    sign_in(phone, served.key("hasty"))
    choose_node(phone, "person-3")
    phone.get_by_role("button", name="Pay 1 and ask", disabled=False).wait_for()
    late: list[Any] = []
    phone.route("**/v1/quote?epsilon=2&*", lambda route: late.append(route))
    field = phone.get_by_label("Price (epsilon)", exact=True)
    field.fill("2")
    phone.wait_for_timeout(500)
    assert late, "the quote for 2 is under way"
    assert pay_button(phone).is_disabled()
    field.fill("0.5")
    phone.get_by_role("button", name="Pay 0.5 and ask", disabled=False).wait_for()
    late[0].continue_()
    phone.wait_for_timeout(300)
    assert pay_button(phone).inner_text() == "Pay 0.5 and ask"
    with phone.expect_request("**/v1/releases") as sent:
        pay_button(phone).click()
    assert json.loads(sent.value.post_data)["epsilon"] == "0.5"


def test_nodes_are_found_by_typing_and_chosen_with_the_keyboard(page: Any, served: Served) -> None:
    sign_in(page, served.key(f"sue {page.size}"))
    field = page.get_by_role("combobox", name="Node")
    field.press_sequentially("son-1")
    options = page.get_by_role("option")
    options.first.wait_for()
    assert options.all_inner_texts() == ["person-1", "person-10", "person-11"]
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    pointed = page.locator(f"#{field.get_attribute('aria-activedescendant')}")
    assert pointed.inner_text() == "person-10"
    page.keyboard.press("Enter")
    assert field.input_value() == "person-10"
    assert field.get_attribute("aria-expanded") == "false"
    page.get_by_role("button", name="Pay 1 and ask", disabled=False).wait_for()
    field.fill("son-1")
    assert pay_button(page).is_disabled(), "a part of a name is no node"
    options.nth(2).click()
    assert field.input_value() == "person-11"
    page.get_by_role("button", name="Pay 1 and ask", disabled=False).wait_for()


def test_a_picture_cuts_long_names_visibly_keeps_every_named_node_and_overlaps_nothing(page: Any) -> None:
    script = """async () => {
      const { neighbourhood } = await import("/drawing.js");
      const others = [...Array(24).keys()].map((one) => one + 1);
      const labels = Object.fromEntries(others.map((one) => [one, "WWWWWWWWWWWWWWWWWWWW"]));
      Object.assign(labels, { 0: "MMMMMMMMMMMMMMMMMM", 99: "Universitätsklinikum" });
      const around = { target: 0, neighbours: others, labels };
      around.pairs = [...others.map((one) => [0, one]), [1, 9], [2, 3]];
      const { picture, legend } = neighbourhood(around, { delete: [[0, 1]], add: [[0, 99]], mask: [] });
      document.getElementById("enter").append(picture, ...legend);
      const texts = [...picture.querySelectorAll("text")];
      const boxes = texts.map((one) => one.getBBox());
      const lines = [...picture.querySelectorAll("path")];
      const inside = (box, { x, y }) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
      const along = (line) => (one) => line.getPointAtLength((line.getTotalLength() * one) / 100);
      const points = lines.flatMap((line) => [...Array(101).keys()].map(along(line)));
      const beside = (a, b) => a.x >= b.x + b.width || b.x >= a.x + a.width;
      const meet = (a, b) => !beside(a, b) && a.y < b.y + b.height && b.y < a.y + a.height;
      return {
        names: [...picture.querySelectorAll("g")].map((one) => [...one.children].map((part) => part.textContent)),
        crossed: boxes.filter((box) => points.some((point) => inside(box, point))).length,
        overlapping: boxes.filter((box, one) => boxes.some((other, two) => one < two && meet(box, other))).length,
        outside: boxes.filter((box) => box.x < 0 || box.x + box.width > 400).length,
        legend: legend.map((one) => one.textContent).join(" "),
      };
    }"""
    drawn = page.evaluate(script)
    cut = next(shown for full, _, shown in drawn["names"] if full == "Universitätsklinikum")
    assert re.fullmatch(r"Universität[a-z]*…", cut)
    assert len(drawn["names"]) == 13
    assert (drawn["crossed"], drawn["overlapping"], drawn["outside"]) == (0, 0, 0)
    assert "13 further public connections are not drawn" in drawn["legend"]


def test_percentages_of_an_attacker_are_never_rounded_down(page: Any) -> None:
    script = """async () => {
      const { accuracy, accuracyInPercent, priceProblem } = await import("/common.js");
      const prices = [0.001, 0.1, 0.5, 1, 2, 4, 5.3, 8, 10, 12, 20, 64];
      return prices.map((one) => [one, 100 * accuracy(one), accuracyInPercent(one)]);
    }"""
    shown = page.evaluate(script)
    for price, exact, words in shown:
        said = float(words.removesuffix("\u00a0%"))
        assert exact - 1e-9 <= said <= exact + 0.11, price
        assert len(words) <= len("99.9999 %")
    assert {price: words for price, _, words in shown}[8] == "99.97\u00a0%"


def test_a_wrong_key_and_a_wrong_node_are_explained(page: Any, served: Served) -> None:
    enter_key(page, "privcfs_wrong_key")
    page.get_by_text("This key is not valid").wait_for()
    sign_in(page, served.key(f"carl {page.size}"))
    page.get_by_label("Node", exact=True).fill("nobody")
    page.get_by_text("is not a node").wait_for()
    assert pay_button(page).is_disabled()


def test_a_question_whose_answer_is_lost_pays_once_even_after_a_reload(page: Any, served: Served) -> None:
    secret = served.key(f"eva {page.size}")
    sign_in(page, secret)
    choose_node(page, "person-4")
    button = page.get_by_role("button", name="Pay 1 and ask", disabled=False)
    button.wait_for()

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/v1/releases", lose, times=2)
    button.click()
    page.get_by_text("Asking the same again pays once").wait_for()
    button.click()
    page.get_by_text("Asking the same again pays once").wait_for()
    page.reload()
    page.get_by_text("It may be paid already: asking the same again pays once.").wait_for()
    assert page.get_by_label("Node", exact=True).input_value() == "person-4"
    button.click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert served.ask("GET", "/v1/budget", secret).json()["yours"]["spent"] == "1"


def test_the_keyboard_is_enough(page: Any, served: Served) -> None:
    page.get_by_label("Your key").focus()
    page.keyboard.type(served.key(f"dora {page.size}"))
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Ask").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="What a price means").wait_for()
    assert page.evaluate("document.activeElement.id") == "tab-budget"


def test_analysts_read_no_words_for_owners(page: Any, served: Served) -> None:
    sign_in(page, served.key(f"lay {page.size}"))
    ask_about(page, "person-2", "0.1")
    for tab in ("My answers", "Budget", "Ask"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        text = page.locator("body").inner_text()
        for word in ("node_ids", "Authorization", "Bearer", "vault.toml", "by_number", "undefined", "NaN", "[object"):
            assert word not in text, (tab, word)
