"""The middleware around every endpoint: bounds on size, time and number, the key, headers, metrics and the log.

The order matters. Size and key are read from the head of a request; only then is the body read, within a total time;
and only a complete request counts towards the number of requests that are served at once. So a client without a key
costs about a millisecond at most, and a client that sends slowly delays nobody. A refusal is sent after the request has
given back its place, and with a pause if its client is refused often.
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
from privcfs.service.doorkeeper import Doorkeeper
from privcfs.service.keys import Key
from privcfs.service.log import Log
from privcfs.service.marks import Marks
from privcfs.service.metrics import Metrics
from privcfs.service.pace import Patience

# Bytes of a request's body. A batch of 100 questions with long request ids takes about 20,000.
LARGEST_BODY = 1 << 16
# Bytes of a long question. A refused batch counts as so many refusals as questions of this length fit into it.
BYTES_OF_A_QUESTION = 512
# Seconds in which a whole body must have arrived.
SLOWEST_BODY = 10.0
# Requests that one process serves at once, of timed and of other endpoints each. Further ones are refused with 503.
MOST_AT_ONCE = 64
# Of these, the requests of one key, so that no single key takes all places.
MOST_OF_ONE_KEY = 32
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
NO_ROUTE = "elsewhere"  # Of requests that reached no endpoint, in metrics.
Refusal = tuple[int, str, str]  # Status, name of the error, message.
TOO_LARGE: Refusal = (413, "InputError", "the request is too large.")
TOO_LATE: Refusal = (408, "HTTP", "the request did not come in time.")
BUSY: Refusal = (503, "Busy", "the service is busy; ask again with the same request id: it pays once.")
FAILED: Refusal = (500, "Unforeseen", "the service failed; tell the owner.")


class _Refused(Exception):
    """Ends the handling of a request with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


class _Gone(Exception):
    """The client has closed the connection."""


@final
class Watch:
    """ASGI middleware. An unforeseen error is answered with a fixed text, because its own text may tell a secret."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper, log: Log, metrics: Metrics, marks: Marks) -> None:
        self._app, self._doorkeeper, self._log, self._metrics, self._marks = app, doorkeeper, log, metrics, marks
        self._patience = Patience()
        # How many requests are being served, by whether they are timed: of all keys, and of each key.
        self._serving: Counter[bool | tuple[bool, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = monotonic(), 0
        body = _Body(scope, receive)
        refusal: list[Message] = []  # Kept back until the request has given back its place.

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = [(b"connection", b"close")] if body.unread else []
                message["headers"] = [*message.get("headers", []), *RAW_HEADERS, *closing]
                self._record(scope, status, monotonic() - started)
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
                with suppress(Exception):  # The client may have closed the connection.
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
        scope["headers"] = self._doorkeeper.strip(scope["headers"])
        self._doorkeeper.hold_to_pace(key)
        timed = (scope["method"], scope["path"]) in self._marks.timed
        self._check_places(timed, key)
        await body.read()
        with self._place(timed, key):
            await self._app(scope, body.hand_on, send)

    def _check_places(self, timed: bool, key: Key) -> None:
        if self._serving[timed] >= MOST_AT_ONCE or self._serving[timed, key.name] >= MOST_OF_ONE_KEY:
            raise _Refused(BUSY)

    @contextmanager
    def _place(self, timed: bool, key: Key) -> Iterator[None]:
        self._check_places(timed, key)
        taken: Counter[bool | tuple[bool, str]] = Counter([timed, (timed, key.name)])
        self._serving += taken
        try:
            yield
        finally:
            self._serving -= taken  # Subtracting counters also drops the keys whose count is 0.

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts a request in the metrics, and logs it if its endpoint is marked so and its key is valid."""
        method, path = scope["method"], self._route(scope)
        self._metrics.answered(method if path != NO_ROUTE else "ANY", path, status, seconds)
        state: MutableMapping[str, Any] = scope.get("state", {})
        if "key" in state and (method, path) in self._marks.logged:
            self._log.note(state["key"], " ".join([method, path, state.get("note", "")]).strip(), status)

    def _route(self, scope: Scope) -> str:
        """The path of a request's endpoint, without what the caller put into it.

        The route is in the scope once a request has reached its endpoint. One that was refused before is known by its
        exact path if its endpoint is timed.
        """
        known = scope["path"] if (scope["method"], scope["path"]) in self._marks.timed else NO_ROUTE
        return str(getattr(scope.get("route"), "path", known))


@final
class _Body:
    """A request's body, which is either left unread, or read as a whole and then passed to the endpoint."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = {name: value for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")}
        length = headers.get(b"content-length", b"0")
        announced = int(length.lstrip(b"0")[:9] or 0) if length.isdigit() else LARGEST_BODY + 1
        self.too_large = announced > LARGEST_BODY or b"transfer-encoding" in headers
        self.unread = announced > 0 or self.too_large  # Whether more of the body may arrive.
        self._receive, self._bytes, self._handed_on = receive, b"", False

    def __len__(self) -> int:
        """The number of bytes that were read."""
        return len(self._bytes)

    async def read(self) -> None:
        """Reads the whole body within SLOWEST_BODY seconds, and no more of it than LARGEST_BODY."""
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
        """An ASGI `receive` that gives the whole body first, and then the server's messages, such as a disconnect."""
        if self._handed_on:
            return await self._receive()
        self._handed_on = True
        return {"type": "http.request", "body": self._bytes, "more_body": False}

    async def leave(self) -> Message:
        """An ASGI `receive` for pages that need no key: they take no body, so an unread one counts as a disconnect."""
        return {"type": "http.disconnect"} if self.unread else await self.hand_on()


def needs_key(path: str) -> bool:
    """Whether requests to this path need a key, even if there is no endpoint at it."""
    return path == "/metrics" or path.startswith("/v1")


def _who(scope: Scope) -> str:
    """By what the refusals of a client are counted: its key or, without one, its address."""
    key: Key | None = scope.get("state", {}).get("key")
    address, _ = scope.get("client") or ("", 0)
    return f"address {address}" if key is None else f"key {key.name}"


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
