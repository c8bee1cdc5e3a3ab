"""Rate limits: how many requests a key may send, and how fast refusals are sent to whoever is refused often."""

from asyncio import sleep
from threading import Lock
from time import monotonic
from typing import final

from privcfs.errors import TooFast
from privcfs.service.keys import Key

# Of one key, or of one address without a key, this many refusals are sent without a pause.
REFUSED_AT_ONCE, REFUSED_PER_SECOND = 100, 50
REFUSAL_PAUSE_SECONDS = 1.0
# Half of the connections that one address may have, so that refusals that wait never take all of them.
MOST_WAITING = 128
MOST_BUCKETS = 10_000


@final
class Buckets:
    """Token buckets, one for each name. They live in this process: another worker process counts for itself."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, number: float, size: float, per_second: float) -> bool:
        """Takes `number` tokens from a bucket of this size and refill rate; False, and no token taken, if too few."""
        with self._lock:
            now = monotonic()
            left, since = self._left.pop(name, (size, now))
            left = min(size, left + (now - since) * per_second)
            enough = left >= number
            self._left[name] = (left - number if enough else left, now)
            if len(self._left) > MOST_BUCKETS:
                # A client can come from many addresses, so the number of buckets must be bounded. The one that was
                # used longest ago goes, because it is the most likely to be full again.
                del self._left[next(iter(self._left))]
            return enough


@final
class Pace:
    """The rate limit of each key, in requests a minute."""

    def __init__(self) -> None:
        self._buckets = Buckets()

    def check(self, key: Key, number: int = 1) -> None:
        """Counts `number` requests of a key, or raises TooFast if they exceed its rate limit."""
        if key.per_minute is None:
            return
        if not self._buckets.take(key.name, number, key.per_minute, key.per_minute / 60):
            raise TooFast(f"this key may ask {key.per_minute} times a minute; wait a little.")


@final
class Patience:
    """Delays the refusals of whoever is refused often, so that refusing takes little time from answering.

    Refusals are counted for each key, and by address for requests without a key. Those within the rate above are sent
    at once; further ones wait. At most MOST_WAITING wait at the same time, because the connections of waiting refusals
    would otherwise keep other clients out; beyond that number refusals are sent at once again.
    """

    def __init__(self) -> None:
        self._buckets, self._waiting = Buckets(), 0

    async def wait(self, name: str, weight: float) -> None:
        """Returns at once while `name` is refused rarely, and after a pause otherwise; `weight` is what one counts."""
        free = self._buckets.take(name, weight, REFUSED_AT_ONCE, REFUSED_PER_SECOND)
        if free or self._waiting >= MOST_WAITING:
            return
        self._waiting += 1
        try:
            await sleep(REFUSAL_PAUSE_SECONDS)
        finally:
            self._waiting -= 1
