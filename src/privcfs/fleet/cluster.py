"""Parts of a job on Ray: on the cores of this machine, or on the machines of a cluster, of which any may die."""

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
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # Ray's own word for: listen to this machine alone


def release_on_ray(job: Job, parts: Iterable[Part], cluster: str | None, workers: int) -> Generator[Done, None, None]:
    """What came of each part, in order; after a refusal, of those that were under way.

    Ray repeats a part wherever it is lost: request ids pay once.
    """
    ray = _started(cluster, workers)
    try:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(release_far)
        left, waiting = iter(parts), deque[Any]()
        most = AHEAD * max(int(ray.cluster_resources().get("CPU", workers)), 1)
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


def _started(cluster: str | None, workers: int) -> Any:
    for variable, value in (QUIET if cluster else QUIET | LOOPBACK).items():
        os.environ.setdefault(variable, value)
    try:
        import ray
    except ImportError:
        raise MissingDependency("several workers need Ray: pip install 'privcfs[fleet]'.") from None
    _reach(cluster)
    local = {} if cluster else {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address=cluster, log_to_driver=False, logging_level="error", **local)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingsError(f"Ray does not start ({type(error).__name__}); check --cluster and --workers.") from None
    return ray


def _reach(cluster: str | None) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = (cluster or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError):
            raise SettingsError(f"the Ray cluster at {cluster} cannot be reached; check --cluster.") from None
