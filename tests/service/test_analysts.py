"""What an analyst finds again, confirms, searches and reads about her account; what an owner sees at a glance."""

import json
import time
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privcfs.client import Client
from privcfs.errors import BudgetExhausted, InputError, NotAllowed
from privcfs.gate.accounting import Balance
from privcfs.service.overview import Spending, _about_limits, forecast
from privcfs.service.search import MOST, NamesInOrder, search_numbers
from tests.service.served import Served, advising, untimed
from tests.shell import newcomer


def test_an_answer_says_what_was_paid_and_what_is_left(served: Served) -> None:
    ann = served.new_key("ann", cap="2")
    asked = {"target": "person-3", "epsilon": "0.5", "request_id": "first"}
    found = served.ask("POST", "/v1/releases", ann, asked).json()
    assert (found["paid"], found["left"], found["limited_by"]) == ("0.5", "1.5", "you")
    assert found["in_words"] == "You paid 0.5; 1.5 is left of your limit."
    assert served.ask("GET", "/v1/releases/first", ann).json() == found
    quoted = served.ask("GET", "/v1/quote?epsilon=0.25&target=person-3", ann).json()
    assert quoted["in_words"] == "This costs 0.25; 1.25 would be left of your limit."
    (one,) = served.ask("POST", "/v1/releases/batch", ann, {"questions": [{"target": 4, "epsilon": 0.25}]}).json()
    assert one["in_words"] == "You paid 0.25; 1.25 is left of your limit."


@pytest.mark.parametrize(
    ("epsilon", "charged"),
    [("0.1", "0.1"), (0.1, "0.1"), (1, "1"), (0.25, "0.25"), (1.0, "1"), ("1.50", "1.5")],
    ids=str,
)
def test_a_price_may_be_a_json_number_and_stays_exact(served: Served, epsilon: Any, charged: str) -> None:
    secret = served.new_key(f"exact {epsilon!r}")
    found = served.ask("POST", "/v1/releases", secret, {"target": 3, "epsilon": epsilon})
    assert (found.status_code, found.json()["epsilon"], found.json()["paid"]) == (200, charged, charged)
    assert served.ask("GET", "/v1/budget", secret).json()["yours"]["spent"] == charged


@pytest.mark.parametrize("text", ["0.30000000000000004", "1e-7", "1e30", "true", "-1", "NaN", "Infinity", "[1]"])
def test_a_number_that_is_no_exact_price_is_refused_in_words(served: Served, text: str) -> None:
    body = json.loads(f'{{"target": 3, "epsilon": {text}}}')
    refused = served.ask("POST", "/v1/releases", served.owner, None if text in ("NaN", "Infinity") else body)
    assert refused.status_code == 422, refused.text
    assert len(refused.json()["message"]) > 20


def test_a_spent_budget_is_refused_at_once_and_asks_nobody_to_try_again(served: Served) -> None:
    poor = served.new_key("poor", cap="0.1")
    assert served.ask("POST", "/v1/releases", poor, {"target": 3, "epsilon": "0.1"}).status_code == 200
    seconds = []
    for _ in range(5):
        started = time.monotonic()
        refused = served.ask("POST", "/v1/releases", poor, {"target": 3, "epsilon": "0.1"})
        seconds.append(time.monotonic() - started)
        assert (refused.status_code, refused.json()["error"]) == (402, "BudgetExhausted")
        assert "retry-after" not in refused.headers
    assert min(seconds) < 0.25, seconds


def test_answers_are_found_again_by_whoever_paid_newest_first_in_pages(served: Served) -> None:
    rea, other = served.new_key("rea"), served.new_key("no rea")
    first = served.ask("POST", "/v1/releases", rea, {"target": 3, "epsilon": "0.1", "request_id": "a"}).json()
    verdict = served.ask("POST", "/v1/confirmations", rea, {"release": "a", "epsilon": "0.5", "request_id": "b"}).json()
    served.ask("POST", "/v1/releases", rea, {"target": 4, "epsilon": "0.2", "request_id": "c"})
    found = served.ask("GET", "/v1/answers", rea).json()
    assert [(one["request_id"], one["kind"], one["target_name"]) for one in found["answers"]] == [
        ("c", "release", "person-4"),
        ("b", "confirmation", "person-3"),
        ("a", "release", "person-3"),
    ]
    newest, confirmed, oldest = found["answers"]
    assert (newest["epsilon"], newest["paid"], newest["day"]) == ("0.2", "0.2", date.today().isoformat())
    assert confirmed["answer"]["flips"] == verdict["flips"]
    assert oldest["answer"].items() <= first.items(), "the certificate, word for word"
    assert found["next"] is None
    pages, before = [], ""
    while True:
        page = served.ask("GET", f"/v1/answers?most=1{before}", rea).json()
        pages += page["answers"]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert pages == found["answers"]
    assert served.ask("GET", "/v1/answers", other).json() == {"answers": [], "next": None}
    assert served.ask("GET", "/v1/releases/b", rea).status_code == 404, "a confirmation is no release"


