"""Parts of a job on the machines of a Ray cluster, of which any may die."""

import os
import socket
from collections import deque
from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any

from privcfs.errors import MissingDependency, SettingsError
from privcfs.fleet.parts import Done, Job, Part, release_far

AHEAD = 4  # parts that wait for each core of a cluster
RETRIES = 20  # of a part whose process or machine died
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # no reports, no warnings


def release_on_ray(job: Job, parts: Iterable[Part], cluster: str) -> Generator[Done, None, None]:
    """What came of each part, in order; after a refusal, of those that were under way.

    Ray repeats a part wherever it is lost: request ids pay once.
    """
    ray = _started(cluster)
    try:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(release_far)
        left, waiting = iter(parts), deque[Any]()
        most = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        while True:
            waiting += [task.remote(job, part) for part in islice(left, most - len(waiting))]
            if not waiting:
                return
            try:
                done: Done = ray.get(waiting.popleft())
            except ray.exceptions.RayError as error:
                done = Done([], "PrivcfsError", f"Ray could not finish a part ({type(error).__name__}).")
            left = iter(()) if done.error else left
            yield done
    finally:
        ray.shutdown()


def _started(cluster: str) -> Any:
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    try:
        import ray
    except ImportError:
        raise MissingDependency("a cluster needs Ray: pip install 'privcfs[fleet]'.") from None
    _reach(cluster)
    try:
        ray.init(address=cluster, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingsError(f"Ray does not start ({type(error).__name__}); check --cluster.") from None
    return ray


def _reach(cluster: str) -> None:
    """Tries to connect once: Ray itself would go on trying for minutes."""
    host, colon, port = cluster.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError):
            raise SettingsError(f"the Ray cluster at {cluster} cannot be reached; check --cluster.") from None
