"""Identity from a reverse proxy: a real server over TCP with a secret, and over a Unix socket without one."""

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from privcfs.errors import LedgerError, NotAllowed, SettingsError
from privcfs.service.identity import (
    SECRET_HEADER,
    Identities,
    People,
    checked_header,
    read_people,
    read_secret,
)
from tests.service.served import Served, advising, untimed
from tests.shell import Shell, newcomer
from tests.worlds import random_world

WHO = "X-Forwarded-User"
SECRET = "0123456789abcdef" * 4
TABLE = "identity,node,role\npia@example.org,person-3\nuna@example.org,person-5\nuna@example.org,person-6\n"
TABLE += "ann@example.org,,analyst\nbob@example.org,person-1,analyst\n"


def proxied(folder: Path, *, secret: bool) -> Shell:
    shell = advising(untimed(newcomer(folder)))
    (folder / "people.csv").write_text(TABLE)
    lines = ["[service]", f'identity_header = "{WHO}"', 'people = "people.csv"']
    if secret:
        (folder / "proxy.secret").write_text(f"{SECRET}\n")
        (folder / "proxy.secret").chmod(0o640)
        lines.append('identity_secret_file = "proxy.secret"')
    path = folder / "vault.toml"
    settings = path.read_text()
    assert "# [service] " in settings
    path.write_text(settings.replace("# [service] ", "\n".join([*lines, "#"])))
    return shell


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    service = Served(proxied(tmp_path_factory.mktemp("proxied"), secret=True))
    yield service
    said = service.stop()
    assert "Traceback" not in said
    assert SECRET not in said


def ask(served: Served, headers: Any, path: str = "/v1/me", body: Any = None) -> httpx.Response:
    return httpx.request("GET" if body is None else "POST", served.url + path, headers=headers, json=body, timeout=30)


def test_whom_the_proxy_names_has_the_rights_of_the_table(served: Served) -> None:
    def named(identity: str, path: str = "/v1/me", body: Any = None) -> httpx.Response:
        return ask(served, {WHO: identity, SECRET_HEADER: SECRET}, path, body)

    pia = named("pia@example.org").json()
    assert (pia["role"], pia["targets"], pia["analyst"]) == ("person", ["person-3"], "person: pia@example.org")
    assert named("una@example.org").json()["targets"] == ["person-5", "person-6"]
    assert named("pia@example.org", "/v1/advice", {}).json()["target"] == 3
    assert named("pia@example.org", "/v1/advice", {"target": "person-5"}).status_code == 403
    assert named("pia@example.org", "/v1/budget").status_code == 403
    question = {"target": "person-5", "epsilon": "0.1"}
    assert named("ann@example.org", "/v1/releases", question).status_code == 200
    assert named("bob@example.org", "/v1/releases", question).status_code == 403
    stranger = named("eve@example.org")
    assert (stranger.status_code, "no node is known to be yours" in stranger.json()["message"]) == (403, True)
    assert named("PIA@example.org").status_code == 403, "letter by letter"
    assert named("ann@example.org", "/v1/log").status_code == 403, "nobody becomes an owner"


def header_counts_only_with_proof(served: Served, send: Any = ask) -> None:
    """The check: what a client writes into the header opens nothing, whatever secret it makes up."""
    named = (WHO, "pia@example.org")
    wrong = [SECRET[:-1], SECRET + "0", "", SECRET.upper(), "é" * 32]
    tried: list[list[tuple[str, str]]] = [
        [named],
        *([named, (SECRET_HEADER, one)] for one in wrong),
        [named, (SECRET_HEADER, SECRET), (SECRET_HEADER, "other")],
        [named, named, (SECRET_HEADER, SECRET)],
        [named, (WHO, "una@example.org"), (SECRET_HEADER, SECRET)],
        [("X_Forwarded_User", "pia@example.org"), (SECRET_HEADER, SECRET)],
        [(WHO, ""), (SECRET_HEADER, SECRET)],
        [(SECRET_HEADER, SECRET)],
        [named, ("Authorization", f"Bearer {SECRET}")],
    ]
    for headers in tried:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        for path, body in (("/v1/me", None), ("/v1/advice", {})):
            refused = send(served, raw, path, body)
            assert (refused.status_code, refused.json().get("error")) == (401, "NoKey"), (headers, refused.text)


