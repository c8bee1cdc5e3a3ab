"""Authentication: finds the key of a request from its headers, before anything else of the request is read.

Where the owner has said so, a reverse proxy may name who asks (`identity.py`). A key that is sent counts before that.
"""

from typing import final

from anyio import CapacityLimiter, to_thread

from privcfs.errors import NoKey
from privcfs.service.identity import Headers, Identities
from privcfs.service.keys import Key, Keys, is_well_formed
from privcfs.service.pace import Pace

# Keys are looked up in threads of their own, so that no look-up, which takes about 1 ms, waits behind a release.
THREADS = 4


@final
class Doorkeeper:
    """Finds the key of a request and applies the key's rate limit."""

    def __init__(self, keys: Keys, pace: Pace, identities: Identities | None = None) -> None:
        self._keys, self._pace, self._identities = keys, pace, identities
        self._threads = CapacityLimiter(THREADS)

    async def find(self, headers: Headers) -> Key:
        """The valid key that the headers name; raises NoKey if they name none."""
        secret, identities = secret_in(headers), self._identities
        key: Key | None = None
        if identities is not None and identities.is_forged(headers):
            raise no_key()
        if is_well_formed(secret):
            key = await to_thread.run_sync(self._keys.check, secret, limiter=self._threads)
        elif identities is not None:
            key = await to_thread.run_sync(identities.find, headers, limiter=self._threads)
        if key is None:
            raise no_key()
        return key

    def strip(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """The headers without those that only a proxy may send: no endpoint sees them."""
        return headers if self._identities is None else self._identities.strip(headers)

    def hold_to_pace(self, key: Key) -> None:
        """Counts one request of a key, or raises TooFast if it exceeds the key's rate limit."""
        self._pace.check(key)


def secret_in(headers: Headers) -> str:
    """The secret in the header `Authorization: Bearer <secret>`; empty if there is no such header."""
    sent = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    scheme, _, secret = sent.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def no_key() -> NoKey:
    """The error for every request without a valid key. Its text is always the same, so it does not say why."""
    return NoKey("a valid key is needed: send the header Authorization: Bearer <key>.")
