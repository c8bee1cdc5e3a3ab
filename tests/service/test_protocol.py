"""Every bound of the guarded protocol, before a small application; uvicorn's own protocol is the broken twin."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from privcfs.service import protocol
from privcfs.service.protocol import LARGEST_HEAD, PARTING_BYTES, PIECE, Guarded
from privcfs.service.watch import LARGEST_BODY

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


@dataclass
class Running:
    """A server in a thread of this process, and what its application does."""

    port: int
    server: uvicorn.Server
    slow: threading.Event = field(default_factory=threading.Event)  # while it is set, answers wait

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def connections(self) -> list[Any]:
        return list(self.server.server_state.connections)


@contextmanager
def running(kind: type[HttpToolsProtocol]) -> Iterator[Running]:
    """An application that reads the body, unless the path is /unread, and answers."""
    held = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        more = scope["path"] != "/unread"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message["more_body"]
        while held.is_set():
            await asyncio.sleep(0.01)
        headers = [(b"content-length", b"4")] + ([(b"connection", b"close")] if scope["path"] == "/unread" else [])
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, http=kind, ws="none", lifespan="off", log_level="critical", timeout_keep_alive=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Running(listening.getsockname()[1], server, held)
        finally:
            held.clear()
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def answer(wire: socket.socket) -> bytes:
    """Everything until the other end closes; fails after five seconds."""
    found = b""
    while part := wire.recv(65536):
        found += part
    return found


def one_answer(wire: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"done"):
        found += wire.recv(65536)
    return found


def large_head_is_refused(server: Running) -> None:
    with closing(server.connect()) as wire:
        wire.sendall(GET + b"X: " + b"a" * (LARGEST_HEAD + PIECE))
        assert answer(wire).startswith(b"HTTP/1.1 431 ")


def silence_is_ended(server: Running) -> None:
    with closing(server.connect()) as wire:
        assert answer(wire) == b""


def dripping_head_is_ended(server: Running) -> None:
    """A byte every tenth of a second: never a pause as long as the bound."""
    with closing(server.connect()) as wire:
        assert drip(wire, GET + b"X: " + b"a" * 100).startswith(b"HTTP/1.1 408 ")


def dripping_empty_lines_are_ended(server: Running) -> None:
    with closing(server.connect()) as wire:
        assert drip(wire, b"\r\n" * 100).startswith(b"HTTP/1.1 408 ")


def dripping_body_is_ended(server: Running) -> None:
    with closing(server.connect()) as wire:
        wire.sendall(POST % 1000)
        assert drip(wire, b"x" * 100).startswith(b"HTTP/1.1 408 ")


def dripping_second_head_is_ended(server: Running) -> None:
    with closing(server.connect()) as wire:
        wire.sendall(GET + b"\r\n")
        one_answer(wire)
        time.sleep(0.3)
        assert drip(wire, GET + b"X: " + b"a" * 100).startswith(b"HTTP/1.1 408 ")


def drip(wire: socket.socket, content: bytes) -> bytes:
    wire.settimeout(0.1)
    end = time.monotonic() + 4
    for byte in content:
        assert time.monotonic() < end
        try:
            wire.sendall(bytes([byte]))
            if found := wire.recv(65536):
                return found
            return b"closed"
        except TimeoutError:
            continue
    raise AssertionError("still open")


def pipelined_requests_take_no_memory(server: Running) -> None:
    server.slow.set()
    with closing(server.connect()) as wire:
        wire.sendall((GET + b"\r\n") * 1000)
        time.sleep(0.3)
        (only,) = server.connections()
        waiting = len(only.pipeline)
        server.slow.clear()
        assert waiting == 0
        assert answer(wire).count(b"HTTP/1.1 200 ") == 1


def new_connections_are_bounded(server: Running) -> None:
    wires = [server.connect() for _ in range(12)]
    try:
        time.sleep(0.2)
        assert len(server.connections()) <= 8
        refused = [wire for wire in wires if ready(wire)]
        assert len(refused) == 4
        assert all(answer(wire).startswith(b"HTTP/1.1 503 ") for wire in refused)
    finally:
        for wire in wires:
            wire.close()


def the_longest_waiting_gives_way(server: Running) -> None:
    slow = [server.connect() for _ in range(8)]
    try:
        for number, wire in enumerate(slow):
            wire.sendall(GET if number % 2 else POST % 10)
        time.sleep(0.4)
        with closing(server.connect()) as wire:
            wire.sendall(GET + b"Connection: close\r\n\r\n")
            assert answer(wire).endswith(b"done")
        assert len([wire for wire in slow if ready(wire)]) == 1
        assert ready(slow[0]), "the oldest one"
    finally:
        for wire in slow:
            wire.close()


def ready(wire: socket.socket) -> bool:
    """Whether something, or the end, can be read."""
    wire.settimeout(0.05)
    try:
        wire.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
    finally:
        wire.settimeout(5)
    return True


CHECKS = [
    large_head_is_refused,
    silence_is_ended,
    dripping_head_is_ended,
    dripping_empty_lines_are_ended,
    dripping_body_is_ended,
    dripping_second_head_is_ended,
    pipelined_requests_take_no_memory,
    new_connections_are_bounded,
    the_longest_waiting_gives_way,
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a test can reach."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.8)
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 1.2)
    monkeypatch.setattr(protocol, "MOST_FROM_ONE_ADDRESS", 8)
    monkeypatch.setattr(protocol, "LEAST_WAIT", 0.3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.__name__)
def test_the_guarded_protocol_keeps_its_bounds(check: Callable[[Running], None]) -> None:
    with running(Guarded) as server:
        check(server)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.__name__)
def test_each_check_rejects_a_protocol_without_bounds(check: Callable[[Running], None]) -> None:
    with running(HttpToolsProtocol) as server, pytest.raises((AssertionError, TimeoutError)):
        check(server)


@pytest.mark.usefixtures("small")
def test_a_request_that_is_being_answered_never_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_FROM_ONE_ADDRESS", 2)
    with running(Guarded) as server:
        server.slow.set()
        answered = [server.connect() for _ in range(2)]
        for wire in answered:
            wire.sendall(GET + b"Connection: close\r\n\r\n")
        time.sleep(1.5)
        with closing(server.connect()) as late:
            assert answer(late).startswith(b"HTTP/1.1 503 ")
        server.slow.clear()
        for wire in answered:
            assert answer(wire).endswith(b"done")
            wire.close()


@pytest.mark.usefixtures("small")
def test_the_bound_on_all_connections_holds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 3)
    with running(Guarded) as server:
        wires = [server.connect() for _ in range(5)]
        time.sleep(0.2)
        assert sum(map(ready, wires)) == 2
        for wire in wires:
            wire.close()


def test_heads_up_to_the_bound_are_read_also_behind_bodies() -> None:
    with running(Guarded) as server, closing(server.connect()) as wire:
        fill = LARGEST_HEAD - len(GET) - len(b"X: \r\n\r\n")
        for _ in range(3):
            wire.sendall(POST % (PIECE + 7) + b"x" * (PIECE + 7))
            one_answer(wire)
            wire.sendall(GET + b"X: " + b"a" * fill + b"\r\n\r\n")
            assert one_answer(wire).startswith(b"HTTP/1.1 200 ")


def test_an_answer_before_the_body_arrives_although_the_body_still_comes() -> None:
    with running(Guarded) as server:
        for size in (1, LARGEST_BODY, PARTING_BYTES // 2):
            with closing(server.connect()) as wire:
                wire.sendall(b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
                time.sleep(0.1)
                wire.sendall(b"x" * size)
                assert answer(wire).endswith(b"done")


def test_whoever_goes_on_sending_after_the_answer_is_cut_off() -> None:
    with running(Guarded) as server, closing(server.connect()) as wire:
        wire.sendall(b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            wire.sendall(b"x" * (1 << 28))


def test_what_is_not_http_is_refused_in_words() -> None:
    with running(Guarded) as server, closing(server.connect()) as wire:
        wire.sendall(b"nonsense\r\n\r\n")
        found = answer(wire)
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b'"message": "the request is not HTTP."' in found
