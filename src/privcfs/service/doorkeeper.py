"""Who is asking: the key is checked before anything else of a request is read."""

from collections.abc import Iterable
from threading import Lock
from time import monotonic
from typing import final

from anyio import CapacityLimiter, to_thread

from privcfs.errors import NoKey, TooFast
from privcfs.service.keys import Key, Keys, is_well_formed

THREADS = 4  # for looking keys up: their own, so that no key waits behind a release; a look-up takes about 1 ms
Headers = Iterable[tuple[bytes, bytes]]


@final
class Pace:
    """So many requests a minute for each key, in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, key: Key, number: int = 1) -> None:
        """Takes one, or as many as a batch asks for, or refuses."""
        if key.per_minute is None:
            return
        with self._lock:
            now = monotonic()
            left, since = self._left.get(key.name, (float(key.per_minute), now))
            left = min(key.per_minute, left + (now - since) * key.per_minute / 60)
            if left < number:
                raise TooFast(f"this key may ask {key.per_minute} times a minute; wait a little.")
            self._left[key.name] = (left - number, now)


@final
class Doorkeeper:
    """Finds the key of a request and holds it to its pace."""

    def __init__(self, keys: Keys, pace: Pace) -> None:
        self._keys, self._pace = keys, pace
        self._threads = CapacityLimiter(THREADS)

    async def find(self, headers: Headers) -> Key:
        """The valid key that the headers name; refuses where there is none. What no key can look like costs no look."""
        secret = secret_in(headers)
        if not is_well_formed(secret):
            raise refused()
        key = await to_thread.run_sync(self._keys.check, secret, limiter=self._threads)
        if key is None:
            raise refused()
        return key

    def hold_to_pace(self, key: Key) -> None:
        """Counts one request of a key, or refuses it."""
        self._pace.check(key)


def secret_in(headers: Headers) -> str:
    """What stands behind `Authorization: Bearer`; empty where nothing does."""
    sent = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    scheme, _, secret = sent.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def refused() -> NoKey:
    """The same words for every request without a valid key."""
    return NoKey("a valid key is needed: send the header Authorization: Bearer <key>.")
