"""A real server under a stranger's hand: what costs them a key, and what holds up nobody else."""

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from privcfs.errors import LedgerError, LedgerMissing, SettingsError
from privcfs.service import log as log_module
from privcfs.service.database import LOG, open_database
from privcfs.service.health import EVERY, LEDGER, STALE, Health, Housekeeper
from privcfs.service.keys import Keys
from privcfs.service.log import Log
from privcfs.service.metrics import Metrics
from tests.service.served import Served, untimed
from tests.service.test_bad_input import send
from tests.shell import Shell, newcomer

HEAD = "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n"
CROWD = 64  # as many as there are places
RELEASE = {"target": "person-3", "epsilon": "0.01"}


def begin(served: Served, path: str, key: str | None, length: int = 40) -> socket.socket:
    """A request of which the head and the first byte of the body have come."""
    wire = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    authorization = "" if key is None else f"Authorization: Bearer {key}\r\n"
    wire.sendall(HEAD.format(path, length, authorization).encode() + b"{")
    return wire


def read(wire: socket.socket) -> str:
    found = b""
    while part := wire.recv(65536):
        found += part
    return found.decode()


@pytest.mark.parametrize("path", ["/v1/releases", "/v1/nothing", "/metrics"])
def test_a_request_without_a_valid_key_is_refused_before_its_body_comes(served: Served, path: str) -> None:
    for key in (None, "nonsense", served.owner[:-2] + "__"):
        started = time.monotonic()
        with closing(begin(served, path, key)) as wire:
            assert read(wire).startswith("HTTP/1.1 401 "), "and the connection is closed"
        assert time.monotonic() - started < 2


@pytest.mark.parametrize("with_key", [False, True], ids=["strangers", "analysts"])
def test_slow_bodies_hold_up_nobody(served: Served, with_key: bool) -> None:
    key = served.key("slow") if with_key else None
    stalled = [begin(served, "/v1/releases", key) for _ in range(CROWD)]
    try:
        time.sleep(0.3)
        started = time.monotonic()
        assert httpx.get(f"{served.url}/health", timeout=10).status_code == 200
        assert served.ask("POST", "/v1/releases", served.owner, RELEASE).status_code == 200
        assert time.monotonic() - started < 5
    finally:
        for wire in stalled:
            wire.close()


def test_a_body_has_a_total_time(served: Served) -> None:
    """A byte a second is never ten seconds of silence."""
    with closing(begin(served, "/v1/releases", served.owner)) as wire:
        wire.settimeout(1)
        for _ in range(16):
            try:
                assert wire.recv(65536).startswith(b"HTTP/1.1 408 ")
            except TimeoutError:
                wire.sendall(b" ")
            else:
                return
    raise AssertionError("the body dripped for 16 seconds")


def rows(folder: Path) -> int:
    time.sleep(2 * EVERY + 0.2)
    with closing(sqlite3.connect(folder / "service.db")) as raw:
        return int(raw.execute("SELECT COUNT(*) FROM service_log").fetchone()[0])


