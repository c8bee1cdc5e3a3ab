"""The order in which a request is looked at: size, key, pace, places, and only then its body."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from privcfs.service.doorkeeper import Doorkeeper, Pace, secret_in
from privcfs.service.keys import Key, Keys
from privcfs.service.metrics import Metrics
from privcfs.service.watch import Watch

App = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Trial:
    """One request, and what became of it."""

    headers: list[tuple[bytes, bytes]]
    read: int = 0
    status: int = 0
    sent: dict[bytes, bytes] = field(default_factory=dict)

    async def receive(self) -> dict[str, Any]:
        self.read += 1
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.sent = message["status"], dict(message["headers"])

    def run(self, app: App) -> "Trial":
        state: dict[str, Any] = {}
        scope = {"type": "http", "method": "POST", "path": "/v1/releases", "headers": self.headers, "state": state}
        asyncio.run(app(scope, self.receive, self.send))  # type: ignore[arg-type]
        return self


async def endpoint(_: Any, receive: Any, send: Any) -> None:
    assert (await receive())["body"] == b"{}"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def keys(tmp_path: Any) -> Keys:
    return Keys(f"sqlite:///{tmp_path / 'service.db'}")


def watch(keys: Keys) -> Watch:
    return Watch(endpoint, Doorkeeper(keys, Pace()), keys, Metrics())


def strangers_leave_no_trace(keys: Keys, app: App) -> None:
    """Nothing of the body is read, nothing is written down, and the connection ends."""
    unknown = b"Bearer privcfs_" + b"0" * 12 + b"_" + b"a" * 43
    for sent in ([], [(b"authorization", b"Bearer x")], [(b"authorization", unknown)]):
        found = Trial([(b"content-length", b"2"), *sent]).run(app)
        assert found.status == 401
        assert found.read == 0, "bytes of the body were read"
        assert found.sent[b"connection"] == b"close"
    assert list(keys.history()) == [], "lines were written down"


def test_strangers_leave_no_trace(keys: Keys) -> None:
    strangers_leave_no_trace(keys, watch(keys))


def test_the_check_rejects_a_watch_that_reads_first(keys: Keys) -> None:
    async def careless(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await watch(keys)(scope, receive, send)

    with pytest.raises(AssertionError, match="bytes of the body were read"):
        strangers_leave_no_trace(keys, careless)


def test_the_check_rejects_a_watch_that_writes_everything_down(keys: Keys) -> None:
    nobody = Key("", "analyst", "", "")

    async def careless(scope: Any, receive: Any, send: Any) -> None:
        await watch(keys)(scope, receive, send)
        keys.log(nobody, "POST /v1/releases", 401)

    with pytest.raises(AssertionError, match="lines were written down"):
        strangers_leave_no_trace(keys, careless)


def test_whoever_has_a_key_is_let_in_and_written_down(keys: Keys) -> None:
    _, secret = keys.make("analyst", "ann", per_minute=1)
    headers = [(b"content-length", b"2"), (b"authorization", f"bearer  {secret} ".encode())]
    app = watch(keys)
    first, second = Trial(headers).run(app), Trial(headers).run(app)
    assert (first.status, first.read) == (200, 1)
    assert b"connection" not in first.sent
    assert (second.status, second.read) == (429, 0), "beyond its pace: refused unread, too"
    assert [(one["analyst"], one["status"]) for one in keys.history()] == [("ann", 429), ("ann", 200)]


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Basic x")], [(b"authorization", b"Bearer")]], ids=str)
def test_no_secret_is_found_where_there_is_none(headers: list[tuple[bytes, bytes]]) -> None:
    assert secret_in(headers) == ""
