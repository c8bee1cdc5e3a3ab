"""What a charge costs with accounts of nodes, over one without, however many accounts there are."""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from privcfs.embedded import Dataset
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import accounts as node_accounts
from privcfs.gate.ledger import records
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.public.epsilon import NANO
from privcfs_lab.bench.part import Extent, Part, Row
from privcfs_lab.bench.timing import Spent, spent

FEW, MANY = 10, 10**6
CHARGES = 300  # to each of both ledgers, in turns
PAGE = 10_000  # accounts that are opened in one transaction
ANALYST, PRICE = "bench", Fraction(1, 100)
SQL = f"INSERT INTO entries ({records.COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def charges_part(_: Dataset, extent: Extent) -> Part:
    """Durable charges in SQLite, to a ledger with accounts and to one without, which hold equally many rows."""
    return Part([_row(accounts) for accounts in (FEW, MANY) if accounts <= extent.largest])


def _row(accounts: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        plain = filled(Path(folder) / "plain.db", Limit.of("100000000"), accounts)
        kept = filled(Path(folder) / "accounts.db", Limit.of("100000000", per_node="1000"), accounts)
        found: dict[bool, list[Spent]] = {True: [], False: []}
        for number, node in enumerate(np.random.default_rng(0).integers(0, accounts, CHARGES).tolist()):
            for ledger in (plain, kept):
                request = asked(node, f"charge/{number}")
                found[ledger is kept].append(spent(lambda: ledger.charge_all([request])))  # noqa: B023
    (wall, work), (plain_wall, plain_work) = Spent.median(found[True]), Spent.median(found[False])
    value = (
        f"{wall / plain_wall:.2f} ({1e3 * wall:.2f} over {1e3 * plain_wall:.2f} ms), "
        f"processor time {work / plain_work:.2f} ({1e3 * work:.2f} over {1e3 * plain_work:.2f} ms)"
    )
    return f"durable charge to one of {accounts:,} accounts over one without accounts", value, "at most 1.2"


def asked(node: int, name: str) -> Request:
    """A question that reads the own edges of one node."""
    adjacency = "any two private graphs over the same public context"
    return Request(ANALYST, name, node, PRICE, "0" * 64, "bench", adjacency, room=1000, nodes=(node,))


def filled(path: Path, limit: Limit, accounts: int) -> SqliteLedger:
    """A ledger in which each of so many nodes was asked about once: the rows that charges write, in large pages."""
    ledger, cost = SqliteLedger(path, limit), int(PRICE * NANO)
    for start in range(0, accounts, PAGE):
        with ledger._writing() as connection:
            now = records.state_of(connection, ANALYST)
            position, digest, total, sums = now.position, now.digest, now.total, now.accounts
            month, rows = sums.month(), []
            for node in range(start, min(start + PAGE, accounts)):
                position, total = position + 1, total + cost
                request = asked(node, f"first/{node}")
                body = records.held_body(request, limit, month)
                row = (position, records.HELD, ANALYST, request.request_id, cost, total, total, body)
                digest = records.digest_of(digest, row)
                rows.append((*row, digest))
                if limit.per_node is not None:
                    parts = node_accounts.charged(sums, {}, [node], cost, month, in_full=False)
                    records.append_to_accounts(connection, position, parts)
                    sums = parts[-1].accounts
            ledger._connected().executemany(SQL, rows)
    return ledger
