"""A real server on loopback, asked by owner and analysts."""

import json
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from privcfs.client import Client
from privcfs.errors import BudgetExhausted, LedgerError, UnknownNode
from tests.service.documented import ENDPOINTS, address
from tests.service.served import Served, untimed
from tests.shell import newcomer


@pytest.fixture(scope="module")
def emil(served: Served) -> str:
    return served.key("emil")


@pytest.fixture(scope="module")
def ann(served: Served) -> str:
    return served.key("ann", "--cap", "3")


def test_a_release_is_paid_once_and_can_be_fetched_again(served: Served, ann: str) -> None:
    question = {"target": "person-3", "epsilon": "1", "request_id": "first"}
    found = served.ask("POST", "/v1/releases", ann, question)
    assert found.status_code == 200, found.text
    assert found.json()["target"] == 3
    assert served.ask("POST", "/v1/releases", ann, question).json() == found.json()
    assert served.ask("GET", "/v1/releases/first", ann).json() == found.json()
    assert served.ask("GET", "/v1/releases/other", ann).status_code == 404
    assert served.ask("GET", "/v1/budget", ann).json()["yours"]["spent"] == "1"
    conflict = served.ask("POST", "/v1/releases", ann, {**question, "epsilon": "0.5"})
    assert (conflict.status_code, conflict.json()["error"]) == (409, "RequestConflict")
    (served.shell.folder / "release.json").write_text(found.text)
    assert served.shell.ask("verify", "release.json")["valid"]
    assert "in_words, left, limited_by, paid" in served.shell.run("verify", "release.json").stderr, "not certified"
    (served.shell.folder / "more.json").write_text(json.dumps({**found.json(), "valid": True}))
    assert served.shell.run("verify", "more.json").returncode != 0


def test_a_batch_is_paid_as_a_whole_or_not_at_all(served: Served) -> None:
    bob = served.key("bob", "--cap", "2")
    asked = [{"target": f"person-{number}", "epsilon": "1"} for number in range(3)]
    refused = served.ask("POST", "/v1/releases/batch", bob, {"questions": asked})
    assert (refused.status_code, refused.json()["error"]) == (402, "BudgetExhausted")
    assert served.ask("GET", "/v1/budget", bob).json()["yours"]["spent"] == "0"
    found = served.ask("POST", "/v1/releases/batch", bob, {"questions": asked[:2]})
    assert [one["target"] for one in found.json()] == [0, 1]
    assert served.ask("GET", "/v1/quote?epsilon=0.5", bob).json() == {
        "epsilon": "0.5",
        "cost": "0.5",
        "unit": "epsilon",
        "left": "0",
        "limited_by": "you",
        "fits": False,
        "in_words": "This costs 0.5, and only 0 is left of your limit.",
    }


def test_what_is_public_costs_nothing(served: Served) -> None:
    carl = served.key("carl")
    listed = served.ask("GET", "/v1/candidates/person-3", carl).json()
    assert listed["number"] > len(listed["listed"]) == 20
    tried = served.ask("POST", "/v1/dry-run", carl, {"target": "person-3", "epsilon": "2"}).json()
    assert "not a release" in tried["note"]
    budget = served.ask("GET", "/v1/budget", carl).json()
    assert set(budget.pop("losses")) >= {"one_edge", "any_two_graphs", "in_words"}
    assert budget == {
        "yours": {"unit": "epsilon", "limit": "4", "spent": "0", "held": "0", "left": "4", "answers": 0},
        "left": "4",
        "limited_by": "you",
    }


def in_names(intervention: dict[str, Any]) -> str:
    """What a person expects to read where node 3 is called person-3."""
    parts = [f"{kind} person-{u} - person-{w}" for kind in ("delete", "add") for u, w in intervention[kind]]
    return ", ".join(parts + [f"mask feature {one}" for one in intervention["mask"]]) or "no intervention"


def names_of(target: int, intervention: dict[str, Any]) -> dict[str, str]:
    ends = {target, *(node for kind in ("delete", "add") for pair in intervention[kind] for node in pair)}
    return {str(node): f"person-{node}" for node in sorted(ends)}


