"""Keys of persons: a real server advises them about their own nodes, and tells nobody else."""

import csv
import json
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from privcfs.errors import InputError, NotAllowed, SettingsError
from privcfs.public.advice import Advice
from privcfs.service.advising import BLOCK
from privcfs.service.database import open_database
from privcfs.service.keys import PAGE, Keys, Terms, Wish
from tests.service.documented import ENDPOINTS, OPENED_BY, address
from tests.service.served import Served, advising, untimed
from tests.shell import newcomer

Ask = Callable[[str, Any], httpx.Response]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    service = Served(advising(untimed(newcomer(tmp_path_factory.mktemp("people")))))
    yield service
    said = service.stop()
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def pia(served: Served) -> str:
    return served.key("pia", "--role", "person", "--node", "person-3")


def person(served: Served, name: str, *nodes: str, **terms: Any) -> str:
    return served.new_key(name, role="person", targets=list(nodes), **terms)


def test_a_person_is_advised_about_her_own_node_and_nothing_is_paid(served: Served, pia: str) -> None:
    found = served.ask("POST", "/v1/advice", pia, {})
    assert found.status_code == 200, found.text
    fields = found.json()
    assert (fields["kind"], fields["target"], fields["labels"]["3"]) == ("advice", 3, "person-3")
    assert "for you alone" in fields["promise"]
    assert set(fields["meaning"]) == {"confidence", "believed"}
    assert fields["in_words"].startswith("person-3: ")
    assert found.headers["cache-control"] == "no-store"
    assert len(found.content) % BLOCK == 0, "a proxy that writes lengths down learns nothing from it"
    one = Advice.from_json(found.text)
    assert one.target == 3
    (served.shell.folder / "advice.json").write_text(found.text)
    assert served.shell.ask("verify", "advice.json")["valid"]
    for target in ("person-3", 3):
        assert served.ask("POST", "/v1/advice", pia, {"target": target}).json() == fields
    assert fields["premises"][0].startswith("You know all of your own connections")
    alone = served.ask("POST", "/v1/advice", pia, {"alternatives": 0, "told": 1}).json()
    assert alone["meaning"]["told"].startswith("You said that you were told class 1")
    assert len(alone["changes"]) == 1
    assert served.ask("GET", "/v1/budget", served.owner).json()["all"]["spent"] == "0"
    assert served.ask("GET", "/v1/me", pia).json()["targets"] == ["person-3"]
    assert served.ask("GET", "/v1/guess/person-3", pia).json()["target"] == 3


def refused_for_others(ask: Ask) -> None:
    """The check: a key that is bound to person-3 learns nothing about another node, however it is named."""
    for target in ("person-4", 4):
        answer = ask("/v1/advice", {"target": target})
        assert answer.status_code == 403, answer.text
        assert "bound to its own nodes" in answer.json()["message"]
    assert ask("/v1/advice", {"target": "nobody"}).status_code == 404
    assert ask("/v1/guess/person-4", None).status_code == 403


def test_a_key_that_is_bound_to_one_node_gets_nothing_about_another(served: Served, pia: str) -> None:
    refused_for_others(lambda path, body: served.ask("GET" if body is None else "POST", path, pia, body))


def test_the_check_rejects_a_server_that_advises_about_any_node(served: Served) -> None:
    """The twin: its keys are bound to the node that is asked about."""

    def unbound(path: str, body: Any) -> httpx.Response:
        target = path.rpartition("/")[2] if body is None else f"person-{str(body['target']).removeprefix('person-')}"
        known = target.removeprefix("person-").isdigit()
        secret = person(served, "any", target if known else "person-3")
        return served.ask("GET" if body is None else "POST", path, secret, body)

    with pytest.raises(AssertionError, match="advice"):
        refused_for_others(unbound)