def test_a_wrong_or_missing_secret_is_refused_and_never_falls_back_to_the_header(served: Served) -> None:
    header_counts_only_with_proof(served)


def test_the_check_rejects_a_service_that_believes_the_header(served: Served) -> None:
    """The twin: something in front of it adds the secret to whatever clients send."""

    def believing(served: Served, raw: list[tuple[bytes, bytes]], path: str, body: Any) -> httpx.Response:
        kept = [(name, value) for name, value in raw if name != SECRET_HEADER.encode()]
        return ask(served, [*kept, (SECRET_HEADER.encode(), SECRET.encode())], path, body)

    with pytest.raises(AssertionError, match="pia@example"):
        header_counts_only_with_proof(served, believing)


def test_a_key_counts_before_a_header_and_a_header_without_proof_is_as_if_it_were_not_there(served: Served) -> None:
    key = {"Authorization": f"Bearer {served.new_key('kim')}"}
    for more in ({}, {WHO: "pia@example.org"}, {WHO: "pia@example.org", SECRET_HEADER: SECRET}):
        assert ask(served, {**key, **more}).json()["analyst"] == "kim"
    assert ask(served, {**key, SECRET_HEADER: "forged"}).status_code == 401
    revoked = {"Authorization": f"Bearer privcfs_{'0' * 12}_{'A' * 43}", WHO: "pia@example.org", SECRET_HEADER: SECRET}
    assert ask(served, revoked).status_code == 401, "a wrong key does not become somebody else"
    token = {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", WHO: "pia@example.org", SECRET_HEADER: SECRET}
    assert ask(served, token).json()["analyst"] == "person: pia@example.org", "a token of the proxy's is no key of ours"


def test_a_row_that_is_taken_away_opens_nothing_any_more(served: Served) -> None:
    table, named = served.shell.folder / "people.csv", {WHO: "zoe@example.org", SECRET_HEADER: SECRET}

    def status(rows: str, wanted: int) -> None:
        table.write_text(rows)
        end = time.monotonic() + 20
        while (found := ask(served, named).status_code) != wanted:
            assert time.monotonic() < end, found
            time.sleep(0.3)

    try:
        status(TABLE + "zoe@example.org,person-7\n", 200)
        status(TABLE + "zoe@example.org,nobody\n", 503)  # a table with a mistake lets nobody in
        status(TABLE, 403)
    finally:
        table.write_text(TABLE)
        time.sleep(1.2)


def test_persons_who_are_named_are_paced(served: Served) -> None:
    named = {WHO: "una@example.org", SECRET_HEADER: SECRET}
    statuses = [ask(served, named).status_code for _ in range(40)]
    assert {200, 429} == set(statuses)


def answers(path: Path) -> bool:
    """Whether somebody listens on a socket; one that a dead process left behind refuses."""
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0


@pytest.fixture(scope="module")
def socketed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    shell = proxied(tmp_path_factory.mktemp("socket"), secret=False)
    path = shell.folder / "run.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    command = [sys.executable, "-c", "from privcfs.cli import main; main()", "serve", "--unix", str(path)]
    with (shell.folder / "said.txt").open("w") as said:
        process = subprocess.Popen(
            command, cwd=shell.folder, env=shell.environment, stdout=said, stderr=subprocess.STDOUT
        )
    end = time.monotonic() + 120
    while not answers(path):
        assert process.poll() is None, (shell.folder / "said.txt").read_text()
        assert time.monotonic() < end
        time.sleep(0.2)
    client = httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://service", timeout=30)
    yield path, client
    client.close()
    process.terminate()
    process.wait(timeout=30)
    assert not path.exists(), "the socket is taken away"
    assert "Traceback" not in (shell.folder / "said.txt").read_text()


def test_over_a_unix_socket_its_file_permissions_are_the_proof(socketed: tuple[Path, httpx.Client]) -> None:
    path, client = socketed
    assert stat.S_IMODE(path.stat().st_mode) == 0o660, "for its owner and group alone"
    named = {WHO: "pia@example.org"}
    assert client.get("/v1/me", headers=named).json()["targets"] == ["person-3"]
    assert client.post("/v1/advice", headers=named, json={}).json()["target"] == 3
    assert client.post("/v1/advice", headers=named, json={"target": 4}).status_code == 403
    assert client.get("/v1/me").status_code == 401
    twice = [(WHO.encode(), b"pia@example.org"), (WHO.encode(), b"una@example.org")]
    assert client.get("/v1/me", headers=twice).status_code == 401, "one of them may be a client's copy"
    assert client.get("/v1/me", headers={**named, SECRET_HEADER: SECRET}).status_code == 401
    assert client.get("/v1/me", headers={WHO: "eve@example.org"}).status_code == 403


def test_a_second_service_does_not_take_the_socket_of_a_running_one(socketed: tuple[Path, httpx.Client]) -> None:
    from privcfs.cli.serving import listening

    path, client = socketed
    with pytest.raises(SettingsError, match="cannot be made"), listening(path):
        pass
    assert client.get("/health").status_code == 200


def test_without_a_proof_the_service_does_not_start(tmp_path: Path) -> None:
    shell = proxied(tmp_path, secret=False)
    assert "anyone could send the header" in shell.fails(SettingsError, "serve", "--port", "1")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("pia,nobody\n", "line 1: target 'nobody' is not a node"),
        ("pia,\n", "line 1: target '' is not a node"),
        ("pia\n", "line 1: write identity,node or identity,node,role"),
        ("pia,1,owner\n", "line 1: role 'owner' is unknown"),
        ("pia,1\npia,,analyst\n", "line 2: 'pia' is a person and an analyst"),
        (",1\n", "line 1: an identity is printable text"),
        ("\x1bpia,1\n", "line 1: an identity is printable text"),
    ],
)
def test_a_table_with_a_mistake_is_refused(tmp_path: Path, rows: str, words: str) -> None:
    (tmp_path / "people.csv").write_text(rows)
    with pytest.raises(SettingsError, match=words):
        read_people(tmp_path / "people.csv", random_world(0).context)