def test_every_answer_over_http_carries_the_names_of_its_nodes(served: Served) -> None:
    hal = served.key("hal")
    asked = {"target": "person-3", "epsilon": "0.1", "request_id": "named"}
    found = [served.ask("POST", "/v1/releases", hal, asked).json()]
    found += served.ask("POST", "/v1/releases/batch", hal, {"questions": [{**asked, "request_id": "b"}]}).json()
    found.append(served.ask("GET", "/v1/releases/named", hal).json())
    found.append(served.ask("POST", "/v1/dry-run", hal, {"target": "person-3", "epsilon": "2"}).json())
    found.append(served.ask("GET", "/v1/guess/person-3", hal).json())
    assert [one["target"] for one in found] == [3] * 5
    assert [one["labels"] for one in found] == [names_of(3, one["intervention"]) for one in found]


def test_a_number_in_json_is_a_nodes_number_and_text_is_a_name(served: Served) -> None:
    ida = served.key("ida")
    found = served.ask("POST", "/v1/releases", ida, {"target": 3, "epsilon": "0.1"})
    assert (found.status_code, found.json()["labels"]["3"]) == (200, "person-3")
    both = [{"target": one, "epsilon": "0.1"} for one in (4, "person-5")]
    assert [one["target"] for one in served.ask("POST", "/v1/releases/batch", ida, {"questions": both}).json()] == [
        4,
        5,
    ]
    assert served.ask("POST", "/v1/dry-run", ida, {"target": 3, "epsilon": "1"}).status_code == 200
    for path in ("candidates", "neighbourhood", "guess"):
        assert served.ask("GET", f"/v1/{path}/3?by_number=true", ida).json()["target"] == 3
        assert served.ask("GET", f"/v1/{path}/3", ida).status_code == 404, "text is a name"
        assert served.ask("GET", f"/v1/{path}/person-3?by_number=true", ida).status_code == 404
    for target, status in (("3", 404), (99, 404), (10**30, 422), (-1, 422), (True, 422), (3.0, 422), (None, 422)):
        refused = served.ask("POST", "/v1/releases", ida, {"target": target, "epsilon": "0.1"})
        assert refused.status_code == status, (target, refused.text)
    noted = [one["action"] for one in served.ask("GET", "/v1/log", served.owner).json() if one["analyst"] == "ida"]
    assert "POST /v1/releases person-3 at epsilon 0.1" in noted


def test_a_key_held_to_targets_is_held_to_them_by_number_too(served: Served) -> None:
    made = served.ask("POST", "/v1/keys", served.owner, {"analyst": "jon", "targets": ["person-1"]}).json()
    for target, status in ((1, 200), (2, 403)):
        body = {"target": target, "epsilon": "0.1"}
        assert served.ask("POST", "/v1/releases", made["secret"], body).status_code == status
        assert served.ask("POST", "/v1/dry-run", made["secret"], body).status_code == status
        for path in ("candidates", "neighbourhood", "guess"):
            asked = served.ask("GET", f"/v1/{path}/{target}?by_number=true", made["secret"])
            assert asked.status_code == status


def test_the_client_speaks_in_names_and_understands_its_own_answers(served: Served) -> None:
    with Client(served.url, served.key("kim")) as client:
        release = client.release("person-3", "0.1")
        assert release.target_name == "person-3"
        assert str(release.intervention) == in_names(release.intervention.to_dict())
        assert client.released(release.request_id).labels == release.labels
        again = client.release(release.target, "0.1")
        assert (again.target, again.target_name) == (3, "person-3")
        several = client.release_all([(release.target, "0.1"), ("person-4", "0.1")])
        assert [one.target_name for one in several] == ["person-3", "person-4"]
        for answer in (client.dry_run(3, "1"), client.guess(3), client.guess("person-3")):
            one = answer.intervention
            assert str(one) == in_names(one.to_dict())
        assert client.guess(3) == client.guess("person-3")
        assert client.candidates(3) == client.candidates("person-3")
        with pytest.raises(UnknownNode, match="is not a node; give a name"):
            client.release("3", "0.1")