def test_nothing_is_written_down_about_those_without_a_key(served: Served) -> None:
    before = rows(served.shell.folder)
    statuses = set()
    for path in ("/v1/releases", "/v1/releases/batch", "/v1/keys", "/v1/nothing", "/v1/quote", "/metrics", "/health"):
        for method in ("GET", "POST", "PUT", "DELETE"):
            for content in (b"{}", b"[", b"x" * 70_000):
                headers = {"Content-Type": "application/json", "Authorization": "Bearer privcfs_0_0"}
                found = httpx.request(method, f"{served.url}{path}", headers=headers, content=content, timeout=10)
                statuses.add(found.status_code)
    for text in (b"nonsense\r\n\r\n", b"POST /v1/releases HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        statuses.add(int(send(served, text)[9:12]))
    assert statuses >= {400, 401, 405, 413}
    assert rows(served.shell.folder) == before


def test_paid_questions_refusals_of_them_and_changes_of_keys_are_written_down_and_looks_are_not(served: Served) -> None:
    ann = served.key("a person who looks")
    before = rows(served.shell.folder)
    for path in ("/v1/quote?epsilon=1", "/v1/budget", "/v1/me", "/v1/guess/person-3", "/v1/candidates/person-3"):
        assert served.ask("GET", path, ann).status_code == 200
    assert served.ask("GET", "/metrics", served.owner).status_code == 200
    assert rows(served.shell.folder) == before
    assert served.ask("POST", "/v1/releases", ann, RELEASE).status_code == 200
    assert served.ask("POST", "/v1/releases", ann, {**RELEASE, "epsilon": "8"}).status_code == 402
    made = served.ask("POST", "/v1/keys", served.owner, {"analyst": "x"}).json()
    assert served.ask("DELETE", f"/v1/keys/{made['name']}", served.owner).status_code == 204
    assert served.ask("GET", "/v1/ledger", served.owner).status_code == 200
    assert rows(served.shell.folder) == before + 5


def test_a_slash_too_many_is_not_found_and_repeats_no_host(served: Served) -> None:
    headers = {"Host": "evil.example", "Authorization": f"Bearer {served.owner}"}
    found = httpx.get(f"{served.url}/v1/me/", headers=headers, timeout=10)
    assert found.status_code == 404
    assert "evil" not in str(found.headers) + found.text


def test_the_files_of_the_service_are_for_their_owner_alone(served: Served) -> None:
    files = list(served.shell.folder.glob("service.db*"))
    assert len(files) == 3, "the database, its log and its shared memory"
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_files_of_an_older_service_are_tightened(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    open_database(f"sqlite:///{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(SettingsError, match="service database cannot be opened"):
        open_database(f"sqlite:///{tmp_path / 'nowhere' / 'service.db'}")


def test_opening_the_database_twice_leaves_the_locks_of_the_first_alone(tmp_path: Path) -> None:
    """A process that closes a file loses its locks on it; another one would then take the write-ahead log away."""
    url = f"sqlite:///{tmp_path / 'service.db'}"
    first = Keys(open_database(url))
    _, mine = first.make("analyst", "ann")
    assert Keys(open_database(url)).check(mine)
    imports = "from privcfs.service.database import open_database; from privcfs.service.keys import Keys"
    script = f"{imports}; print(Keys(open_database({url!r})).make('analyst', 'bob')[1])"
    for _ in range(2):
        theirs = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        assert first.check(theirs.strip()), "a key that another process made"


def test_targets_of_keys_are_kept_by_their_public_labels(tmp_path: Path) -> None:
    shell = untimed(newcomer(tmp_path))
    path = tmp_path / "vault.toml"
    path.write_text(path.read_text().replace("node_ids =", "# node_ids ="))
    for name in ("edges.csv", "public_edges.csv"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("person-", ""))
    (tmp_path / "allowed.txt").write_text("007\n3\n")
    assert shell.ask("keys", "make", "ann", "--targets", "allowed.txt")["targets"] == ["3", "7"]
    service = Served(shell)
    try:
        made = service.ask("POST", "/v1/keys", service.owner, {"analyst": "bob", "targets": ["007"]}).json()
        assert made["targets"] == ["7"]
        assert service.ask("GET", "/v1/candidates/7", made["secret"]).status_code == 200
        assert service.ask("GET", "/v1/candidates/3", made["secret"]).status_code == 403
    finally:
        service.stop()


def test_the_log_is_shortened_by_age_and_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "PRUNED_AT_ONCE", 4)
    monkeypatch.setattr(log_module, "MOST_LINES", 6)
    database = open_database(f"sqlite:///{tmp_path / 'service.db'}")
    log = Log(database, days=7)
    key, _ = Keys(database).make("analyst", "ann")
    assert log.prune() == 0
    for _ in range(20):
        log.note(key, "POST /v1/releases", 200)
    log.flush()
    with database.begin() as connection:
        connection.execute(LOG.update().where(LOG.c.position <= 10).values(time="2020-01-01T00:00:00+00:00"))
    assert [log.prune() for _ in range(5)] == [4, 4, 4, 2, 0], "bounded steps"
    assert [one["position"] for one in log.history()] == [20, 19, 18, 17, 16, 15]


def test_a_wrong_number_of_days_is_refused(tmp_path: Path) -> None:
    shell = newcomer(tmp_path)
    path = tmp_path / "vault.toml"
    path.write_text(path.read_text().replace("# [service]", "[service]").replace("# log_days = 90", "log_days = 0"))
    assert "service.log_days is 0; give a number from 1" in shell.fails(SettingsError, "keys", "list")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_health_says_what_the_last_look_found() -> None:
    clock = Clock()
    health, metrics = Health(clock), Metrics()
    found: list[Exception] = []

    def work() -> None:
        if found:
            raise found[0]

    housekeeper = Housekeeper(LEDGER, work, health, metrics)
    housekeeper.look()
    assert health.find() == (200, {"status": "ok"})
    found.append(LedgerMissing("ledger budget.db is gone; restore the newest copy."))
    housekeeper.look()
    gone = (503, {"error": "LedgerMissing", "message": "ledger budget.db is gone; restore the newest copy."})
    assert health.find() == gone
    found[0] = SettingsError("head file /srv/owner/head.json cannot be written.")
    housekeeper.look()
    vague = {"error": "SettingsError", "message": "the ledger cannot be kept; the owner should look."}
    assert health.find() == (503, vague), "no path of the owner's"
    found.clear()
    housekeeper.look()
    assert health.find()[0] == 200
    health.note(LEDGER, LedgerError("ledger cannot be reached"))
    assert health.find()[1]["error"] == "LedgerError", "a charge that was refused shows at once"
    housekeeper.look()
    clock.now = STALE + 1
    stalled = (503, {"error": "Stalled", "message": "the ledger has not answered for 6 seconds; tell the owner."})
    assert health.find() == stalled, "a housekeeper that hangs"
    assert b"privcfs_housekeeping_failures_total 2.0" in metrics.text()


@pytest.fixture
def slow_service(tmp_path: Path) -> Iterator[Served]:
    shell = newcomer(tmp_path)
    path = tmp_path / "vault.toml"
    path.write_text(path.read_text().replace("# answer_seconds = 0.5 ", "answer_seconds = 2 "))
    service = Served(shell)
    yield service
    assert "Traceback" not in service.stop()


def test_answers_that_wait_for_their_public_time_hold_up_nothing_else(slow_service: Served) -> None:
    key = slow_service.key("ann")
    assert slow_service.ask("POST", "/v1/releases", key, RELEASE).status_code == 200, "prepared once"
    crowd = [begin_whole(slow_service, key) for _ in range(CROWD)]
    try:
        time.sleep(1)
        started = time.monotonic()
        for path in ("/health", "/v1/quote?epsilon=1", "/v1/budget", "/v1/guess/person-1"):
            assert slow_service.ask("GET", path, key).status_code == 200
        assert time.monotonic() - started < 2
        busy = slow_service.ask("POST", "/v1/releases", key, RELEASE)
        assert (busy.status_code, busy.json()["error"]) == (503, "Busy")
    finally:
        slow_service.process.kill()
        for wire in crowd:
            wire.close()


def begin_whole(served: Served, key: str) -> socket.socket:
    """A paid question whose answer nobody waits for."""
    wire = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    content = json.dumps(RELEASE)
    wire.sendall(HEAD.format("/v1/releases", len(content), f"Authorization: Bearer {key}\r\n").encode())
    wire.sendall(content.encode())
    return wire


def test_health_is_refused_while_the_ledger_is(tmp_path: Path) -> None:
    service = Served(untimed(newcomer(tmp_path)))
    try:
        assert service.ask("GET", "/health", None).status_code == 200
        for path in tmp_path.glob("budget.db*"):
            os.rename(path, tmp_path / f"away-{path.name}")
        time.sleep(3 * EVERY)
        found = service.ask("GET", "/health", None)
        assert found.status_code == 503
        assert found.json()["error"].startswith("Ledger")
        assert str(tmp_path) not in found.text
        assert "privcfs_housekeeping_failures_total 0.0" not in service.ask("GET", "/metrics", service.owner).text
    finally:
        service.stop()


def served_with(shell: Shell, setting: str) -> tuple[str, float]:
    """What `privcfs serve` says, and the seconds of an answer about a node that was asked about before."""
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("# answer_seconds = 0.5 ", setting))
    service = Served(shell, "--workers", "2")
    try:
        key = service.key("ann")
        for _ in range(6):
            assert service.ask("POST", "/v1/releases", key, RELEASE).status_code == 200
        took = []
        for _ in range(4):
            started = time.monotonic()
            service.ask("POST", "/v1/releases", key, RELEASE)
            took.append(time.monotonic() - started)
    finally:
        said = service.stop()
    return said, min(took)


def test_answers_take_a_public_time_unless_the_owner_switches_it_off(tmp_path: Path) -> None:
    shells = []
    for name in ("default", "owners", "off"):
        (tmp_path / name).mkdir()
        shells.append(newcomer(tmp_path / name))
    said, seconds = served_with(shells[0], "# answer_seconds = 0.5 ")
    assert "On public data, a first answer about a node takes" in said
    assert "Every new answer takes 0.25 seconds" in said
    assert seconds >= 0.25, "in every worker"
    said, seconds = served_with(shells[1], "answer_seconds = 0.4 ")
    assert "Every new answer takes 0.4 seconds" in said
    assert seconds >= 0.4
    said, seconds = served_with(shells[2], 'answer_seconds = "off" ')
    assert "answer_seconds is off: the time of an answer depends on private edges" in said
    assert seconds < 0.25


def test_a_service_is_refused_where_public_data_already_take_too_long(tmp_path: Path) -> None:
    shell = newcomer(tmp_path)
    path = tmp_path / "vault.toml"
    for setting in ("answer_seconds = 0.0001 ", "evaluation_seconds = 0.0001 "):
        before = path.read_text()
        path.write_text(before.replace("# answer_seconds = 0.5 ", setting))
        said = " ".join(shell.fails(SettingsError, "serve").split())
        assert f"{setting.split()[0]} is 0.0001, but evaluating public data needs" in said
        path.write_text(before)


def test_one_key_cannot_take_all_places(slow_service: Served) -> None:
    greedy, other = slow_service.key("greedy"), slow_service.key("other")
    assert slow_service.ask("POST", "/v1/releases", greedy, RELEASE).status_code == 200, "prepared once"
    crowd = [begin_whole(slow_service, greedy) for _ in range(CROWD)]
    late = begin_whole(slow_service, other)
    try:
        late.settimeout(1)
        with pytest.raises(TimeoutError, match="timed out"):  # it waits for its turn and is not sent away
            late.recv(1)
    finally:
        slow_service.process.kill()
        for wire in (*crowd, late):
            wire.close()
