"""Who is asking: the key is checked before anything else of a request is read."""

from asyncio import sleep
from collections.abc import Iterable
from threading import Lock
from time import monotonic
from typing import final

from anyio import CapacityLimiter, to_thread

from privcfs.errors import NoKey, TooFast
from privcfs.service.keys import Key, Keys, is_well_formed

THREADS = 4  # for looking keys up: their own, so that no key waits behind a release; a look-up takes about 1 ms
REFUSED_AT_ONCE, REFUSED_PER_SECOND = 100, 50  # of one key or address; a batch counts by its length
REFUSAL_PAUSE = 1.0  # seconds
MOST_WAITING = 128  # half of the connections from one address
MOST_BUCKETS = 10_000
Headers = Iterable[tuple[bytes, bytes]]


@final
class Buckets:
    """Token buckets, one for each name: so many at once, refilled at a steady rate; in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, number: float, size: float, per_second: float) -> bool:
        """Takes so many tokens, where they are left."""
        with self._lock:
            now = monotonic()
            left, since = self._left.pop(name, (size, now))
            left = min(size, left + (now - since) * per_second)
            enough = left >= number
            self._left[name] = (left - number if enough else left, now)
            if len(self._left) > MOST_BUCKETS:  # strangers choose their addresses: the oldest bucket is forgotten
                del self._left[next(iter(self._left))]
            return enough


@final
class Pace:
    """So many requests a minute for each key."""

    def __init__(self) -> None:
        self._buckets = Buckets()

    def check(self, key: Key, number: int = 1) -> None:
        """Takes one, or as many as a batch asks for, or refuses."""
        if key.per_minute is None:
            return
        if not self._buckets.take(key.name, number, key.per_minute, key.per_minute / 60):
            raise TooFast(f"this key may ask {key.per_minute} times a minute; wait a little.")


@final
class Patience:
    """Whoever is refused often waits for further refusals, so that refusing takes little time from answering.

    Refusals are counted for each key, and for each address of those without one. The first ones of a second are sent at
    once; then they wait, at most so many at the same time, or waiting connections would keep others out.
    """

    def __init__(self) -> None:
        self._buckets, self._waiting = Buckets(), 0

    async def wait(self, name: str, weight: float) -> None:
        """Returns at once, or after a pause."""
        free = self._buckets.take(name, weight, REFUSED_AT_ONCE, REFUSED_PER_SECOND)
        if free or self._waiting >= MOST_WAITING:
            return
        self._waiting += 1
        try:
            await sleep(REFUSAL_PAUSE)
        finally:
            self._waiting -= 1


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