def test_the_cap_of_a_key_is_shown_as_the_limit_and_quotes_say_whose_limit_binds(tmp_path: Path) -> None:
    shell = newcomer(tmp_path)
    settings = (tmp_path / "vault.toml").read_text()
    (tmp_path / "vault.toml").write_text(settings.replace('limit_per_analyst = "4"', ""))
    service = Served(shell)
    try:
        capped, free = service.key("ann", "--cap", "3"), service.key("bob")
        yours = service.ask("GET", "/v1/budget", capped).json()["yours"]
        assert (yours["limit"], yours["left"]) == ("3", "3")
        assert service.ask("GET", "/v1/budget", free).json()["yours"]["limit"] is None
        quoted = service.ask("GET", "/v1/quote?epsilon=1", capped).json()
        assert (quoted["left"], quoted["limited_by"], quoted["fits"]) == ("3", "you", True)
        quoted = service.ask("GET", "/v1/quote?epsilon=1", free).json()
        assert (quoted["left"], quoted["limited_by"]) == ("10", "everyone")
        service.ask("POST", "/v1/releases", free, {"target": "person-3", "epsilon": "8"})
        service.ask("POST", "/v1/releases", capped, {"target": "person-3", "epsilon": "0.5"})
        quoted = service.ask("GET", "/v1/quote?epsilon=2", capped).json()
        assert (quoted["left"], quoted["limited_by"], quoted["fits"]) == ("1.5", "everyone", False)
        mine = service.ask("GET", "/v1/budget", capped).json()
        assert (mine["yours"]["left"], mine["left"], mine["limited_by"]) == ("2.5", "1.5", "everyone")

        def limits() -> dict[str, Any]:
            seen = service.ask("GET", "/v1/budget", service.owner).json()["analysts"]
            return {name: one["limit"] for name, one in seen.items()}

        assert limits() == {"ann": "3", "bob": None, "the owner": None}
        larger = service.ask("POST", "/v1/keys", service.owner, {"analyst": "ann", "cap": "5"}).json()
        assert limits()["ann"] == "5", "the largest cap of the keys that are valid"
        service.ask("DELETE", f"/v1/keys/{larger['name']}", service.owner)
        assert limits()["ann"] == "3"
        beyond = service.ask("POST", "/v1/keys", service.owner, {"analyst": "ann", "cap": "50"}).json()
        assert limits()["ann"] == "10", "nobody may spend more than everyone together"
        service.ask("DELETE", f"/v1/keys/{beyond['name']}", service.owner)
        service.ask("POST", "/v1/keys", service.owner, {"analyst": "ann"})
        assert limits()["ann"] is None, "one of the keys has no cap"
    finally:
        said = service.stop()
    assert "Traceback" not in said


def test_keys_are_listed_with_everything_that_they_may_do(served: Served) -> None:
    (served.shell.folder / "two.txt").write_text("person-1\nperson-2\n")
    served.key("lea", "--cap", "3", "--per-minute", "60", "--targets", "two.txt")
    served.key("moe")
    said = {line.split("  ")[2].strip(): line for line in served.shell.run("keys", "list").stdout.splitlines()}
    assert "analyst" in said["lea"]
    for words in ("may spend 3", "60 requests a minute", "2 targets", "until 20"):
        assert words in said["lea"]
    for words in ("no cap", "any pace", "any target"):
        assert words in said["moe"]
    assert "no limit" not in "".join(said.values())


KEYED = {endpoint: key for endpoint, key in ENDPOINTS.items() if key != "none"}


def test_no_endpoint_escapes_the_trial_of_keys(served: Served) -> None:
    described = httpx.get(f"{served.url}/openapi.json", timeout=30).json()["paths"]
    every = {(method.upper(), path) for path, methods in described.items() for method in methods}
    for path in {path for _, path in every}:
        assert path.startswith("/v1/") or path in ("/health", "/metrics")
    assert every - {("GET", "/health")} == set(KEYED)


@pytest.fixture(scope="module")
def invalid(served: Served) -> dict[str, str | None]:
    """Keys that open nothing; the revoked and the expired one were the owner's."""
    revoked, expired = (served.key(name, "--role", "owner", "--days", "1") for name in ("dora", "dan"))
    served.shell.run("keys", "revoke", revoked.split("_")[1])
    with sqlite3.connect(served.shell.folder / "service.db") as raw:
        past = (datetime.now(UTC) - timedelta(seconds=2)).isoformat(timespec="seconds")
        assert raw.execute("UPDATE service_keys SET ends = ? WHERE analyst = 'dan'", (past,)).rowcount == 1
    raw.close()
    wrong = served.owner[:-1] + ("a" if served.owner[-1] != "a" else "b")
    return {"none": None, "nonsense": "nonsense", "wrong": wrong, "revoked": revoked, "expired": expired}


