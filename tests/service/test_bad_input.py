"""Whatever is sent: no failure, no stack trace, nothing private; and refusals that know nothing of the edges."""

import json
import random
import shutil
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from privcfs.service.pace import MOST_WAITING
from privcfs.service.watch import MOST_AT_ONCE, SLOWEST_BODY
from tests.service.documented import ENDPOINTS
from tests.service.served import Served, untimed
from tests.shell import newcomer

FUZZED = 10_000
EXAMPLES = 40  # for each endpoint, as described and otherwise
NEVER = ("Traceback", 'File "', "edges.csv", "gcn.safetensors", "site-packages", "sqlite3.", "sqlalchemy")


def test_every_endpoint_keeps_to_its_description(served: Served) -> None:
    described = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    kept = [checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
    kept += [checks.response_schema_conformance]
    tried: Counter[str] = Counter()
    operations: list[Any] = list(described.get_all_operations())
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.ok().as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                answer = case.call(headers={"Authorization": f"Bearer {served.owner}"})
                case.validate_response(answer, checks=kept)
                harmless(answer.text, served)
                tried[case.operation.label] += 1

            with suppress(Unsatisfiable):  # where there is nothing to get wrong
                ask()
    assert len(tried) == len(ENDPOINTS)


def harmless(text: str, served: Served) -> None:
    for words in (*NEVER, str(served.shell.folder)):
        assert words not in text


WORDS = ["person-3", "person-99", "", "1", "0", "-1", "nan", "1e400", "1e-400", "9" * 90, "0.5", "\u0661", "\u00bd"]
WORDS += ["\x00", "\ud800", "é" * 50, "a" * 250, "../../vault.toml", "%00", "%2e%2e/", "'; DROP TABLE entries; --"]
WORDS += ["{{7*7}}", "<script>", "\r\nX: y", "person-3\n", "\u202e", "\uff11", "null", "0x1"]
PATHS = ["/v1/releases", "/v1/releases/batch", "/v1/dry-run", "/v1/keys", "/v1/quote", "/v1/budget", "/v1/me"]
PATHS += ["/v1/candidates/{}", "/v1/neighbourhood/{}", "/v1/releases/{}", "/v1/keys/{}", "/v1/{}", "/{}", "/health"]
PATHS += ["/v1/ledger/head", "/metrics", "/openapi.json", "/console.js", "//", "/v1/quote?epsilon={}", "/v1/log"]
PATHS += ["/v1/advice", "/v1/confirmations", "/v1/answers?before={}", "/v1/nodes?search={}", "/v1/overview"]
PATHS += ["/v1/guess/{}", "/v1/ledger/newest?most={}", "/v1/keys?after={}"]
FIELDS = ["told", "alternatives", "release", "certificate", "intervention", "role"]
FIELDS += ["target", "epsilon", "request_id", "questions", "analyst", "days", "cap", "targets", "per_minute", "more"]


def value(rng: random.Random, depth: int = 0) -> Any:
    """Anything that JSON can say."""
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind < 3:
        return rng.choice(WORDS)
    if kind < 6:
        return rng.choice([None, True, 0, -1, 10**30, 1.5, -0.0, float("inf"), float("nan"), 2**63])
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(FIELDS): value(rng, depth + 1) for _ in range(rng.randrange(5))}


def body(rng: random.Random) -> bytes:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.randbytes(rng.randrange(60))
    if kind == 1:
        return b"[" * rng.choice([10, 5000, 60_000])
    if kind == 2:
        return b'{"target": "person-3", "epsilon": "1", "target": {"a": ' + b"9" * 4999 + b"}}"
    fields = {"target": rng.choice(WORDS), "epsilon": rng.choice(WORDS)} if kind < 6 else value(rng)
    if kind == 5:
        fields = {"questions": [fields, value(rng)]}
    text = json.dumps(fields)
    if kind == 4:
        text = text[: rng.randrange(len(text))] + rng.choice('{}[]",:\\') + text[rng.randrange(len(text)) :]
    return text.encode()


