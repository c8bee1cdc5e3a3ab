"""What stands around every endpoint: size and number of requests, headers, counts, the log of requests."""

import json
from asyncio import wait_for
from collections.abc import MutableMapping
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privcfs.gate.ledger.ledger import Ledger
from privcfs.service.keys import Keys
from privcfs.service.metrics import Metrics

LARGEST_BODY = 1 << 16
SLOWEST_BODY = 10  # seconds between two pieces of a body
MOST_AT_ONCE = 64  # requests in a process; more are sent away, not kept waiting
NO_KEY = 401  # counted, not written down: whoever has no key could fill the log
EVERY = 0.5  # seconds between two looks of the housekeeper
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
BUSY: Refusal = (503, "Busy", "the service is busy; ask again with the same request id: it pays once.")
FAILED: Refusal = (500, "Unforeseen", "the service failed; tell the owner.")


@final
class Watch:
    """Around the application. An unforeseen error is answered in fixed words; its own words go nowhere."""

    def __init__(self, app: ASGIApp, keys: Keys, metrics: Metrics) -> None:
        self._app, self._keys, self._metrics, self._inside = app, keys, metrics, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = monotonic(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *RAW_HEADERS]
                self._write_down(scope, status, monotonic() - started)
            await send(message)

        taken, whole = 0, False

        async def receiving() -> Message:
            """A body that comes in time, and no more of it than was announced."""
            nonlocal taken, whole
            message = await (receive() if whole else wait_for(receive(), SLOWEST_BODY))
            taken, whole = taken + len(message.get("body", b"")), not message.get("more_body", False)
            if taken > LARGEST_BODY:
                raise ValueError("too large")
            return message

        refusal = self._refusal(scope)
        self._inside += 1
        try:
            await (self._app(scope, receiving, sending) if refusal is None else _refuse(refusal, sending))
        except Exception as error:
            scope.setdefault("state", {})["note"] = type(error).__name__
            if not status:
                with suppress(Exception):  # whoever asked may be gone
                    await _refuse(FAILED, sending)
        finally:
            self._inside -= 1

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = {name: value for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")}
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length.lstrip(b"0")[:9] or 0) > LARGEST_BODY or b"transfer-encoding" in headers:
            return TOO_LARGE
        return BUSY if self._inside >= MOST_AT_ONCE else None

    def _write_down(self, scope: Scope, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "elsewhere")
        self._metrics.answered(scope["method"] if path != "elsewhere" else "ANY", path, status, seconds)
        if path.startswith("/v1") and status != NO_KEY:
            state: MutableMapping[str, Any] = scope.get("state", {})
            action = " ".join([scope["method"], path, state.get("note", "")]).strip()
            self._keys.log(state.get("key"), action, status)


async def _refuse(refusal: Refusal, send: Send) -> None:
    status, error, message = refusal
    body = json.dumps({"error": error, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close")] if status == 413 else []
    headers += [(b"retry-after", b"1")] if status == 503 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@final
class Housekeeper(Thread):
    """Writes the log of requests, and keeps the ledger's head where the owner wants it, again and again."""

    def __init__(self, keys: Keys, ledger: Ledger, metrics: Metrics) -> None:
        super().__init__(name="housekeeper", daemon=True)
        self._keys, self._ledger, self._metrics = keys, ledger, metrics
        self._over = Event()

    def run(self) -> None:
        """Until `end`, and then once more."""
        over = False
        while not over:
            over = self._over.wait(EVERY)
            for work in (self._keys.flush, self._ledger.keep_head):
                try:
                    work()
                except Exception:  # A failure of one task must not stop the other; failures are counted.
                    self._metrics.missed()

    def end(self) -> None:
        """Waits for the last look."""
        self._over.set()
        self.join()