@pytest.mark.parametrize(("method", "path"), KEYED, ids=str)
def test_every_endpoint_needs_the_right_key(
    served: Served, invalid: dict[str, str | None], emil: str, method: str, path: str
) -> None:
    body = {"target": "person-1", "epsilon": "1"} if method == "POST" else None
    for secret in invalid.values():
        refused = served.ask(method, address(path), secret, body)
        assert (refused.status_code, refused.json()["error"]) == (401, "NoKey")
        assert refused.headers["www-authenticate"] == "Bearer"
    if KEYED[method, path] == "owner's":
        refused = served.ask(method, address(path), emil, body)
        assert (refused.status_code, refused.json()["error"]) == (403, "NotAllowed")


def test_keys_are_made_listed_and_revoked_over_http_and_kept_as_digests(served: Served) -> None:
    made = served.ask("POST", "/v1/keys", served.owner, {"analyst": "fay", "targets": ["person-1"], "per_minute": 3})
    assert made.status_code == 201
    secret = made.json()["secret"]
    files = [path.read_bytes() for path in served.shell.folder.glob("service.db*")]
    assert files
    assert not any(secret.encode() in content for content in files)
    refused = served.ask("GET", "/v1/candidates/person-2", secret)
    assert (refused.status_code, refused.json()["error"]) == (403, "NotAllowed")
    assert served.ask("GET", "/v1/candidates/person-1", secret).status_code == 200
    assert served.ask("GET", "/v1/candidates/1", secret).status_code == 404, "names are names"
    assert served.ask("GET", "/v1/budget", secret).json()["error"] == "TooFast"
    assert served.ask("DELETE", f"/v1/keys/{made.json()['name']}", served.owner).status_code == 204
    assert served.ask("GET", "/v1/budget", secret).status_code == 401
    listed = {one["name"]: one for one in served.ask("GET", "/v1/keys", served.owner).json()}
    assert listed[made.json()["name"]]["revoked"]
    assert "secret" not in json.dumps(list(listed.values()))


def test_the_owner_sees_ledger_budget_and_metrics(served: Served, ann: str) -> None:
    served.ask("POST", "/v1/releases", ann, {"target": "person-5", "epsilon": "0.5", "request_id": "for the owner"})
    rows = [json.loads(line) for line in served.ask("GET", "/v1/ledger", served.owner).text.splitlines()]
    head = served.ask("GET", "/v1/ledger/head", served.owner).json()
    assert rows[0]["kind"] == "OPENED"
    assert head["digest"] == rows[-1]["digest"]
    newest = served.ask("GET", f"/v1/ledger?after={head['position'] - 2}", served.owner).text.splitlines()
    assert [json.loads(line) for line in newest] == rows[-2:]
    budget = served.ask("GET", "/v1/budget", served.owner).json()
    assert budget["all"]["limit"] == "10"
    assert "pure 10-differential privacy" in budget["meaning"]
    text = served.ask("GET", "/metrics", served.owner).text
    assert 'privcfs_requests_total{method="POST",path="/v1/releases",status="200"}' in text
    assert "person" not in text


