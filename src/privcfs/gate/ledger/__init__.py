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
    """Opens a ledger, and replays it to check that its chain of rows is unbroken.

    Args:
        url: Where it is, such as sqlite:///budget.db (a path relative to the working directory) or
            postgresql://user@host/database.
        limit: The limits of a new ledger, which is made if there is none. By default None: a missing one is an error.
        graph_id: The id that the ledger must have. By default None: any, and a random one for a new ledger.
        known: A head that was kept elsewhere and must be part of the chain. By default None.
        head_file: A file whose head must be part of the chain now and later, and which follows the ledger. By default
            None.
        patience: How many seconds to wait for other programs; by default 10.

    Returns:
        The open ledger.

    Raises:
        MissingDependency: The packages for PostgreSQL are not installed.
        SettingsError: The URL is of neither kind.
        LedgerError: The ledger is missing, altered, rolled back, too new, locked, or belongs to another graph.
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
