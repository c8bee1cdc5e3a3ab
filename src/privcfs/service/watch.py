"""What stands around every endpoint: size, key, pace, places, headers, counts, the log of requests.

The order is the point. Size and key are read from the head of a request; only then is the body read, within a total
time; and only a complete request takes one of the places. So whoever has no key costs about a millisecond at most, and
whoever sends slowly holds up nobody. A refusal is sent when its place is free again, and later where there are many.
"""

import json
from asyncio import timeout
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privcfs.errors import NoKey, PrivcfsError
from privcfs.service.doorkeeper import Doorkeeper, Patience
from privcfs.service.keys import Key, Keys
from privcfs.service.metrics import Metrics

LARGEST_BODY = 1 << 16  # bytes: a batch of 100 questions with long request ids takes some 20,000
BYTES_OF_A_QUESTION = 512  # a long one; a refused batch counts by its length
SLOWEST_BODY = 10.0  # seconds for a body as a whole
MOST_AT_ONCE = 64  # requests of each line in a process; more are sent away, not kept waiting
MOST_OF_ONE_KEY = 32  # of these: no single key takes all places
PAID = {("POST", "/v1/releases"), ("POST", "/v1/releases/batch"), ("POST", "/v1/dry-run")}  # wait for a public time
LOGGED = {
    ("POST", "/v1/releases"),
    ("POST", "/v1/releases/batch"),
    ("POST", "/v1/keys"),
    ("DELETE", "/v1/keys/{name}"),
    ("GET", "/v1/ledger"),
    ("GET", "/v1/ledger/head"),
    ("GET", "/v1/log"),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
Refusal = tuple[int, str, str]
TOO_LARGE: Refusal = (413, "InputError", "the request is too large.")
TOO_LATE: Refusal = (408, "HTTP", "the request did not come in time.")
BUSY: Refusal = (503, "Busy", "the service is busy; ask again with the same request id: it pays once.")
FAILED: Refusal = (500, "Unforeseen", "the service failed; tell the owner.")


class _Refused(Exception):
    """A request that goes no further, with its answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


class _Gone(Exception):
    """Whoever asked has closed the connection."""


@final
class Watch:
    """Around the application. An unforeseen error is answered in fixed words; its own words go nowhere."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper, keys: Keys, metrics: Metrics) -> None:
        self._app, self._doorkeeper, self._keys, self._metrics = app, doorkeeper, keys, metrics
        self._patience = Patience()
        self._inside: Counter[bool | tuple[bool, str]] = Counter()  # paid or not, of all keys and of each

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = monotonic(), 0
        body = _Body(scope, receive)
        refusal: list[Message] = []  # waits, where it has to, when the request's place is free again

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = [(b"connection", b"close")] if body.unread else []
                message["headers"] = [*message.get("headers", []), *RAW_HEADERS, *closing]
                self._write_down(scope, status, monotonic() - started)
            if 400 <= status < 500:
                refusal.append(message)
            else:
                await send(message)

        try:
            await self._serve(scope, body, sending)
        except _Gone:
            return
        except Exception as error:
            if not isinstance(error, _Refused | PrivcfsError):
                scope.setdefault("state", {})["note"] = type(error).__name__
            if not status:
                with suppress(Exception):  # whoever asked may be gone
                    await _refuse(_refusal(error), sending)
        if refusal:
            with suppress(Exception):
                await self._patience.wait(_who(scope), 1 + len(body) / BYTES_OF_A_QUESTION)
                for message in refusal:
                    await send(message)

    async def _serve(self, scope: Scope, body: "_Body", send: Send) -> None:
        if body.too_large:
            raise _Refused(TOO_LARGE)
        if not needs_key(scope["path"]):
            await self._app(scope, body.leave, send)
            return
        key = await self._doorkeeper.find(scope["headers"])
        scope.setdefault("state", {})["key"] = key
        self._doorkeeper.hold_to_pace(key)
        paid = (scope["method"], scope["path"]) in PAID
        self._check_places(paid, key)
        await body.read()
        with self._place(paid, key):
            await self._app(scope, body.hand_on, send)

    def _check_places(self, paid: bool, key: Key) -> None:
        if self._inside[paid] >= MOST_AT_ONCE or self._inside[paid, key.name] >= MOST_OF_ONE_KEY:
            raise _Refused(BUSY)

    @contextmanager
    def _place(self, paid: bool, key: Key) -> Iterator[None]:
        self._check_places(paid, key)
        taken: Counter[bool | tuple[bool, str]] = Counter([paid, (paid, key.name)])
        self._inside += taken
        try:
            yield
        finally:
            self._inside -= taken  # which also drops what is at 0

    def _write_down(self, scope: Scope, status: int, seconds: float) -> None:
        method, path = scope["method"], _route(scope)
        self._metrics.answered(method if path != "elsewhere" else "ANY", path, status, seconds)
        state: MutableMapping[str, Any] = scope.get("state", {})
        if "key" in state and (method, path) in LOGGED:
            self._keys.log(state["key"], " ".join([method, path, state.get("note", "")]).strip(), status)


@final
class _Body:
    """A request's body: left unread, or read as a whole and handed on."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = {name: value for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")}
        length = headers.get(b"content-length", b"0")
        announced = int(length.lstrip(b"0")[:9] or 0) if length.isdigit() else LARGEST_BODY + 1
        self.too_large = announced > LARGEST_BODY or b"transfer-encoding" in headers
        self.unread = announced > 0 or self.too_large  # whether more of the request may come
        self._receive, self._bytes, self._handed_on = receive, b"", False

    def __len__(self) -> int:
        """Bytes that were read."""
        return len(self._bytes)

    async def read(self) -> None:
        """The whole of it, in time, and no more of it than was announced."""
        try:
            async with timeout(SLOWEST_BODY):
                while self.unread:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        raise _Gone
                    self._bytes += message.get("body", b"")
                    if len(self._bytes) > LARGEST_BODY:
                        raise _Refused(TOO_LARGE)
                    self.unread = message.get("more_body", False)
        except TimeoutError:
            raise _Refused(TOO_LATE) from None

    async def hand_on(self) -> Message:
        """What was read, once; then whatever comes: that the client has gone."""
        if self._handed_on:
            return await self._receive()
        self._handed_on = True
        return {"type": "http.request", "body": self._bytes, "more_body": False}

    async def leave(self) -> Message:
        """Nothing: pages that need no key take no body."""
        return {"type": "http.disconnect"} if self.unread else await self.hand_on()


def needs_key(path: str) -> bool:
    """Whether an endpoint, or what would be one, is for those with a key."""
    return path == "/metrics" or path.startswith("/v1")


def _who(scope: Scope) -> str:
    """Whose refusal it is: a key's or, without one, an address's."""
    key: Key | None = scope.get("state", {}).get("key")
    address, _ = scope.get("client") or ("", 0)
    return f"address {address}" if key is None else f"key {key.name}"


def _route(scope: Scope) -> str:
    """The path of the endpoint, without what the caller put into it; known for paid ones before they are reached."""
    known = scope["path"] if (scope["method"], scope["path"]) in PAID else "elsewhere"
    return str(getattr(scope.get("route"), "path", known))


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, _Refused):
        return error.refusal
    return (error.status, type(error).__name__, str(error)) if isinstance(error, PrivcfsError) else FAILED


async def _refuse(refusal: Refusal, send: Send) -> None:
    status, error, message = refusal
    body = json.dumps({"error": error, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == NoKey.status else []
    headers += [(b"retry-after", b"1")] if status == 503 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
