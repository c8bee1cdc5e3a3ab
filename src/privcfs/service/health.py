"""What /health says, and the threads that find it out: /health itself waits for nothing."""

from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from time import monotonic
from typing import final

from privcfs.errors import LedgerError
from privcfs.service.metrics import Metrics

EVERY = 0.5  # seconds between two looks
STALE = 5.0  # seconds after which a look that has not ended counts as hanging; one takes milliseconds
LEDGER, LOG = "ledger", "log"
Finding = tuple[int, dict[str, str]]  # status and body
Seen = tuple[float, Exception | None]


@final
class Health:
    """What each thread found at its last look, and when."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._seen: Mapping[str, Seen] = {}

    def note(self, name: str, error: Exception | None = None) -> None:
        """What was found just now."""
        with self._lock:
            self._seen = {**self._seen, name: (self._clock(), error)}  # replaced whole: a reader needs no lock

    def find(self) -> Finding:
        """The status and body of /health."""
        for name, (time, error) in self._seen.items():
            if error is not None:
                return 503, {"error": type(error).__name__, "message": _words(name, error)}
            if self._clock() - time > STALE:
                message = f"the {name} has not answered for {self._clock() - time:.0f} seconds; tell the owner."
                return 503, {"error": "Stalled", "message": message}
        return 200, {"status": "ok"}


def _words(name: str, error: Exception) -> str:
    """A ledger's errors are written for analysts; others may name the owner's files and are kept to the class."""
    return str(error) if isinstance(error, LedgerError) else f"the {name} cannot be kept; the owner should look."


@final
class Housekeeper(Thread):
    """Does one work again and again, notes how it went, and counts failures."""

    def __init__(self, name: str, work: Callable[[], object], health: Health, metrics: Metrics) -> None:
        super().__init__(name=f"housekeeper of the {name}", daemon=True)
        self._what, self._work, self._health, self._metrics = name, work, health, metrics
        self._over = Event()

    def look(self) -> None:
        """Does the work once. A failure is noted and counted, and does not stop later attempts."""
        try:
            self._work()
        except Exception as error:
            self._metrics.missed()
            self._health.note(self._what, error)
        else:
            self._health.note(self._what)

    def run(self) -> None:
        """Repeats the work until `end` is called, and does it once more then."""
        over = False
        while not over:
            over = self._over.wait(EVERY)
            self.look()

    def end(self) -> None:
        """Waits for the last look, unless it hangs."""
        self._over.set()
        self.join(STALE)
