"""Keys of the service. A key has a role, an end, and optionally a cap, a list of targets and a rate limit."""

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hmac import compare_digest
from typing import Any, Literal, final

import sqlalchemy as sql

from privcfs.errors import InputError, NotAllowed
from privcfs.public.epsilon import parse_decimal, show
from privcfs.service.database import KEYS, time_to_text

Role = Literal["owner", "analyst"]
PREFIX = "privcfs"
LONGEST_LIFE_DAYS = 3650
SECRET = re.compile(rf"{PREFIX}_[0-9a-f]{{12}}_[A-Za-z0-9_-]{{43}}")


@final
@dataclass(frozen=True, slots=True)
class Key:
    """One key, which says what its bearer may do. An analyst may have several keys.

    `cap` is the most that the analyst may spend; without one, the ledger's own limits hold. `targets` are the public
    names of the nodes that the bearer may ask about; without any, all nodes. `per_minute` is the rate limit.
    """

    name: str
    role: Role
    analyst: str
    made: str
    ends: str | None = None
    revoked: str | None = None
    cap: Fraction | None = None
    targets: frozenset[str] | None = None
    per_minute: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The key as JSON shows it. The secret is not part of it, because nothing stores the secret."""
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
        """Whether the key is neither revoked nor past its end."""
        return self.revoked is None and (self.ends is None or self.ends > time_to_text(datetime.now(UTC)))

    def may_ask_about(self, target: str) -> None:
        """Refuses a target that the owner has not allowed."""
        if self.targets is not None and target not in self.targets:
            raise NotAllowed("this key may not ask about that target; the owner says which ones.")


@final
class Keys:
    """The keys in the service's database, which holds digests of their secrets and never the secrets themselves."""

    def __init__(self, database: sql.Engine) -> None:
        self._engine = database

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
        """Makes a key. Returns it with its secret, which cannot be read again because only its digest is stored."""
        if not 0 < len(analyst) <= 200 or not analyst.isprintable():
            raise InputError("analyst must be printable text of 1 to 200 characters.")
        if not 0 < days <= LONGEST_LIFE_DAYS:
            raise InputError(f"days must lie from 1 to {LONGEST_LIFE_DAYS}.")
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
            made=time_to_text(now),
            ends=time_to_text(now + timedelta(days=days)),
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
        """The key that a secret belongs to, or None if the secret is unknown or the key is revoked or past its end."""
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
        """Makes a key invalid from now on."""
        change = KEYS.update().where(KEYS.c.name == name, KEYS.c.revoked.is_(None))
        with self._engine.begin() as connection:
            found = connection.execute(change.values(revoked=time_to_text(datetime.now(UTC)))).rowcount
        if not found:
            raise InputError("no such key, or it is revoked already; list the keys.")

    def all(self) -> list[Key]:
        """Every key that was ever made, revoked and expired ones included, oldest first."""
        with self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(KEYS.select().order_by(KEYS.c.made)).mappings()]


def caps_of_analysts(keys: Iterable[Key]) -> dict[str, Fraction | None]:
    """The most that each analyst may spend with their valid keys: the largest cap, or None if one key has no cap."""
    caps: dict[str, list[Fraction | None]] = {}
    for key in keys:
        caps.setdefault(key.analyst, []).extend([key.cap] if key.valid else [])
    known = {analyst: [cap for cap in some if cap is not None] for analyst, some in sorted(caps.items())}
    return {analyst: max(some) if some and len(some) == len(caps[analyst]) else None for analyst, some in known.items()}


def is_well_formed(secret: str) -> bool:
    """Whether a text has the form of a secret. A text that does not is refused without a query to the database."""
    return SECRET.fullmatch(secret) is not None


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


def _digest(secret: str) -> str:
    """One round of SHA-256 suffices, because a secret is 256 random bits and cannot be guessed as a password can."""
    return hashlib.sha256(secret.encode()).hexdigest()
