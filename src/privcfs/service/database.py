"""The service's database: its tables, how it is opened, and who may read its files. Keys and log share one engine."""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from privcfs.errors import SettingsError

OWNER_ONLY = 0o600  # The log says who asked what, which is no business of other users of the machine.
TABLES = sql.MetaData()
KEYS = sql.Table(
    "service_keys",
    TABLES,
    sql.Column("name", sql.String(16), primary_key=True),
    sql.Column("role", sql.String(16), nullable=False),
    sql.Column("analyst", sql.String(200), nullable=False),
    sql.Column("digest", sql.String(64), nullable=False),
    sql.Column("made", sql.String(32), nullable=False),
    sql.Column("ends", sql.String(32)),
    sql.Column("revoked", sql.String(32)),
    sql.Column("terms", sql.Text, nullable=False),
)
# Pages of keys are read in this order, and keys of whole populations are counted by role.
INDEXES = (
    sql.Index("service_keys_by_age", KEYS.c.made, KEYS.c.name),
    sql.Index("service_keys_by_role", KEYS.c.role, KEYS.c.made, KEYS.c.name),
    sql.Index("service_keys_by_analyst", KEYS.c.analyst),
    sql.Index("service_keys_by_end", KEYS.c.role, KEYS.c.revoked, KEYS.c.ends),
)
LOG = sql.Table(
    "service_log",
    TABLES,
    sql.Column("position", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("time", sql.String(32), nullable=False),
    sql.Column("key", sql.String(16), nullable=False),
    sql.Column("analyst", sql.String(200), nullable=False),
    sql.Column("action", sql.String(200), nullable=False),
    sql.Column("status", sql.Integer, nullable=False),
)


def open_database(url: str) -> sql.Engine:
    """Opens the database at a URL such as sqlite:///service.db, and creates the tables that it does not have yet."""
    try:
        address = sql.make_url(url)
        if address.drivername in ("postgresql", "postgres"):
            address = address.set(drivername="postgresql+psycopg")
        engine = sql.create_engine(address, pool_pre_ping=True)
        if address.drivername == "sqlite":
            _restrict_to_owner(address.database)
            sql.event.listen(engine, "connect", _use_write_ahead_log)
        TABLES.create_all(engine)
        for index in INDEXES:  # A database of an earlier version has the tables without them.
            index.create(engine, checkfirst=True)
    except (sql.exc.SQLAlchemyError, ImportError, OSError):
        raise SettingsError("service database cannot be opened; write sqlite:///service.db.") from None
    return engine


def time_to_text(time: datetime) -> str:
    """A time as both tables store it. Texts of times in UTC sort as the times do, so they can be compared as text."""
    return time.isoformat(timespec="seconds")


def _restrict_to_owner(database: str | None) -> None:
    """Makes the file readable by its owner alone. SQLite gives -wal and -shm the mode of the database.

    A file that exists is never opened here, because closing it would end the locks that every other connection of this
    process holds on it.
    """
    if not database or database == ":memory:" or os.name != "posix":
        return
    with suppress(FileExistsError):
        os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
    for path in (Path(database + ending) for ending in ("", "-wal", "-shm", "-journal")):
        with suppress(FileNotFoundError):
            found = path.stat()
            if found.st_uid == os.geteuid() and found.st_mode & 0o077:
                path.chmod(OWNER_ONLY)


def _use_write_ahead_log(connection: Any, _: Any) -> None:
    """Lets readers work beside one writer. Losing the last log entries in a power cut is acceptable."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