def test_a_confirmation_is_a_noisy_yes_or_no_within_the_cap(served: Served) -> None:
    con = served.new_key("con", cap="3")
    release = served.ask("POST", "/v1/releases", con, {"target": 3, "epsilon": "0.5", "request_id": "r"}).json()
    asked = {"release": "r", "epsilon": 2, "request_id": "v"}
    verdict = served.ask("POST", "/v1/confirmations", con, asked).json()
    assert verdict["reliability"] == "0.881"
    assert verdict["before"] == release["confidence"]
    moved = float(verdict["after"]) - float(verdict["before"])
    assert (moved > 0) == verdict["flips"] or moved == 0
    assert verdict["in_words"] == "You paid 2; 0.5 is left of your limit."
    assert served.ask("POST", "/v1/confirmations", con, asked).json() == verdict, "asked again it is paid once"
    same = served.ask("POST", "/v1/confirmations", con, {"certificate": release, "epsilon": "2", "request_id": "v"})
    assert same.json() == verdict
    change = {"target": 3, "intervention": release["intervention"], "epsilon": "0.25"}
    assert served.ask("POST", "/v1/confirmations", con, change).json()["before"] is None
    beyond = served.ask("POST", "/v1/confirmations", con, {"release": "r", "epsilon": "1"})
    assert (beyond.status_code, beyond.json()["error"]) == (402, "BudgetExhausted")
    others = served.new_key("others", targets=["person-4"])
    refused = served.ask("POST", "/v1/confirmations", others, {"certificate": release, "epsilon": "1"})
    assert refused.status_code == 403
    wrong: list[dict[str, Any]] = [
        {},
        {"release": "nothing"},
        {"release": "r", "certificate": release},
        {"target": 3},
        {"intervention": release["intervention"]},
        {"certificate": {"format": 99}},
        {"target": 3, "intervention": {"delete": 1}},
        {"target": 3, "intervention": {"delete": [[0, 999]], "add": [], "mask": []}},
    ]
    for body in wrong:
        refused = served.ask("POST", "/v1/confirmations", con, {**body, "epsilon": "0.1"})
        assert refused.status_code in (404, 422), (body, refused.text)
    assert served.ask("GET", "/v1/budget", con).json()["yours"]["spent"] == "2.75"


def test_nodes_are_found_by_a_part_of_their_name_among_those_that_may_be_asked_about(served: Served) -> None:
    every, some = served.new_key("every"), served.new_key("some", targets=["person-1", "person-11"])

    def names(secret: str, text: str) -> list[str]:
        found = served.ask("GET", f"/v1/nodes?search={text}", secret).json()["nodes"]
        return [one["name"] for one in found]

    assert names(every, "PERSON-1") == ["person-1", "person-10", "person-11"]
    assert names(every, "son-1") == ["person-1", "person-10", "person-11"]
    assert names(some, "person") == ["person-1", "person-11"]
    assert names(every, "nobody") == names(every, "") == names(every, "%0A") == []
    assert served.ask("GET", "/v1/nodes?search=person-7", every).json()["nodes"] == [{"node": 7, "name": "person-7"}]


def test_names_are_searched_by_prefix_and_then_by_parts() -> None:
    found = NamesInOrder(["Ann Lee", "Leo", "ulee", "lee", "bob", "Straße"])
    assert found.search("LE").names == ["lee", "Leo", "Ann Lee", "ulee"]
    assert found.search("strasse").names == ["Straße"]
    assert found.search("e\nl").names == []
    assert NamesInOrder([]).search("x") == ([], False)


