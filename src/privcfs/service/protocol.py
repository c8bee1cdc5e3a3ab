"""HTTP on one connection, bounded in size, time and number, whoever is at the other end.

uvicorn bounds none of these by itself: its parser collects a head of any length, and a connection that sends nothing,
or a byte now and then, stays open for ever.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal, cast, final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from privcfs.service.watch import BUSY, LARGEST_BODY, RAW_HEADERS, TOO_LATE, Refusal

LARGEST_HEAD = 1 << 14  # bytes: a key takes 68, the headers of a browser behind a proxy some 2,000
PIECE = 1 << 12  # bytes given to the parser at once, so that a head is stopped at most this far beyond its bound
HEAD_SECONDS = 10.0  # from the opening of a connection, or the first byte of a further request, to the end of the head
REQUEST_SECONDS = 20.0  # from the same moment to the end of the body; SLOWEST_BODY leaves as much for a body alone
MOST_CONNECTIONS = 512  # in a process: with LARGEST_HEAD and LARGEST_BODY, at most some 40 MB for unfinished requests
MOST_FROM_ONE_ADDRESS = 256  # half: no single address takes all, and a proxy on loopback (one address) has enough
LEAST_WAIT = 1.0  # seconds after which an unfinished request gives way; an ordinary one is complete in milliseconds
PARTING_SECONDS = 5.0  # for taking the last answer, once the connection is to be closed
PARTING_BYTES = 1 << 18  # thrown away meanwhile; whoever sends more is not waiting for an answer

MALFORMED: Refusal = (400, "HTTP", "the request is not HTTP.")
LARGE_HEAD: Refusal = (431, "HTTP", f"the request's head is too large; at most {LARGEST_HEAD} bytes are read.")
State = Literal["head", "body", "answering", "idle"]


class _Stop(Exception):
    """Stops the parser; uvicorn then calls `send_400_response`."""


@final
class Parting(asyncio.Transport):
    """A transport that closes so that the last answer arrives: RFC 9112, section 9.6.

    Closing a socket with unread data resets the connection, and the other end may lose an answer that it has not read
    yet. So where a request was answered before all of it came, only the writing side is closed, and what still comes is
    thrown away, for a bounded time. `unread` says whether more of a request may come.
    """

    def __init__(self, real: asyncio.Transport, loop: asyncio.AbstractEventLoop, unread: Callable[[], bool]) -> None:
        super().__init__()
        self._real, self._loop, self._unread = real, loop, unread
        self._closing, self._thrown = False, 0
        self._end: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Closes once the other end has taken the answer, or has had the time to."""
        if self._closing:
            return
        self._closing = True
        self._end = self._loop.call_later(PARTING_SECONDS, self._real.abort)
        if self._unread() and self._real.can_write_eof():
            self._real.write_eof()
            self._real.resume_reading()
        else:
            self._real.close()

    def throw_away(self, number: int) -> None:
        """Counts bytes that came after the answer."""
        self._thrown += number
        if self._thrown > PARTING_BYTES:
            self._real.abort()

    def abort(self) -> None:
        """Closes at once."""
        self._closing = True
        self._real.abort()

    def close_at_once(self) -> None:
        """Closes as soon as what was written is sent."""
        self._closing = True
        self._end = self._loop.call_later(PARTING_SECONDS, self._real.abort)
        self._real.close()

    def lost(self) -> None:
        """The other end has closed the connection."""
        self._closing = True
        if self._end is not None:
            self._end.cancel()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Writes, unless an earlier answer has closed the connection: then the answer is dropped."""
        if not self._closing:
            self._real.write(data)

    def is_closing(self) -> bool:
        return self._closing or self._real.is_closing()

    def pause_reading(self) -> None:
        if not self._closing:
            self._real.pause_reading()

    def resume_reading(self) -> None:
        if not self._closing:
            self._real.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._real.get_extra_info(name, default)


@final
class Guarded(HttpToolsProtocol):
    """One connection. It waits for a head, then for a body, is then being answered, and idle until the next head."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._state: State = "head"
        self._since = self.loop.time()  # of the present state; in "body", since the head began
        self._head_bytes, self._heads = 0, 0
        self._early = False  # whether a request came before the one before it was answered
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admits the connection if there is room for it."""
        super().connection_made(Parting(transport, self.loop, self._is_unread))
        if self._finds_room():
            self._expect_head()
        else:
            self.connections.discard(self)
            self._say(BUSY)
            self._parting.close_at_once()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends every timer."""
        self._parting.lost()
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hands the bytes to the parser, as long as the head stays within its bound."""
        if self._state == "idle":
            self._expect_head()
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                self._parting.throw_away(len(data) - start)
                return
            piece = data[start : start + PIECE]
            waiting, heads = self._state == "head", self._heads
            super().data_received(piece)
            if self._state == "head" and not self.transport.is_closing():
                # A head that begins inside a piece, behind a body, is counted from the next piece on.
                self._head_bytes = self._head_bytes + len(piece) if waiting and heads == self._heads else 0
                if self._head_bytes > LARGEST_HEAD:
                    self._refuse(LARGE_HEAD)

    def on_message_begin(self) -> None:
        """Refuses a request that is sent before the one before it is answered: each would take memory."""
        if self._state == "answering":
            self._early, self.cycle.keep_alive = True, False
            self.flow.pause_reading()
            raise _Stop
        if self._state == "idle":
            self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Gives the body the time that is left."""
        self._state, self._heads, self._head_bytes = "body", self._heads + 1, 0
        self._set_timer(self._since + REQUEST_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Keeps no more of a body than one may have; the application refuses a longer one by its announced length."""
        if len(self.cycle.body) <= LARGEST_BODY:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete: from here on the service takes the time, not the client."""
        self._stop_timer()
        self._enter("idle" if self.cycle.response_complete else "answering")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        if self._state == "answering":
            self._enter("idle")
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What uvicorn calls where the parser stopped. A request that came too early leaves the present one alone."""
        if self._state != "answering":
            self._refuse(MALFORMED)

    def waited(self) -> float:
        """For how many seconds this connection has waited for its own request; below 0 while it is being answered."""
        return -1.0 if self._state == "answering" else self.loop.time() - self._since

    def give_way(self) -> None:
        """Makes room for another connection."""
        self.connections.discard(self)
        self.transport.abort()

    def _finds_room(self) -> bool:
        """Whether both bounds hold with this connection, after those that have waited longest gave way."""
        for most, shared in ((MOST_FROM_ONE_ADDRESS, True), (MOST_CONNECTIONS, False)):
            rivals = [one for one in self._others() if not shared or one._address() == self._address()]
            if len(rivals) >= most:
                longest = max(rivals, key=Guarded.waited)
                if longest.waited() < LEAST_WAIT:
                    return False
                longest.give_way()
        return True

    def _others(self) -> "list[Guarded]":
        return [one for one in self.connections if isinstance(one, Guarded) and one is not self]

    def _address(self) -> str:
        return "" if self.client is None else self.client[0]

    def _expect_head(self) -> None:
        self._enter("head")
        self._head_bytes = 0
        self._set_timer(self._since + HEAD_SECONDS)

    def _enter(self, state: State) -> None:
        self._state, self._since = state, self.loop.time()

    def _is_unread(self) -> bool:
        """Whether more of a request may come: a part of one did, or one came too early."""
        return self._state == "body" or self._early or self._head_bytes > 0

    def _set_timer(self, at: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_at(at, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """The request did not come in time. A connection on which nothing came is closed without a word."""
        if self._state == "head" and not self._head_bytes:
            self.transport.close()
        else:
            self._refuse(TOO_LATE)

    def _refuse(self, refusal: Refusal) -> None:
        """Answers in the application's place, unless its answer has begun, and closes."""
        self._stop_timer()
        unfinished = self.cycle is not None and not self.cycle.response_complete
        if not (unfinished and self.cycle.response_started):
            self._say(refusal)
        self.transport.close()
        if unfinished:  # whoever works on the request need not go on
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _say(self, refusal: Refusal) -> None:
        status, error, message = refusal
        body = json.dumps({"error": error, "message": message}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *RAW_HEADERS]
        headers += [(b"connection", b"close")] + ([(b"retry-after", b"1")] if status == 503 else [])
        lines = b"".join(b"%s: %s\r\n" % pair for pair in headers)
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)

    @property
    def _parting(self) -> Parting:
        return cast("Parting", self.transport)