def test_every_endpoint_opens_for_the_roles_that_the_page_names(served: Served, pia: str) -> None:
    keys = {"owner": served.owner, "analyst": served.new_key("ann"), "person": pia}
    bodies: dict[str, Any] = {"/v1/keys": {"analyst": "x"}, "/v1/advice": {}}
    bodies["/v1/releases/batch"] = {"questions": [{"target": "person-3", "epsilon": "0.1"}]}
    for (method, path), whose in ENDPOINTS.items():
        for role, secret in keys.items():
            where = address(path).replace("person-1", "person-3") + ("?epsilon=1" if path == "/v1/quote" else "")
            body = bodies.get(path, {"target": "person-3", "epsilon": "0.1"}) if method == "POST" else None
            found = served.ask(method, where, secret, body)
            opens = role in OPENED_BY[whose]
            assert (found.status_code == 403) != opens, (method, path, role, found.text)
            assert opens or len(found.json()["message"]) > 20


def test_advice_is_not_to_be_had_in_public(served: Served) -> None:
    for secret in (served.owner, served.new_key("bob")):
        refused = served.ask("POST", "/v1/advice", secret, {"target": "person-3"})
        assert (refused.status_code, refused.json()["error"]) == (403, "NotAllowed")
        assert "not for publication" in refused.json()["message"]
    assert served.ask("POST", "/v1/advice", None, {}).status_code == 401


def test_a_key_with_several_nodes_says_which_one(served: Served) -> None:
    both = person(served, "two", "person-1", "person-2")
    unsaid = served.ask("POST", "/v1/advice", both, {})
    assert (unsaid.status_code, "say which one" in unsaid.json()["message"]) == (422, True)
    assert served.ask("POST", "/v1/advice", both, {"target": 2}).json()["target"] == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"alternatives": 11}, 422),
        ({"alternatives": -1}, 422),
        ({"alternatives": True}, 422),
        ({"told": 3}, 422),
        ({"told": -1}, 422),
        ({"told": "1"}, 422),
        ({"epsilon": "0"}, 422),
        ({"epsilon": "0.001"}, 422),
        ({"target": None, "more": 1}, 422),
        ({"epsilon": "11"}, 402),
    ],
    ids=str,
)
def test_wrong_questions_are_refused_and_cost_nothing(served: Served, pia: str, body: Any, status: int) -> None:
    before = served.ask("GET", "/v1/budget", served.owner).json()["all"]
    refused = served.ask("POST", "/v1/advice", pia, body)
    assert refused.status_code == status, refused.text
    assert set(refused.json()) == {"error", "message"}
    assert served.ask("GET", "/v1/budget", served.owner).json()["all"] == before


def test_paid_advice_is_paid_once_by_its_person_within_her_cap(served: Served) -> None:
    una = person(served, "una", "person-5", cap=1)
    asked = {"epsilon": 0.75, "request_id": "mine"}
    found = served.ask("POST", "/v1/advice", una, asked)
    assert found.status_code == 200, found.text
    assert (found.json()["epsilon"], found.json()["request_id"]) == ("0.75", "mine")
    assert served.ask("POST", "/v1/advice", una, asked).json() == found.json()
    beyond = served.ask("POST", "/v1/advice", una, {"epsilon": "0.5"})
    assert (beyond.status_code, beyond.json()["error"]) == (402, "BudgetExhausted")
    analyst = served.new_key("una")
    assert served.ask("GET", "/v1/budget", analyst).json()["yours"]["spent"] == "0", "another account, of that name"
    assert served.ask("GET", "/v1/releases/mine", analyst).status_code == 404


def tells_of_advice(text: str, advice: dict[str, Any]) -> bool:
    """Whether a text holds something of a piece of advice: a change, a confidence, a class, or its length."""
    changes = [json.dumps(one["intervention"]) for one in advice["changes"]]
    numbers = [one["confidence"] for one in advice["changes"]] + list(advice["believed"].values())
    in_words = advice["in_words"].partition(": ")[2]
    return any(one in text for one in [*changes, *numbers, in_words, str(len(json.dumps(advice)))])


def test_the_log_says_that_a_person_asked_and_nothing_of_her_advice(served: Served, pia: str) -> None:
    secret = person(served, "ada", "person-3")
    advice = served.ask("POST", "/v1/advice", secret, {}).json()
    assert advice == served.ask("POST", "/v1/advice", pia, {}).json()
    entries = [one for one in served.ask("GET", "/v1/log?most=1000", served.owner).json() if "ada" in one["analyst"]]
    assert [one["action"] for one in entries] == ["POST /v1/advice"]
    time.sleep(1.2)  # until the housekeeper has written everything
    kept = b"".join(path.read_bytes() for path in served.shell.folder.glob("service.db*")).decode("latin-1")
    assert "person: ada" in kept
    assert not tells_of_advice(json.dumps(entries), advice)
    for line in advice["changes"]:
        assert json.dumps(line["intervention"]) not in kept
    metrics = served.ask("GET", "/metrics", served.owner).text
    assert "privcfs_advice_total" in metrics
    assert 'privcfs_seconds_bucket{le="0.05",path="/v1/advice"}' not in metrics
    assert "person-3" not in metrics