def test_a_table_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_people(tmp_path / "people.csv", random_world(0).context)
    (tmp_path / "people.csv").write_bytes(b"\xff\xfe1")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_people(tmp_path / "people.csv", random_world(0).context)


def test_a_secret_is_long_and_not_for_everyone(tmp_path: Path) -> None:
    path = tmp_path / "proxy.secret"
    with pytest.raises(SettingsError, match="openssl rand"):
        read_secret(path)
    for text, mode, words in (("short", 0o600, "letters or more"), (SECRET, 0o644, "readable by every user")):
        path.write_text(text)
        path.chmod(mode)
        with pytest.raises(SettingsError, match=words):
            read_secret(path)
    path.write_text(f"{SECRET}\n")
    path.chmod(0o640)
    assert read_secret(path) == SECRET.encode()


@pytest.mark.parametrize("name", ["", "Authorization", "host", SECRET_HEADER, "a b", "X_User", "é"])
def test_a_header_with_another_meaning_names_nobody(name: str) -> None:
    with pytest.raises(SettingsError, match="identity_header"):
        checked_header(name)


def test_no_endpoint_sees_the_headers_of_the_proxy(tmp_path: Path) -> None:
    context = random_world(0).context
    (tmp_path / "people.csv").write_text("pia,1\n")
    identities = Identities(WHO, People(tmp_path / "people.csv", context), SECRET.encode())
    headers = [(b"x-forwarded-user", b"pia"), (b"X-PRIVCFS-Proxy-Secret", SECRET.encode()), (b"accept", b"*/*")]
    assert identities.strip(headers) == [(b"accept", b"*/*")]
    found = identities.find(headers)
    assert found is not None
    assert (found.role, found.targets, len(found.name) <= 16) == ("person", frozenset({"1"}), True)
    with pytest.raises(NotAllowed):
        identities.find([(b"x-forwarded-user", b"eve"), headers[1]])
    os.utime(tmp_path / "people.csv", (1, 1))
    (tmp_path / "people.csv").write_text("pia,99999\n")
    identities.people._looked -= 10
    with pytest.raises(LedgerError, match="cannot be read"):
        identities.find(headers)