def fuzzed(rng: random.Random, keys: list[str]) -> bytes:
    """A request as bytes: mostly well formed outside, strange inside; sometimes strange outside too."""
    word = rng.choice(WORDS).encode("utf-8", "surrogatepass")
    quoted = (
        "".join(f"%{one:02x}" for one in word) if rng.random() < 0.8 else rng.choice(["a", "%", "%zz", "%ff", ".."])
    )
    path = rng.choice(PATHS).replace("{}", quoted)
    method = rng.choice(["GET", "POST", "POST", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "TRACE", "X"])
    content = body(rng) if method not in ("GET", "HEAD") or rng.random() < 0.1 else b""
    headers = [f"Host: {rng.choice(['127.0.0.1', 'x', 'é', ''])}", f"Content-Length: {len(content)}"]
    headers += [f"Content-Type: {rng.choice(['application/json', 'text/plain', 'x', 'multipart/form-data'])}"]
    headers += [f"Authorization: {rng.choice(['Bearer', 'bearer', 'Basic', ''])} {rng.choice(keys)}"]
    if rng.random() < 0.05:
        headers[1] = f"Content-Length: {rng.choice(['-1', 'x', '99999999', '9' * 40])}"
    if rng.random() < 0.05:
        headers.append(rng.choice(["Transfer-Encoding: chunked", "Expect: 100-continue", "Upgrade: websocket", "Bad"]))
    version = "HTTP/1.1" if rng.random() < 0.98 else rng.choice(["HTTP/1.0", "HTTP/9.9", ""])
    lines = "\r\n".join([f"{method} {path} {version}", *headers, "Connection: close", "", ""])
    return lines.encode("utf-8", "surrogatepass") + content


def send(served: Served, request: bytes) -> str:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as wire:
        wire.sendall(request)
        found = b""
        try:
            while part := wire.recv(65536):
                found += part
        except (ConnectionResetError, TimeoutError):
            pass
    return found.decode("utf-8", "replace")


