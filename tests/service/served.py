"""A real server on loopback, for tests."""

import socket
import subprocess
import sys
import time
from typing import Any

import httpx

from tests.shell import Shell


def untimed(shell: Shell) -> Shell:
    """Switches the public answering time off, where a test is not about it: it would be the slower by it."""
    path = shell.folder / "vault.toml"
    settings = path.read_text()
    assert "# answer_seconds = 0.5 " in settings
    path.write_text(settings.replace("# answer_seconds = 0.5 ", 'answer_seconds = "off" '))
    return shell


class Served:
    """A running service, and the secrets of its keys."""

    def __init__(self, shell: Shell, *options: str, make_owner: bool = True) -> None:
        self.shell = shell
        if make_owner:
            self.owner = shell.ask("keys", "make", "the owner", "--role", "owner")["secret"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-c", "from privcfs.cli import main; main()", "serve", "--port", str(self.port)]
        self.said = shell.folder / "said.txt"
        with self.said.open("w") as file:
            self.process = subprocess.Popen(
                [*command, *options],
                cwd=shell.folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=shell.environment,
            )
        self.url = f"http://127.0.0.1:{self.port}"
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                httpx.get(f"{self.url}/health", timeout=5)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError(self.stop())

    def key(self, analyst: str, *options: str) -> str:
        return str(self.shell.ask("keys", "make", analyst, *options)["secret"])

    def new_key(self, analyst: str, **terms: Any) -> str:
        """As `key`, over HTTP, which starts no process."""
        made = self.ask("POST", "/v1/keys", self.owner, {"analyst": analyst, **terms})
        assert made.status_code == 201, made.text
        return str(made.json()["secret"])

    def ask(self, method: str, path: str, secret: str | None, body: Any = None) -> httpx.Response:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return httpx.request(method, f"{self.url}{path}", headers=headers, json=body, timeout=30)

    def stop(self) -> str:
        self.process.terminate()
        self.process.wait(timeout=30)
        return self.said.read_text()


def advising(shell: Shell) -> Shell:
    """Lets people be advised: the model is kept, and the owner says that people know their edges."""
    path = shell.folder / "vault.toml"
    settings = path.read_text().replace('model_is = "secret"', 'model_is = "kept"')
    settings = settings.replace('model = "public_model.safetensors"', '# model = "public_model.safetensors"')
    path.write_text(settings.replace("# people_know_their_edges = true", "people_know_their_edges = true"))
    return shell