def test_the_check_rejects_a_log_that_holds_advice(served: Served, pia: str) -> None:
    """The twins: a log with the answer in words, with its confidence, and with its length."""
    advice = served.ask("POST", "/v1/advice", pia, {}).json()
    best = advice["changes"][0]
    for note in (advice["in_words"], best["confidence"], f"{len(json.dumps(advice))} bytes"):
        assert tells_of_advice(json.dumps([{"action": f"POST /v1/advice {note}"}]), advice)


def test_a_person_s_key_ends_is_revoked_and_is_paced_as_others_are(served: Served) -> None:
    made = served.ask(
        "POST", "/v1/keys", served.owner, {"analyst": "eve", "role": "person", "targets": [7], "per_minute": 2}
    )
    assert (made.status_code, made.json()["targets"]) == (201, ["person-7"])
    secret = made.json()["secret"]
    statuses = [served.ask("POST", "/v1/advice", secret, {}).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    served.ask("DELETE", f"/v1/keys/{made.json()['name']}", served.owner)
    assert served.ask("POST", "/v1/advice", secret, {}).status_code == 401
    short = person(served, "fritz", "person-8", days=1)
    with closing(sqlite3.connect(served.shell.folder / "service.db")) as raw, raw:
        raw.execute("UPDATE service_keys SET ends = '2020-01-01T00:00:00+00:00' WHERE analyst = 'person: fritz'")
    assert served.ask("POST", "/v1/advice", short, {}).status_code == 401


def test_a_key_that_is_bound_to_no_node_or_to_an_unknown_one_is_not_made(served: Served) -> None:
    shell = served.shell
    assert "at least one node" in shell.fails(InputError, "keys", "make", "x", "--role", "person")
    assert "is not a node" in shell.fails(InputError, "keys", "make", "x", "--role", "person", "--node", "nobody")
    (shell.folder / "empty.txt").write_text("\n")
    assert "no node" in shell.fails(InputError, "keys", "make", "x", "--targets", "empty.txt")
    assert "choose owner" in shell.fails(SettingsError, "keys", "make", "x", "--role", "king")
    wrong: list[dict[str, Any]] = [{}, {"targets": []}, {"targets": ["nobody"]}, {"targets": [99]}]
    for body in wrong:
        refused = served.ask("POST", "/v1/keys", served.owner, {"analyst": "x", "role": "person", **body})
        assert refused.status_code in (404, 422), refused.text
    king = served.ask("POST", "/v1/keys", served.owner, {"analyst": "x", "role": "owner"})
    assert king.status_code == 422, "owners are made on the owner's machine"


def test_a_vault_whose_people_do_not_know_their_edges_advises_nobody(tmp_path: Path) -> None:
    shell = untimed(newcomer(tmp_path))
    service = Served(shell)
    try:
        pia = service.key("pia", "--role", "person", "--node", "person-3")
        refused = service.ask("POST", "/v1/advice", pia, {})
        assert (refused.status_code, "gives no advice" in refused.json()["message"]) == (403, True)
    finally:
        service.stop()


def people(folder: Path, rows: str) -> Path:
    path = folder / "people.csv"
    path.write_text(rows)
    return path


def test_keys_for_a_whole_population_are_made_from_a_file(served: Served) -> None:
    shell = served.shell
    people(shell.folder, "node,holder\nperson-1,Ann Lee\nperson-2\n\nperson-2,bob\n")
    assert shell.ask("keys", "make-people", "--file", "people.csv", "--out", "keys.csv")["keys"] == 3
    out = shell.folder / "keys.csv"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(one["node"], one["holder"]) for one in rows] == [
        ("person-1", "Ann Lee"),
        ("person-2", "person-2"),
        ("person-2", "bob"),
    ]
    targets = [served.ask("POST", "/v1/advice", one["secret"], {}).json()["target"] for one in rows]
    assert targets == [1, 2, 2]
    before = out.read_text()
    assert "exists" in shell.fails(InputError, "keys", "make-people", "--file", "people.csv", "--out", "keys.csv")
    assert out.read_text() == before
    listed = shell.run("keys", "list").stdout
    assert "Ann Lee" in listed


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("person-1\nnobody\n", "line 2: target 'nobody' is not a node"),
        ("person-1\nperson-1\n", "line 2: line 1 says the same"),
        ("", "names nobody"),
        ("node\n", "names nobody"),
        ("person-1,ann,3\n", "line 1: write node or node,holder"),
        ('person-1,"ann\n', "cannot be read"),
        ("person-1,\x1b[2J\n", "printable"),
        (",ann\n", "line 1"),
    ],
)
def test_a_wrong_list_makes_no_key_at_all(served: Served, rows: str, words: str) -> None:
    shell, folder = served.shell, served.shell.folder
    people(folder, rows)
    before = served.ask("GET", "/v1/budget", served.owner).json()["keys"]
    done = shell.run("keys", "make-people", "--file", "people.csv", "--out", "wrong.csv")
    assert (done.returncode > 1, words in done.stderr) == (True, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "wrong.csv").exists()
    assert served.ask("GET", "/v1/budget", served.owner).json()["keys"] == before