def test_the_service_promises_what_the_command_line_promises(tmp_path: Path) -> None:
    """A disclosure that is private for one edge alone makes the promise of the whole sum one for one edge."""
    shell = newcomer(tmp_path)
    shell.ask("explain", "person-0", "--epsilon", "1")
    shell.ask("enter", "a model trained elsewhere", "--epsilon", "1")
    words = "holds for two private graphs that differ in one edge only, and so does the sum: not for any two graphs"
    running = Served(untimed(shell))
    try:
        meaning = running.ask("GET", "/v1/budget", running.owner).json()["meaning"]
    finally:
        running.stop()
    assert words in meaning
    assert meaning in " ".join(shell.run("budget").stdout.split())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"target": "nobody", "epsilon": "1"}, 404),
        ({"target": "person-1", "epsilon": "-1"}, 422),
        ({"target": "person-1", "epsilon": "nan"}, 422),
        ({"target": "person-1"}, 422),
        ({"target": "person-1", "epsilon": "1", "more": 1}, 422),
        ({"target": ["person-1"], "epsilon": "1"}, 422),
        ("text", 422),
    ],
    ids=str,
)
def test_wrong_questions_are_refused_in_words(served: Served, ann: str, body: Any, status: int) -> None:
    refused = served.ask("POST", "/v1/releases", ann, body)
    assert refused.status_code == status, refused.text
    assert set(refused.json()) == {"error", "message"}


def test_large_and_unknown_requests_are_refused(served: Served, ann: str) -> None:
    large = served.ask("POST", "/v1/releases", ann, {"target": "x" * 100_000, "epsilon": "1"})
    assert large.status_code == 413
    assert served.ask("GET", "/nowhere", ann).status_code == 404
    assert served.ask("PUT", "/v1/releases", ann).status_code == 405
    assert large.headers["content-security-policy"].startswith("default-src 'none'")


class Unsteady(httpx.BaseTransport):
    """Loses the answer of every other request, after the service has worked for it."""

    def __init__(self) -> None:
        self.real, self.lost = httpx.HTTPTransport(), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.real.handle_request(request)
        if self.lost % 2 == 0:
            self.lost += 1
            answer.close()
            raise httpx.ReadError("lost")
        self.lost += 1
        return answer

    def close(self) -> None:
        self.real.close()


def test_a_client_that_loses_answers_pays_once(served: Served) -> None:
    with Client(served.url, served.key("gil"), transport=Unsteady()) as client:
        one = client.release("person-2", "1")
        assert client.budget()["yours"]["spent"] == "1"
        assert client.released(one.request_id) == one
        two = client.release_all([("person-2", "0.5"), ("person-4", "0.5")])
        assert [client.released(one.request_id) for one in two] == two
        assert client.budget()["yours"]["spent"] == "2"
        assert client.candidates("person-2")["number"] > 1
        assert client.dry_run("person-2", "1").intervention.size <= 2
        assert client.quote("1")["fits"]
        assert client.guess("person-2").intervention.size > 0
        with pytest.raises(BudgetExhausted, match="does not fit"):
            client.release("person-2", "3")
        with pytest.raises(UnknownNode, match="is not a node"):
            client.release("nobody", "1")


def test_a_client_says_how_to_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcfs.client.PATIENCE", 0.001)
    with (
        Client("http://127.0.0.1:9", "key") as client,
        pytest.raises(LedgerError, match="request id mine: it pays once"),
    ):
        client.release(1, "1", request_id="mine")


def test_two_processes_serve_one_budget_in_postgresql(tmp_path: Path, postgres_url: str) -> None:
    shell = untimed(newcomer(tmp_path))
    settings = (tmp_path / "vault.toml").read_text()
    (tmp_path / "vault.toml").write_text(settings.replace("sqlite:///budget.db", postgres_url))
    service = Served(shell, "--workers", "2")
    try:
        keys = [service.key(f"analyst {number}") for number in range(4)]
        question = {"target": "person-3", "epsilon": "1"}
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(service.ask, "POST", "/v1/releases", key, question) for key in keys * 5]
            statuses = Counter(one.result().status_code for one in asked)
        assert statuses == {200: 10, 402: 10}
        newest = service.ask("GET", "/v1/ledger/head", service.owner).json()
        end = time.monotonic() + 20
        while json.loads((tmp_path / "head.json").read_text()) != newest and time.monotonic() < end:
            time.sleep(0.1)
        assert json.loads((tmp_path / "head.json").read_text()) == newest, "both keep the head, none takes it back"
        budget = service.ask("GET", "/v1/budget", service.owner).json()
        assert budget["all"]["spent"] == "10"
        assert (
            len(
                {
                    row["digest"]
                    for row in map(json.loads, service.ask("GET", "/v1/ledger", service.owner).text.splitlines())
                }
            )
            == 21
        )
    finally:
        said = service.stop()
    assert "Traceback" not in said