def test_numbers_are_searched_by_their_digits() -> None:
    for count in (1, 2, 9, 10, 11, 100, 1234):
        every = [str(number) for number in range(count)]
        for text in ("0", "1", "7", "9", "10", "11", "23", "00", "01", "100", "999"):
            wanted = {one for one in every if text in one}
            found = search_numbers(text, count, count + 1)
            assert sorted(found.names) == sorted(wanted), (count, text)
            begins = [one.startswith(text) for one in found.names]
            assert begins == sorted(begins, reverse=True)
    assert search_numbers("1", 10**9) == (search_numbers("1", 10**9).names, True)
    assert search_numbers("x", 10).names == search_numbers("²", 10).names == []


def test_a_search_among_a_million_names_takes_milliseconds() -> None:
    names = NamesInOrder(f"customer {number:07d}" for number in range(1_000_000))
    for text in ("cust", "0999999", "r 05", "not there", "9"):
        started = time.monotonic()
        found = names.search(text)
        assert time.monotonic() - started < 0.2, text
        assert len(found.names) <= MOST
    started = time.monotonic()
    assert len(search_numbers("99999", 10**7).names) == MOST
    assert time.monotonic() - started < 0.2


def test_beliefs_stand_beside_a_guess(served: Served) -> None:
    believed = served.ask("GET", "/v1/guess/person-3", served.owner).json()["believed"]
    for when in ("before", "after"):
        assert sum(float(one) for one in believed[when].values()) == pytest.approx(1, abs=0.05)
    assert "not read" in believed["meaning"]


def test_the_owner_sees_rows_with_day_and_target_and_what_needs_attention(served: Served) -> None:
    spent = served.new_key("nearly", cap="1", days=3)
    assert served.ask("POST", "/v1/releases", spent, {"target": 5, "epsilon": "0.9"}).status_code == 200
    answer, charge = served.ask("GET", "/v1/ledger/newest?most=2", served.owner).json()
    assert (answer["kind"], charge["kind"]) == ("RELEASED", "HELD")
    assert (charge["target_name"], charge["question"], charge["cost"]) == ("person-5", "release", "0.9")
    assert charge["day"] == date.today().isoformat()
    found = served.ask("GET", "/v1/overview", served.owner).json()
    assert set(found["forecast"]) == {"left", "last_7_days", "last_30_days"}
    whole = served.ask("GET", "/v1/budget", served.owner).json()["all"]
    assert found["forecast"]["left"] == whole["left"]
    assert found["forecast"]["last_30_days"]["spent"] == whole["spent"]
    words = [one["in_words"] for one in found["alerts"]]
    assert "Analyst nearly spent epsilon 0.9 of 1: 90 %." in words
    assert any("of nearly ends on" in one for one in words)


def test_a_forecast_follows_the_pace_of_the_last_days() -> None:
    today = date(2026, 11, 18)
    spent = {today - timedelta(days=ago): Fraction(1) for ago in (0, 1, 20, 40)}
    found = forecast(spent, Fraction(4), today)
    assert found["last_7_days"] == {"spent": "2", "per_day": "0.285714", "used_up": "2026-12-02"}
    assert found["last_30_days"] == {"spent": "3", "per_day": "0.1", "used_up": "2026-12-28"}
    young = forecast({today: Fraction(2)}, Fraction(4), today)
    assert young["last_7_days"]["used_up"] == "2026-11-20", "a ledger of one day has the pace of that day"
    assert forecast({}, Fraction(4), today)["last_7_days"] == {"spent": "0", "per_day": "0", "used_up": None}
    assert forecast({today: Fraction(2)}, Fraction(0), today)["last_7_days"]["used_up"] == "2026-11-18"
    assert forecast({today: Fraction(1, 10**9)}, Fraction(10**9), today)["last_7_days"]["used_up"] is None


def test_what_is_paid_at_nodes_does_not_count_against_the_total_in_a_forecast() -> None:
    day = {"day": "2026-11-18", "terms": {}}

    def row(position: int, cost: int, **more: Any) -> dict[str, Any]:
        return {"position": position, "kind": "HELD", "cost": cost, "body": json.dumps({**day, **more})}

    rows = [row(1, 10**9), row(2, 10**9, nodes=[3]), row(3, 10**9, nodes=[3], terms={"in_full": True})]
    spending = Spending()
    for _ in range(2):
        assert spending.follow(lambda after: rows[after:]) == {date(2026, 11, 18): Fraction(2)}


