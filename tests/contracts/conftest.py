"""A place for a new ledger in each database, and a maker of ledgers of each kind."""

from collections.abc import Callable
from functools import partial

import pytest

from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """A place for a new ledger in each database."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path') / 'budget.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def make(request: pytest.FixtureRequest) -> Callable[[Limit], Ledger]:
    """Makes a new ledger of each kind; the one in memory follows the same rulebook and ends with the process."""
    if request.param == "memory":
        return MemoryLedger
    place = request.getfixturevalue("postgres_url" if request.param == "postgresql" else "tmp_path")
    return partial(open_ledger, str(place) if request.param == "postgresql" else f"sqlite:///{place / 'budget.db'}")
