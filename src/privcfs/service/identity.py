"""Identity from a reverse proxy, in the place of a key: off unless the vault file names a header.

A proxy that signs people in (by OpenID Connect, for example) says in a header who asks, and a table says which nodes
that person stands for. Anybody can send a header, so it counts only with a proof that the proxy sent it: a secret in a
second header or, where there is no secret, that the request came over the service's Unix socket, whose file permissions
say who may connect. Without the proof the header counts as if it were not there.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import NamedTuple, final

from privcfs.errors import LedgerError, NotAllowed, SettingsError, UnknownNode
from privcfs.public.context import PublicContext
from privcfs.service.keys import LONGEST_NAME, PERSON, Key, Role
from privcfs.service.people import read_rows

SECRET_HEADER = "X-Privcfs-Proxy-Secret"
HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
RESERVED = {"authorization", "host", "content-length", "content-type", "connection", SECRET_HEADER.lower()}
SHORTEST_SECRET = 32  # characters
PER_MINUTE = 30  # requests of a person; analysts have no pace of their own, as with keys
LOOK_SECONDS = 1.0  # between two looks at whether the table has changed
COLUMNS = ("identity", "node", "role")
Headers = Iterable[tuple[bytes, bytes]]


@final
class Standing(NamedTuple):
    """What the table says of one identity; `targets` is None for an analyst who may ask about any node."""

    role: Role
    targets: frozenset[str] | None


@final
class People:
    """The table of identities. It is read again when the file changes, so that taking a row away takes effect."""

    def __init__(self, path: Path, context: PublicContext) -> None:
        """Reads the table; raises SettingsError if it has a mistake."""
        self._path, self._context, self._lock = path, context, Lock()
        self._seen, self._looked = self._stamp(), monotonic()
        self._table: Mapping[str, Standing] | None = read_people(path, context)

    def get(self, identity: str) -> Standing | None:
        """What an identity stands for. While the file has a mistake, nobody is let in."""
        with self._lock:
            if monotonic() - self._looked > LOOK_SECONDS:
                self._look()
            if self._table is None:
                raise LedgerError("the table of people cannot be read; tell the owner.")
            return self._table.get(identity)

    def _look(self) -> None:
        self._looked, stamp = monotonic(), self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._table = read_people(self._path, self._context)
        except SettingsError:
            self._table = None

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size


@final
@dataclass(frozen=True, slots=True)
class Identities:
    """Finds out who asks from what a proxy says.

    Attributes:
        header: The header that names who asks.
        people: The table.
        secret: What the proxy sends in SECRET_HEADER; None, the default, where the Unix socket is the proof.
    """

    header: str
    people: People
    secret: bytes | None = None

    def find(self, headers: Headers) -> Key | None:
        """The rights of whoever the proxy names, or None if it is not proven that the proxy named anybody.

        Raises:
            NotAllowed: The table does not have this identity.
        """
        named = self._values(headers, self.header)
        if not self._is_proven(headers) or len(named) != 1:  # A second one may be a client's copy.
            return None
        try:
            identity = named[0].decode("utf-8").strip()
        except UnicodeDecodeError:
            return None
        if not identity:
            return None
        found = self.people.get(identity)
        if found is None:
            raise NotAllowed("you are signed in, but no node is known to be yours; ask whoever runs this service.")
        return _key(identity, found)

    def is_forged(self, headers: Headers) -> bool:
        """Whether somebody sent a secret that is not the proxy's."""
        return bool(self._values(headers, SECRET_HEADER)) and not self._is_proven(headers)

    def strip(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """The headers without those that only the proxy may send."""
        ours = {self.header.lower().encode(), SECRET_HEADER.lower().encode()}
        return [(name, value) for name, value in headers if name.lower() not in ours]

    def _is_proven(self, headers: Headers) -> bool:
        sent = self._values(headers, SECRET_HEADER)
        if self.secret is None:
            return not sent
        return len(sent) == 1 and compare_digest(sent[0], self.secret)

    @staticmethod
    def _values(headers: Headers, name: str) -> list[bytes]:
        return [value for one, value in headers if one.lower() == name.lower().encode()]


def read_people(path: Path, context: PublicContext) -> dict[str, Standing]:
    """A table with rows `identity,node` or `identity,node,role`; an identity with several nodes has several rows.

    Args:
        path: The file.
        context: The public context, which has the nodes.

    Returns:
        What each identity stands for. The role is person unless the row says analyst; an analyst's node may be empty.

    Raises:
        SettingsError: The file cannot be read, or a row has a mistake.
    """
    roles: dict[str, Role] = {}
    nodes: dict[str, set[str]] = {}
    for line, cells in read_rows(path, COLUMNS, 2):
        where, identity = f"{path}, line {line}", cells[0]
        if not identity.isprintable() or not 0 < len(identity) <= LONGEST_NAME - len(PERSON):
            raise SettingsError(f"{where}: an identity is printable text of 1 to {LONGEST_NAME - len(PERSON)} letters.")
        role = _role(cells[2] if len(cells) > 2 else "", where)
        if roles.setdefault(identity, role) != role:
            raise SettingsError(f"{where}: {identity!r} is a person and an analyst; one identity has one role.")
        if cells[1] or role == "person":
            nodes.setdefault(identity, set()).add(_name(cells[1], context, where))
    return {
        identity: Standing(role, frozenset(nodes[identity]) if identity in nodes else None)
        for identity, role in roles.items()
    }


def read_secret(path: Path) -> bytes:
    """What the proxy proves itself with.

    Args:
        path: A file with the secret and nothing else, which others than its owner and group may not read.

    Returns:
        The secret.

    Raises:
        SettingsError: The file cannot be read, is readable by everyone, or its secret is short.
    """
    try:
        secret, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"secret file {path} cannot be read; write one: openssl rand -hex 32 > {path}.") from None
    if mode & 0o007:
        raise SettingsError(f"secret file {path} is readable by every user of this machine: chmod 640 {path}.")
    if len(secret) < SHORTEST_SECRET or not secret.isprintable() or " " in secret:
        raise SettingsError(f"secret file {path} needs {SHORTEST_SECRET} letters or more, without spaces.")
    return secret.encode()


def checked_header(name: str) -> str:
    """The name of a header that a proxy may set; raises SettingsError for one that has another meaning."""
    if not HEADER_NAME.fullmatch(name) or name.lower() in RESERVED:
        raise SettingsError(f"vault file: service.identity_header is {name!r}; write one such as X-Forwarded-User.")
    return name


def _role(text: str, where: str) -> Role:
    if text not in ("", "person", "analyst"):
        raise SettingsError(f"{where}: role {text!r} is unknown; choose person or analyst.")
    return "analyst" if text == "analyst" else "person"


def _name(node: str, context: PublicContext, where: str) -> str:
    try:
        return context.label(context.node(node))
    except UnknownNode as error:
        raise SettingsError(f"{where}: {error}") from None


def _key(identity: str, standing: Standing) -> Key:
    """What an identity may do, as a key that no database has. Its name is short, public and always the same."""
    is_person = standing.role == "person"
    return Key(
        name="~" + hashlib.sha256(identity.encode()).hexdigest()[:12],
        role=standing.role,
        analyst=PERSON + identity if is_person else identity,
        made="",
        targets=standing.targets,
        per_minute=PER_MINUTE if is_person else None,
    )
