"""Ledgers: where spending is written down. One file per database, one line in the table.

Zone: gate
Claim: every ledger in the table satisfies the contract of ledger.py.
Why: the contract suite runs over this table.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

from privcfs.errors import MissingDependency, SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.public.head import Head

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


def open_ledger(
    url: str,
    limit: Limit | None = None,
    *,
    graph_id: str | None = None,
    known: Head | None = None,
    head_file: HeadFile | None = None,
    patience: float = 10,
) -> Ledger:
    """The ledger at a URL such as sqlite:///budget.db (relative), or postgresql://user@host/database.

    With `limit` it is made where there is none. `graph_id` must be the ledger's own. The ledger must hold `known`, a
    head that was kept elsewhere, and whatever `head_file` keeps now and later; that file follows the ledger.
    `patience` is how many seconds to wait for other programs.
    """
    if url.startswith(POSTGRES):
        try:
            from privcfs.gate.ledger.postgres import PostgresLedger
        except ImportError:
            raise MissingDependency(
                "a PostgreSQL ledger needs more packages: pip install 'privcfs[postgres]'."
            ) from None
        return PostgresLedger(url, limit, graph_id=graph_id, known=known, head_file=head_file, patience=patience)
    if not url.startswith(SQLITE) or url == SQLITE:
        raise SettingsError(f"ledger is {url!r}; write sqlite:///budget.db or postgresql://user@host/database.")
    return SqliteLedger(
        url.removeprefix(SQLITE), limit, graph_id=graph_id, known=known, head_file=head_file, patience=patience
    )
