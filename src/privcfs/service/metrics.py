"""Counts for Prometheus: requests by endpoint and status, coarse latencies, releases. Nothing private is a label."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

COARSE = (0.05, 0.25, 1.0, 5.0)  # seconds: finer ones would tell of evaluation times


class Metrics:
    """One set for each process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ["method", "path", "status"]
        self._requests = Counter("privcfs_requests", "Requests answered", labels, registry=self._registry)
        self._seconds = Histogram(
            "privcfs_seconds", "Seconds to an answer", ["path"], buckets=COARSE, registry=self._registry
        )
        self._releases = Counter("privcfs_releases", "Releases handed out", registry=self._registry)
        self._missed = Counter("privcfs_housekeeping_failures", "Head or log not written", registry=self._registry)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """One request."""
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(next((edge for edge in COARSE if seconds <= edge), 2 * COARSE[-1]))

    def released(self, number: int) -> None:
        """So many releases."""
        self._releases.inc(number)

    def missed(self) -> None:
        """The head or the log could not be written."""
        self._missed.inc()

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)
