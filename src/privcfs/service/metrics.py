"""Counts for Prometheus: requests by endpoint and status, coarse latencies, releases, failures.

Nothing private is a label. Failures depend on private edges: the endpoint is for the owner's key alone.
"""

from collections.abc import Callable, Iterator
from typing import final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from privcfs.gate.failures import Failures

ONLY_COUNTED = frozenset({"/v1/advice"})  # its seconds depend on one person's edges
COARSE = (0.05, 0.25, 1.0, 5.0)  # seconds: finer ones would tell of evaluation times


class Metrics:
    """The metrics of one process."""

    def __init__(self, failures: Callable[[], Failures] = Failures) -> None:
        self._registry = CollectorRegistry()
        labels = ["method", "path", "status"]
        self._requests = Counter("privcfs_requests", "Requests answered", labels, registry=self._registry)
        self._seconds = Histogram(
            "privcfs_seconds", "Seconds to an answer", ["path"], buckets=COARSE, registry=self._registry
        )
        self._releases = Counter("privcfs_releases", "Releases handed out", registry=self._registry)
        self._advice = Counter("privcfs_advice", "Pieces of advice handed out", registry=self._registry)
        self._missed = Counter("privcfs_housekeeping_failures", "Head or log not written", registry=self._registry)
        self._registry.register(_FailureCollector(failures))

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Counts one request and the time that it took."""
        self._requests.labels(method, path, str(status)).inc()
        if path in ONLY_COUNTED:
            return
        self._seconds.labels(path).observe(next((edge for edge in COARSE if seconds <= edge), 2 * COARSE[-1]))

    def released(self, number: int) -> None:
        """Counts releases that were paid for and handed out."""
        self._releases.inc(number)

    def advised(self) -> None:
        """Counts one piece of advice, and nothing about it: everything else depends on a person's own edges."""
        self._advice.inc()

    def missed(self) -> None:
        """The head or the log could not be written."""
        self._missed.inc()

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)


@final
class _FailureCollector(Collector):
    """Reads the vault's own counts whenever Prometheus asks."""

    def __init__(self, failures: Callable[[], Failures]) -> None:
        self._failures = failures

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One counter for each count."""
        found = self._failures()
        for name, words, count in (
            ("privcfs_evaluations_given_up", "Evaluations given up for work, drawn from public scores", found.given_up),
            ("privcfs_evaluations_failed", "Evaluations that failed, drawn from public scores", found.failed),
            ("privcfs_answers_late", "Answers later than answer_seconds", found.late),
        ):
            yield CounterMetricFamily(name, words, value=count)
