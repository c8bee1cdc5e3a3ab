"""Authentication: finds the key of a request from its headers, before anything else of the request is read."""

from collections.abc import Iterable
from typing import final

from anyio import CapacityLimiter, to_thread

from privcfs.errors import NoKey
from privcfs.service.keys import Key, Keys, is_well_formed
from privcfs.service.pace import Pace

# Keys are looked up in threads of their own, so that no look-up, which takes about 1 ms, waits behind a release.
THREADS = 4
Headers = Iterable[tuple[bytes, bytes]]


@final
class Doorkeeper:
    """Finds the key of a request and applies the key's rate limit."""

    def __init__(self, keys: Keys, pace: Pace) -> None:
        self._keys, self._pace = keys, pace
        self._threads = CapacityLimiter(THREADS)

    async def find(self, headers: Headers) -> Key:
        """The valid key that the headers name; raises NoKey if they name none."""
        secret = secret_in(headers)
        if not is_well_formed(secret):
            raise no_key()
        key = await to_thread.run_sync(self._keys.check, secret, limiter=self._threads)
        if key is None:
            raise no_key()
        return key

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
