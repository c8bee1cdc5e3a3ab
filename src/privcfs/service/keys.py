"""Keys of the service. A key has a role, an end, and optionally a cap, a list of targets and a rate limit.

An owner's key does everything but ask for advice. An analyst's pays for answers that anyone may read. A person's is
bound to her own nodes: it asks for advice about them, which is for her alone, and does nothing else.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hmac import compare_digest
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol, final

import sqlalchemy as sql

from privcfs.errors import InputError, NotAllowed
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import parse_decimal, show
from privcfs.service.database import KEYS, time_to_text

Role = Literal["owner", "analyst", "person"]
ROLES: tuple[Role, ...] = ("owner", "analyst", "person")
PREFIX = "privcfs"
# Before the name of a person who pays for advice, so that no analyst of the same name shares an account with her.
PERSON = "person: "
# Keys that are written, or read, at once.
PAGE = 1000
LONGEST_LIFE_DAYS = 3650
LONGEST_NAME = 200  # of an analyst, as the database holds it
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
    def holder(self) -> str:
        """Who holds the key, in the owner's words."""
        return self.analyst.removeprefix(PERSON) if self.role == "person" else self.analyst

    @property
    def valid(self) -> bool:
        """Whether the key is neither revoked nor past its end."""
        return self.revoked is None and (self.ends is None or self.ends > time_to_text(datetime.now(UTC)))

    def may_ask_about(self, target: str) -> None:
        """Refuses a target that the owner has not allowed. A person's key is bound to targets in any case."""
        if target in (self.targets or ()) or (self.targets is None and self.role != "person"):
            return
        if self.role == "person":
            raise NotAllowed("this key is bound to its own nodes, and this is not one of them.")
        raise NotAllowed("this key may not ask about that target; the owner says which ones.")


@final
class Wish(NamedTuple):
    """One of many keys to be made: who will hold it, and the public names of the nodes that it is bound to."""

    holder: str
    targets: tuple[str, ...]