def test_an_account_alerts_from_four_fifths_on() -> None:
    def about(spent: str, limit: str | None) -> list[str]:
        account = Balance(None if limit is None else Fraction(limit), Fraction(spent), Fraction(0), 1)
        return [one["in_words"] for one in _about_limits(account, {})]

    assert about("7.9", "10") == about("7.9", None) == []
    assert about("8", "10") == ["All analysts together spent epsilon 8 of 10: 80 %."]


def test_an_account_of_a_node_is_quoted_paid_and_refused_over_http(tmp_path: Path) -> None:
    shell = advising(untimed(newcomer(tmp_path)))
    path = tmp_path / "vault.toml"
    settings = path.read_text().replace("# reads = ", "reads = ")
    path.write_text(settings.replace('limit = "10" ', 'limit_per_node = "1"\nlimit = "10" '))
    service = Served(shell)
    try:
        ann = service.new_key("ann")
        quoted = service.ask("GET", "/v1/quote?epsilon=0.75&target=person-3", ann).json()
        assert (quoted["left"], quoted["limited_by"], quoted["node"]["left"]) == ("1", "node", "1")
        assert quoted["in_words"] == "This costs 0.75; 0.25 would be left of this node's limit."
        found = service.ask("POST", "/v1/releases", ann, {"target": "person-3", "epsilon": "0.75"}).json()
        assert found["in_words"] == "You paid 0.75; 0.25 is left of this node's limit."
        refused = service.ask("POST", "/v1/releases", ann, {"target": "person-3", "epsilon": "0.5"})
        assert (refused.status_code, "person-3" in refused.text or "node 3" in refused.text) == (402, True)
        for told in ("at most epsilon 0.75 about one edge", "a person with m edges", "any two graphs"):
            assert told in refused.json()["message"], "a refusal says what all answers may have told"
        again = service.ask("GET", "/v1/quote?epsilon=0.25&target=person-3", ann).json()
        assert [again["losses"][name] for name in ("one_edge", "any_two_graphs")] == ["0.75", "0.75"]
        assert service.ask("POST", "/v1/releases", ann, {"target": "person-4", "epsilon": "1"}).status_code == 200
        budget = service.ask("GET", "/v1/budget", service.owner).json()
        assert (budget["all"]["spent"], budget["losses"]["one_edge"]) == ("0", "1.75")
        assert budget["losses"]["in_words"]
        alerts = service.ask("GET", "/v1/overview", service.owner).json()["alerts"]
        assert [one["kind"] for one in alerts if one["kind"] in ("nodes", "budget")] == ["nodes"]
        confirmed = service.ask("POST", "/v1/confirmations", ann, {"certificate": found, "epsilon": "1"}).json()
        assert confirmed["limited_by"] != "node", "a confirmation reads the whole graph"
    finally:
        assert "Traceback" not in service.stop()


def test_the_client_confirms_lists_searches_and_advises(tmp_path: Path) -> None:
    service = Served(advising(untimed(newcomer(tmp_path))))
    try:
        with Client(service.url, service.new_key("kim", cap="4")) as client:
            release = client.release("person-3", "0.5", request_id="mine")
            verdict = client.confirm(release, "1", request_id="yes or no")
            assert client.confirm("mine", "1", request_id="yes or no") == verdict
            assert [one["request_id"] for one in client.answers()] == ["yes or no", "mine"]
            assert client.nodes("person-3") == [{"node": 3, "name": "person-3"}]
            with pytest.raises(NotAllowed, match="not for publication"):
                client.advise("person-3")
            with pytest.raises(BudgetExhausted):
                client.confirm(release, "3")
        with Client(service.url, service.new_key("pia", role="person", targets=[3])) as client:
            assert client.advise() == client.advise("person-3") == client.advise(3)
            assert len(client.advise(alternatives=0, told=1).changes) == 1
            paid = client.advise(epsilon="0.5", request_id="hers")
            assert client.advise(epsilon="0.5", request_id="hers") == paid
            with pytest.raises(NotAllowed, match="person's key"):
                client.budget()
            with pytest.raises(InputError, match="told is 9"):
                client.advise(told=9)
    finally:
        assert "Traceback" not in service.stop()