def test_ten_thousand_strange_requests_do_no_harm(served: Served) -> None:
    rng = random.Random(0)
    keys = [served.owner, served.key("ann"), served.key("bob", "--per-minute", "5"), "privcfs_x_y", "é", ""]
    keys.append(served.new_key("pia", role="person", targets=["person-3"]))
    statuses: Counter[str] = Counter()
    requests = [fuzzed(rng, keys) for _ in range(FUZZED)]
    with ThreadPoolExecutor(MOST_WAITING // 4) as pool:  # whoever is refused often waits, so many are sent at once
        answers = list(pool.map(lambda request: send(served, request), requests))
    for request, found in zip(requests, answers, strict=True):
        status = found[9:12] if found.startswith("HTTP/1.1 ") else "none"
        statuses[status] += 1
        assert status[:1] in "1234n", (request, found)
        harmless(found, served)
        head, _, text = found.partition("\r\n\r\n")
        if status[:1] == "4" and "application/json" in head and text:
            assert set(json.loads(text)) == {"error", "message"}, (request, text)
    assert {"200", "401", "403", "404", "405", "413", "422", "429"} <= set(statuses), statuses
    assert statuses["none"] < FUZZED / 20, statuses
    served.shell.run("budget")
    assert httpx.get(f"{served.url}/health", timeout=10).status_code == 200


def test_a_body_that_never_comes_or_is_longer_than_it_says_stops_nobody(served: Served) -> None:
    head = "POST /v1/releases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
    lying = send(served, f"{head}{'0' * 9}8000000\r\n\r\n".encode() + b"x" * 1000)
    assert lying.startswith("HTTP/1.1 413")
    stalled = [socket.create_connection(("127.0.0.1", served.port), timeout=30) for _ in range(MOST_AT_ONCE)]
    try:
        for wire in stalled:
            wire.sendall(f"{head}10\r\n\r\nx".encode())
        end = time.monotonic() + SLOWEST_BODY + 20
        while httpx.get(f"{served.url}/health", timeout=10).status_code != 200:
            assert time.monotonic() < end, "bodies that never come hold the service up"
            time.sleep(0.5)
    finally:
        for wire in stalled:
            wire.close()


def test_what_was_sent_cannot_forge_the_log(served: Served) -> None:
    question = {"target": "person-3", "epsilon": "1\nDELETE /v1/keys\x00 204"}
    assert served.ask("POST", "/v1/releases", served.owner, question).status_code == 422
    newest = served.ask("GET", "/v1/log?most=5", served.owner).json()
    assert any(one["action"].endswith("epsilon 1?DELETE /v1/keys? 204") for one in newest)


def neighbours(tmp_path: Path) -> tuple[Served, Served]:
    """Two services that differ in private edges alone: one edge, and a node that has none in the second."""
    (tmp_path / "first").mkdir()
    first = untimed(newcomer(tmp_path / "first"))
    shutil.copytree(first.folder, tmp_path / "second")
    second = type(first)(tmp_path / "second")
    lines = (first.folder / "edges.csv").read_text().splitlines()
    kept = [line for line in lines[:-1] if "person-7" not in line.split(",")]
    assert len(kept) < len(lines) - 1
    (second.folder / "edges.csv").write_text("\n".join(kept))
    one = Served(first)
    one.limited = one.key("ann", "--cap", "2", "--days", "1")  # type: ignore[attr-defined]
    one.ended = one.key("dora")  # type: ignore[attr-defined]
    one.shell.run("keys", "revoke", one.ended.split("_")[1])  # type: ignore[attr-defined]
    for file in first.folder.glob("service.db*"):
        shutil.copy(file, second.folder)
    other = Served(second, make_owner=False)
    return one, other


QUESTIONS: list[tuple[str, str, Any]] = [
    *(("POST", "/v1/releases", {"target": f"person-{node}", "epsilon": "0.5"}) for node in (7, 3, 7, 0, 7, 7)),
    ("POST", "/v1/releases", {"target": "person-7", "epsilon": "0.5", "request_id": "same"}),
    ("POST", "/v1/releases", {"target": "person-7", "epsilon": "0.25", "request_id": "same"}),
    ("POST", "/v1/releases", {"target": "person-77", "epsilon": "0.5"}),
    ("POST", "/v1/releases", {"target": "person-7", "epsilon": "0"}),
    ("POST", "/v1/releases", {"target": "person-7", "epsilon": "8"}),
    ("POST", "/v1/releases", {"target": "person-7"}),
    ("POST", "/v1/releases/batch", {"questions": [{"target": "person-7", "epsilon": "1"}] * 9}),
    ("POST", "/v1/releases/batch", {"questions": [{"target": "person-7", "epsilon": "1"}, {"target": "x"}]}),
    ("POST", "/v1/dry-run", {"target": "person-7", "epsilon": "1e9"}),
    ("GET", "/v1/releases/none", None),
    ("GET", "/v1/candidates/person-77", None),
    ("GET", "/v1/candidates/person-7", None),
    ("GET", "/v1/neighbourhood/person-7", None),
    ("GET", "/v1/quote?epsilon=0.5", None),
    ("GET", "/v1/budget", None),
    ("GET", "/v1/ledger", None),
    ("PUT", "/v1/releases", None),
    ("GET", "/health", None),
    ("GET", "/", None),
]


def test_two_services_on_neighbouring_graphs_refuse_alike_to_the_byte(tmp_path: Path) -> None:
    one, other = neighbours(tmp_path)
    refused = accepted = 0
    try:
        for secret in (one.limited, one.ended, None, "privcfs_a_b"):  # type: ignore[attr-defined]
            for method, path, question in QUESTIONS:
                left, right = (service.ask(method, path, secret, question) for service in (one, other))
                assert left.status_code == right.status_code, (method, path, question)
                if left.status_code >= 400 or (method, path) != ("POST", "/v1/releases"):
                    assert left.content == right.content, (method, path, question)
                    assert dict(left.headers) == dict(right.headers)
                refused += left.status_code >= 400
                accepted += left.status_code < 400
        budgets = [json.dumps(service.ask("GET", "/v1/budget", one.owner).json()) for service in (one, other)]
        assert budgets[0] == budgets[1]
    finally:
        said = [service.stop() for service in (one, other)]
    assert refused > 40
    assert accepted > 10
    assert not any("Traceback" in text for text in said)