class Receiver(Protocol):
    """Where new keys go."""

    def add(self, key: Key, secret: str) -> None:
        """Takes one key and its secret."""

    def sync(self) -> None:
        """Called after the last key: all of them must be on disk when this returns."""


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What a new key may do, checked.

    Raises:
        InputError: A value is out of range.
    """

    days: int = 90
    cap: str | None = None
    per_minute: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.days <= LONGEST_LIFE_DAYS:
            raise InputError(f"days must lie from 1 to {LONGEST_LIFE_DAYS}.")
        if self.per_minute is not None and self.per_minute < 1:
            raise InputError("per_minute must be 1 or more.")
        if self.most is not None and self.most <= 0:
            raise InputError("cap must be more than 0.")

    @property
    def most(self) -> Fraction | None:
        """The cap as an exact number."""
        return None if self.cap is None else parse_decimal(self.cap, "cap")

    def key(self, role: Role, holder: str, targets: Iterable[str] | None) -> tuple[Key, str]:
        """A key with a secret, which no database holds yet."""
        analyst = PERSON + holder if role == "person" else holder
        if not holder or len(analyst) > LONGEST_NAME or not holder.isprintable():
            raise InputError(f"analyst must be printable text of 1 to {LONGEST_NAME} characters.")
        bound = None if targets is None else frozenset(targets)
        if bound is not None and not bound:
            raise InputError("a key that is bound to no node could ask nothing; name at least one node.")
        if role == "person" and bound is None:
            raise InputError("a person's key is bound to her own nodes; name at least one node.")
        now, name = datetime.now(UTC), secrets.token_hex(6)
        key = Key(
            name=name,
            role=role,
            analyst=analyst,
            made=time_to_text(now),
            ends=time_to_text(now + timedelta(days=self.days)),
            cap=self.most,
            targets=bound,
            per_minute=self.per_minute,
        )
        return key, f"{PREFIX}_{name}_{secrets.token_urlsafe(32)}"


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
        key, secret = Terms(days, cap, per_minute).key(role, analyst, targets)
        with self._engine.begin() as connection:
            connection.execute(KEYS.insert().values(**_row(key, secret)))
        return key, secret

    def make_many(self, role: Role, wishes: Iterable[Wish], terms: Terms, secrets_go_to: Receiver) -> int:
        """Makes a key for each wish, all or none.

        Args:
            role: The role of all of them.
            wishes: Who holds them, and what they are bound to. An error that is raised while they are read undoes all.
            terms: What all of them may do.
            secrets_go_to: Gets each key and its secret, and is told to sync, before anything is committed; an error
                that it raises undoes all. Whoever calls throws the secrets away if this function raises an error.

        Returns:
            How many keys were made.

        Raises:
            InputError: A wish names no node, or a holder whose name cannot be written.
        """
        count = 0
        with self._engine.begin() as connection:
            remaining = iter(wishes)
            while page := list(islice(remaining, PAGE)):
                made = [terms.key(role, wish.holder, wish.targets) for wish in page]
                connection.execute(KEYS.insert(), [_row(key, secret) for key, secret in made])
                for key, secret in made:
                    secrets_go_to.add(key, secret)
                count += len(made)
            secrets_go_to.sync()
        return count

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

    def all(self) -> Iterator[Key]:
        """Every key that was ever made, revoked and expired ones included, oldest first, read a page at a time."""
        after = ""
        while page := self.page(PAGE, after):
            yield from page
            after = page[-1].name

    def page(self, most: int, after: str = "", role: Role | None = None, analyst: str | None = None) -> list[Key]:
        """Some keys, oldest first.

        Args:
            most: How many at most.
            after: The name of a key; the page begins behind it. By default at the oldest.
            role: Keys of this role alone; by default of all.
            analyst: Keys of this analyst alone; by default of all.

        Returns:
            The keys; fewer than `most` at the end.

        Raises:
            InputError: There is no key of that name.
        """
        query = KEYS.select().order_by(KEYS.c.made, KEYS.c.name).limit(most)
        query = query if role is None else query.where(KEYS.c.role == role)
        query = query if analyst is None else query.where(KEYS.c.analyst == analyst)
        with self._engine.connect() as connection:
            if after:
                made = connection.execute(sql.select(KEYS.c.made).where(KEYS.c.name == after)).scalar()
                if made is None:
                    raise InputError("no such key; give the name of the last key of a page.")
                query = query.where(sql.tuple_(KEYS.c.made, KEYS.c.name) > sql.tuple_(made, after))
            return [_key(row) for row in connection.execute(query).mappings()]

    def counts(self) -> dict[str, int]:
        """How many keys of each role are valid."""
        valid = sql.and_(KEYS.c.revoked.is_(None), KEYS.c.ends > time_to_text(datetime.now(UTC)))
        query = sql.select(KEYS.c.role, sql.func.count()).where(valid).group_by(KEYS.c.role)
        with self._engine.connect() as connection:
            found = {str(role): int(count) for role, count in connection.execute(query)}
        return {role: found.get(role, 0) for role in ROLES}

    def ending(self, days: int, most: int) -> list[Key]:
        """Valid keys of analysts and owners that end within so many days, the first to end first."""
        now = datetime.now(UTC)
        soon = KEYS.c.ends.between(time_to_text(now), time_to_text(now + timedelta(days=days)))
        query = KEYS.select().where(KEYS.c.revoked.is_(None), soon, KEYS.c.role.in_(("owner", "analyst")))
        with self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(query.order_by(KEYS.c.ends).limit(most)).mappings()]

    def caps(self, most: int) -> dict[str, Fraction | None]:
        """The most that each of the first so many analysts may spend; persons, who may be a whole population, aside."""
        query = KEYS.select().where(KEYS.c.role.in_(("owner", "analyst")))
        with self._engine.connect() as connection:
            found = caps_of_analysts(_key(row) for row in connection.execute(query).mappings())
        return dict(islice(found.items(), most))


def names_of(context: PublicContext, nodes: Iterable[int | str]) -> list[str]:
    """The public names of nodes, which keys are bound by.

    Args:
        context: The public context.
        nodes: Nodes as people write them, by number or name.

    Returns:
        Their names, or their numbers as text.

    Raises:
        UnknownNode: One of them is not a node.
    """
    return [context.label(context.node(node)) for node in nodes]


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


def _row(key: Key, secret: str) -> dict[str, Any]:
    """A key as the database holds it."""
    fields = key.to_dict()
    terms = {field: fields[field] for field in ("cap", "targets", "per_minute")}
    kept = {field: fields[field] for field in ("name", "role", "analyst", "made", "ends")}
    return {**kept, "digest": _digest(secret), "terms": json.dumps(terms)}


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
