"""The order in which a request is looked at: size, key, pace, places, and only then its body."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sql

from privcfs.service import pace
from privcfs.service.database import open_database
from privcfs.service.doorkeeper import Doorkeeper, secret_in
from privcfs.service.keys import Key, Keys
from privcfs.service.log import Log
from privcfs.service.marks import Marks
from privcfs.service.metrics import Metrics
from privcfs.service.pace import Buckets, Pace
from privcfs.service.watch import MOST_OF_ONE_KEY, Watch

App = Callable[[Any, Any, Any], Awaitable[None]]
ROUTES = frozenset({("POST", "/v1/releases")})


@dataclass
class Trial:
    """One request, and what became of it."""

    headers: list[tuple[bytes, bytes]]
    address: str = "127.0.0.1"
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
        asyncio.run(self.go_through(app))
        return self

    async def go_through(self, app: App) -> None:
        await app(
            {
                "type": "http",
                "method": "POST",
                "path": "/v1/releases",
                "headers": self.headers,
                "state": {},
                "client": (self.address, 1),
            },
            self.receive,
            self.send,
        )


async def endpoint(_: Any, receive: Any, send: Any) -> None:
    assert (await receive())["body"] == b"{}"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def database(tmp_path: Any) -> sql.Engine:
    return open_database(f"sqlite:///{tmp_path / 'service.db'}")


@pytest.fixture
def keys(database: sql.Engine) -> Keys:
    return Keys(database)


@pytest.fixture
def log(database: sql.Engine) -> Log:
    return Log(database)


def watch(keys: Keys, log: Log, app: App = endpoint) -> Watch:
    return Watch(app, Doorkeeper(keys, Pace()), log, Metrics(), Marks(timed=ROUTES, logged=ROUTES))


def strangers_leave_no_trace(log: Log, app: App) -> None:
    """Nothing of the body is read, nothing is written down, and the connection ends."""
    unknown = b"Bearer privcfs_" + b"0" * 12 + b"_" + b"a" * 43
    for sent in ([], [(b"authorization", b"Bearer x")], [(b"authorization", unknown)]):
        found = Trial([(b"content-length", b"2"), *sent]).run(app)
        assert found.status == 401
        assert found.read == 0, "bytes of the body were read"
        assert found.sent[b"connection"] == b"close"
    assert list(log.history()) == [], "lines were written down"


def test_strangers_leave_no_trace(keys: Keys, log: Log) -> None:
    strangers_leave_no_trace(log, watch(keys, log))


def test_the_check_rejects_a_watch_that_reads_first(keys: Keys, log: Log) -> None:
    async def careless(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await watch(keys, log)(scope, receive, send)

    with pytest.raises(AssertionError, match="bytes of the body were read"):
        strangers_leave_no_trace(log, careless)


def test_the_check_rejects_a_watch_that_writes_everything_down(keys: Keys, log: Log) -> None:
    nobody = Key("", "analyst", "", "")

    async def careless(scope: Any, receive: Any, send: Any) -> None:
        await watch(keys, log)(scope, receive, send)
        log.note(nobody, "POST /v1/releases", 401)

    with pytest.raises(AssertionError, match="lines were written down"):
        strangers_leave_no_trace(log, careless)


def test_whoever_has_a_key_is_let_in_and_written_down(keys: Keys, log: Log) -> None:
    _, secret = keys.make("analyst", "ann", per_minute=1)
    headers = [(b"content-length", b"2"), (b"authorization", f"bearer  {secret} ".encode())]
    app = watch(keys, log)
    first, second = Trial(headers).run(app), Trial(headers).run(app)
    assert (first.status, first.read) == (200, 1)
    assert b"connection" not in first.sent
    assert (second.status, second.read) == (429, 0), "beyond its pace: refused unread, too"
    assert [(one["analyst"], one["status"]) for one in log.history()] == [("ann", 429), ("ann", 200)]


def seconds(app: App, *trials: Trial) -> float:
    started = time.monotonic()

    async def all_at_once() -> None:
        await asyncio.gather(*(trial.go_through(app) for trial in trials))

    asyncio.run(all_at_once())
    return time.monotonic() - started


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few refusals at once, and a pause that a test can wait for."""
    monkeypatch.setattr(pace, "REFUSED_AT_ONCE", 5)
    monkeypatch.setattr(pace, "REFUSED_PER_SECOND", 0.01)
    monkeypatch.setattr(pace, "REFUSAL_PAUSE_SECONDS", 1.0)


@pytest.mark.usefixtures("hasty")
def test_whoever_is_refused_often_waits_and_nobody_else(keys: Keys, log: Log) -> None:
    app = watch(keys, log)
    _, secret = keys.make("analyst", "ann")
    assert seconds(app, *[Trial([]) for _ in range(5)]) < 0.9
    late = [Trial([]) for _ in range(20)]
    assert 0.9 < seconds(app, *late) < 1.9, "they wait together"
    assert {one.status for one in late} == {401}
    assert seconds(app, Trial([], address="127.0.0.2")) < 0.9
    served = Trial([(b"content-length", b"2"), (b"authorization", f"Bearer {secret}".encode())])
    assert seconds(app, served) < 0.9
    assert served.status == 200


@pytest.mark.usefixtures("hasty")
def test_a_key_whose_questions_are_refused_often_waits_and_holds_no_place(keys: Keys, log: Log) -> None:
    async def refusing(*given: Any) -> None:
        await given[2]({"type": "http.response.start", "status": 429, "headers": []})
        await given[2]({"type": "http.response.body", "body": b""})

    app = watch(keys, log, refusing)
    headers = [[(b"authorization", f"Bearer {keys.make('analyst', name)[1]}".encode())] for name in ("ann", "bob")]
    assert seconds(app, *[Trial(headers[0]) for _ in range(5)]) < 0.9
    waiting = [Trial(headers[0]) for _ in range(MOST_OF_ONE_KEY)]

    async def meanwhile() -> None:
        refused = asyncio.gather(*(one.go_through(app) for one in waiting))
        await asyncio.sleep(0.5)
        assert not any(one.status for one in waiting), "they wait"
        other = Trial(headers[1])
        await other.go_through(app)
        assert other.status == 429, "the places are free meanwhile"
        assert not app._serving
        await refused

    asyncio.run(meanwhile())
    assert {one.status for one in waiting} == {429}


@pytest.mark.usefixtures("hasty")
def test_only_so_many_wait(keys: Keys, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MOST_WAITING", 3)
    app, trials = watch(keys, log), [Trial([]) for _ in range(20)]

    async def meanwhile() -> None:
        refused = asyncio.gather(*(one.go_through(app) for one in trials))
        await asyncio.sleep(0.5)
        assert sum(not one.status for one in trials) == 3
        await refused

    asyncio.run(meanwhile())
    assert {one.status for one in trials} == {401}


def test_buckets_forget_the_oldest_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MOST_BUCKETS", 2)
    buckets = Buckets()
    assert [buckets.take(name, 1, 1, 0.01) for name in "aabbacb"] == [True, False, True, False, False, True, True]


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Basic x")], [(b"authorization", b"Bearer")]], ids=str)
def test_no_secret_is_found_where_there_is_none(headers: list[tuple[bytes, bytes]]) -> None:
    assert secret_in(headers) == ""
