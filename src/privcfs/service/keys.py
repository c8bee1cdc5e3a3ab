"""Who may do what: keys with a role, an end, a cap, targets and a pace; and what was done with them."""

import hashlib
import json
import os
import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from typing import Any, Literal, final

import sqlalchemy as sql

from privcfs.errors import InputError, LedgerError, NotAllowed, SettingsError
from privcfs.public.epsilon import parse_decimal, show

Role = Literal["owner", "analyst"]
PREFIX = "privcfs"
LONGEST_LIFE = 3650  # days
SECRET = re.compile(rf"{PREFIX}_[0-9a-f]{{12}}_[A-Za-z0-9_-]{{43}}")
MOST_UNWRITTEN = 10_000  # lines of the log, where its database does not answer
LOG_DAYS = 90  # for how long the log is kept
MOST_LINES = 1_000_000  # of the log, some 150 MB
PRUNED_AT_ONCE = 1000  # lines, so that nobody waits long for the database; at two looks a second 2,000 a second
OWN = 0o600  # nobody else on the machine reads who asked what
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


@final
@dataclass(frozen=True, slots=True)
class Key:
    """What its bearer may do."""

    name: str
    role: Role
    analyst: str
    made: str
    ends: str | None = None
    revoked: str | None = None
    cap: Fraction | None = None  # the most that the analyst may spend; the ledger's own limit where there is none
    targets: frozenset[str] | None = None  # whom they may ask about; anyone, where there is none
    per_minute: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the owner sees it; the secret itself is nowhere."""
        return {
            "name": self.name,
            "role": self.role,
            "analyst": self.analyst,
            "made": self.made,
            "ends": self.ends,
            "revoked": self.revoked,
            "cap": None if self.cap is None else show(self.cap),
            "targets": None if self.targets is None else sorted(self.targets),
            "per_minute": self.per_minute,
        }

    @property
    def valid(self) -> bool:
        """Whether it is neither revoked nor past its end."""
        return self.revoked is None and (self.ends is None or self.ends > _text(datetime.now(UTC)))

    def may_ask_about(self, target: str) -> None:
        """Refuses a target that the owner has not allowed."""
        if self.targets is not None and target not in self.targets:
            raise NotAllowed("this key may not ask about that target; the owner says which ones.")


@final
class Keys:
    """Keys at rest as digests of long random secrets, and a log of what was asked, by whom, for `log_days`."""

    def __init__(self, url: str, log_days: int = LOG_DAYS) -> None:
        self._log_days = log_days
        try:
            address = sql.make_url(url)
            if address.drivername in ("postgresql", "postgres"):
                address = address.set(drivername="postgresql+psycopg")
            self._engine = sql.create_engine(address, pool_pre_ping=True)
            self._unwritten: deque[dict[str, Any]] = deque()
            self._writing = Lock()
            if address.drivername == "sqlite":
                _keep_to_oneself(address.database)
                sql.event.listen(self._engine, "connect", _write_ahead)
            TABLES.create_all(self._engine)
        except (sql.exc.SQLAlchemyError, ImportError, OSError):
            raise SettingsError("service database cannot be opened; write sqlite:///service.db.") from None

    def make(
        self,
        role: Role,
        analyst: str,
        *,
        days: int = 90,
        cap: str | None = None,
        targets: Sequence[str] | None = None,
        per_minute: int | None = None,
    ) -> tuple[Key, str]:
        """A new key and its secret, which is shown once and kept nowhere."""
        if not 0 < len(analyst) <= 200 or not analyst.isprintable():
            raise InputError("analyst must be printable text of 1 to 200 characters.")
        if not 0 < days <= LONGEST_LIFE:
            raise InputError(f"days must lie from 1 to {LONGEST_LIFE}.")
        if per_minute is not None and per_minute < 1:
            raise InputError("per_minute must be 1 or more.")
        most = None if cap is None else parse_decimal(cap, "cap")
        if most is not None and most <= 0:
            raise InputError("cap must be more than 0.")
        now, name = datetime.now(UTC), secrets.token_hex(6)
        key = Key(
            name=name,
            role=role,
            analyst=analyst,
            made=_text(now),
            ends=_text(now + timedelta(days=days)),
            cap=most,
            targets=None if targets is None else frozenset(targets),
            per_minute=per_minute,
        )
        secret = f"{PREFIX}_{name}_{secrets.token_urlsafe(32)}"
        terms = {field: key.to_dict()[field] for field in ("cap", "targets", "per_minute")}
        row = {"name": name, "role": role, "analyst": analyst, "digest": _digest(secret)}
        with self._engine.begin() as connection:
            connection.execute(KEYS.insert().values(**row, made=key.made, ends=key.ends, terms=json.dumps(terms)))
        return key, secret

    def check(self, secret: str) -> Key | None:
        """The key of a secret; none where it is unknown, revoked or past its end."""
        if not is_well_formed(secret):
            return None
        name = secret.split("_", 2)[1]
        with self._engine.connect() as connection:
            row = connection.execute(KEYS.select().where(KEYS.c.name == name)).mappings().first()
        expected = row["digest"] if row else "0" * 64
        if not compare_digest(expected, _digest(secret)) or row is None:
            return None
        key = _key(row)
        return key if key.valid else None

    def revoke(self, name: str) -> None:
        """Ends a key now."""
        change = KEYS.update().where(KEYS.c.name == name, KEYS.c.revoked.is_(None))
        with self._engine.begin() as connection:
            found = connection.execute(change.values(revoked=_text(datetime.now(UTC)))).rowcount
        if not found:
            raise InputError("no such key, or it is revoked already; list the keys.")

    def all(self) -> list[Key]:
        """Every key there ever was, oldest first."""
        with self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(KEYS.select().order_by(KEYS.c.made)).mappings()]

    def log(self, key: Key, action: str, status: int) -> None:
        """Notes who did what, public facts alone; `flush` writes it down."""
        said = "".join(letter if letter.isprintable() else "?" for letter in action[:200])
        if len(self._unwritten) >= MOST_UNWRITTEN:
            with suppress(IndexError):  # written down meanwhile
                self._unwritten.popleft()
        row = {"time": _text(datetime.now(UTC)), "key": key.name, "analyst": key.analyst}
        self._unwritten.append({**row, "action": said, "status": status})

    def flush(self) -> None:
        """Writes down what was noted."""
        with self._writing:
            rows = [self._unwritten.popleft() for _ in range(len(self._unwritten))]
            if not rows:
                return
            try:
                with self._engine.begin() as connection:
                    connection.execute(LOG.insert(), rows)
            except sql.exc.SQLAlchemyError:
                self._unwritten.extendleft(reversed(rows[-MOST_UNWRITTEN:]))
                raise LedgerError("the log of requests cannot be written; check the service's database.") from None

    def prune(self) -> int:
        """Deletes the oldest lines that are older than `log_days` or beyond MOST_LINES, a bounded number at once."""
        before = _text(datetime.now(UTC) - timedelta(days=self._log_days))
        oldest = sql.select(LOG.c.position, LOG.c.time).order_by(LOG.c.position).limit(PRUNED_AT_ONCE).subquery()
        beyond = sql.select(sql.func.max(LOG.c.position) - MOST_LINES).scalar_subquery()
        over = sql.or_(oldest.c.time < before, oldest.c.position <= beyond)
        try:
            with self._engine.connect() as connection:
                last = connection.execute(sql.select(sql.func.max(oldest.c.position)).where(over)).scalar()
            if last is None:
                return 0
            with self._engine.begin() as connection:
                return connection.execute(LOG.delete().where(LOG.c.position <= last)).rowcount
        except sql.exc.SQLAlchemyError:
            raise LedgerError("the log of requests cannot be shortened; check the service's database.") from None

    def history(self, most: int = 1000) -> Iterator[dict[str, Any]]:
        """The newest entries of the log first."""
        self.flush()
        with self._engine.connect() as connection:
            for row in connection.execute(LOG.select().order_by(LOG.c.position.desc()).limit(most)).mappings():
                yield dict(row)


def caps_of_analysts(keys: Iterable[Key]) -> dict[str, Fraction | None]:
    """The most that each analyst may spend by their valid keys: the largest cap, or none where one key has none."""
    caps: dict[str, list[Fraction | None]] = {}
    for key in keys:
        caps.setdefault(key.analyst, []).extend([key.cap] if key.valid else [])
    known = {analyst: [cap for cap in some if cap is not None] for analyst, some in sorted(caps.items())}
    return {analyst: max(some) if some and len(some) == len(caps[analyst]) else None for analyst, some in known.items()}


def is_well_formed(secret: str) -> bool:
    """Whether a text could be a key at all: what could not needs no look into the database."""
    return SECRET.fullmatch(secret) is not None


def _keep_to_oneself(database: str | None) -> None:
    """Makes the file readable by its owner alone. SQLite gives -wal and -shm the mode of the database.

    A file that exists is never opened here: closing it would end the locks of every connection of this process.
    """
    if not database or database == ":memory:" or os.name != "posix":
        return
    with suppress(FileExistsError):
        os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWN))
    for path in (Path(database + ending) for ending in ("", "-wal", "-shm", "-journal")):
        with suppress(FileNotFoundError):
            found = path.stat()
            if found.st_uid == os.geteuid() and found.st_mode & 0o077:
                path.chmod(OWN)


def _key(row: Any) -> Key:
    terms = json.loads(row["terms"])
    return Key(
        name=row["name"],
        role=row["role"],
        analyst=row["analyst"],
        made=row["made"],
        ends=row["ends"],
        revoked=row["revoked"],
        cap=None if terms["cap"] is None else Fraction(terms["cap"]),
        targets=None if terms["targets"] is None else frozenset(terms["targets"]),
        per_minute=terms["per_minute"],
    )


def _write_ahead(connection: Any, _: Any) -> None:
    """Many readers beside one writer; a log entry lost in a power cut costs nothing."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _digest(secret: str) -> str:
    """Secrets are 256 random bits: nothing to guess, so one round suffices."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _text(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