class Full:
    """A disk that is full after so many keys, or at the very end."""

    def __init__(self, most: int) -> None:
        self.left = most

    def add(self, key: Any, secret: str) -> None:  # noqa: ARG002
        self.left -= 1
        if self.left < 0:
            raise OSError("no space left on device")

    def sync(self) -> None:
        raise OSError("no space left on device")


@pytest.mark.parametrize("most", [0, PAGE + 1, 2 * PAGE])
def test_keys_whose_secrets_could_not_be_written_are_not_made(tmp_path: Path, most: int) -> None:
    keys = Keys(open_database(f"sqlite:///{tmp_path / 'service.db'}"))
    wishes = [Wish(f"holder {number}", (str(number),)) for number in range(2 * PAGE)]
    with pytest.raises(OSError, match="no space"):
        keys.make_many("person", wishes, Terms(), Full(most))
    assert keys.counts() == {"owner": 0, "analyst": 0, "person": 0}


class Kept:
    """Keeps the names of keys."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.synced = False

    def add(self, key: Any, secret: str) -> None:  # noqa: ARG002
        self.names.append(key.name)

    def sync(self) -> None:
        self.synced = True


def test_a_hundred_thousand_keys_are_made_within_a_minute_and_read_in_pages(tmp_path: Path) -> None:
    keys, kept = Keys(open_database(f"sqlite:///{tmp_path / 'service.db'}")), Kept()
    keys.make("owner", "the owner")
    keys.make("analyst", "ann", cap="3")
    started = time.monotonic()
    wishes = (Wish(f"holder {number}", (str(number),)) for number in range(100_000))
    assert keys.make_many("person", wishes, Terms(per_minute=30), kept) == 100_000
    assert time.monotonic() - started < 60
    assert kept.synced
    started = time.monotonic()
    assert keys.counts() == {"owner": 1, "analyst": 1, "person": 100_000}
    first = keys.page(1000, role="person")
    second = keys.page(1000, first[-1].name, role="person")
    assert not {one.name for one in first} & {one.name for one in second}
    assert list(keys.caps(1000)) == ["ann", "the owner"]
    assert [one.analyst for one in keys.page(10, analyst="person: holder 77777")] == ["person: holder 77777"]
    assert len(keys.ending(100, 10)) == 2, "those of analysts and owners"
    assert time.monotonic() - started < 2
    assert len({one.name for one in keys.all()}) == 100_002
    with pytest.raises(InputError, match="no such key"):
        keys.page(10, "nothing")


def test_a_person_s_key_without_targets_may_ask_about_nothing() -> None:
    """No such key is made; one in a database that somebody altered is bound to nothing."""
    from privcfs.service.keys import Key

    with pytest.raises(NotAllowed, match="bound to its own nodes"):
        Key("x", "person", "person: x", "2026-01-01").may_ask_about("person-3")
