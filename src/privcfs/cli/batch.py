"""`privcfs batch`: releases for many targets, on one machine or on a Ray cluster; a job that stops goes on for nothing.

A worker opens the vault from its own files. What passes between workers and driver are public names of targets, request
ids and finished releases.
"""

import hashlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.progress import Progress

from privcfs import errors
from privcfs.cli.commands import VAULT, AnalystOption, JsonOption, VaultOption
from privcfs.cli.output import console, emit, say
from privcfs.cli.settings import load_settings
from privcfs.errors import InputError, MissingDependency, PrivcfsError, SettingsError
from privcfs.gate.vault import OWNER, Vault
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.release import Release

PART = 16  # targets that are charged together
AHEAD = 4  # parts that wait for each worker of a cluster


class Job(NamedTuple):
    """What every worker has to know."""

    vault: str
    epsilon: str
    analyst: str


class Part(NamedTuple):
    """Some targets by their public names, and the request ids of their releases."""

    targets: list[str]
    request_ids: list[str]


class Done(NamedTuple):
    """What came of a part: finished releases and, where it was refused, the class and words of the refusal."""

    releases: list[str]
    error: str = ""
    message: str = ""

    def check(self) -> None:
        """Raises the refusal."""
        if self.error:
            raise getattr(errors, self.error, PrivcfsError)(self.message)


def batch(
    targets: Annotated[Path, typer.Option(help="File with the nodes to explain, one a line, by number or name.")],
    epsilon: Annotated[str, typer.Option(help="Price of each release.")],
    out: Annotated[Path, typer.Option(help="Where the releases go, as Parquet.")] = Path("releases.parquet"),
    job: Annotated[str | None, typer.Option(help="Names the job: the same name pays nothing twice.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine; more than one need Ray.", min=1)] = 1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Ray cluster whose nodes see the files.")] = None,
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    as_json: JsonOption = False,
) -> None:
    """Pay for one release per target of a file. Run again, it goes on where it stopped and pays nothing twice."""
    _parquet()
    path, price = vault.resolve(), show(parse_epsilon(epsilon))
    settings = load_settings(path)
    opened = settings.vault()
    labels = _labels(targets, opened)
    name = job or hashlib.sha256(f"{opened.digest} {price}".encode()).hexdigest()[:12]
    parts = [
        Part(part, [f"{name}/{label}" for label in part])
        for part in (labels[start : start + PART] for start in range(0, len(labels), PART))
    ]
    work = Job(str(path), price, analyst)
    here = (_release(opened, work, part) for part in parts)
    results = _on_ray(work, parts, cluster, workers) if cluster or workers > 1 else here
    found: list[Release] = []
    refused: PrivcfsError | None = None
    with Progress(console=console, transient=True, disable=as_json) as progress:
        bar = progress.add_task("Releasing", total=len(labels))
        for done in results:
            found += [Release.from_json(text) for text in done.releases]
            progress.advance(bar, len(done.releases))
            try:
                done.check()
            except PrivcfsError as error:
                refused = error
                break
    settings.remember(opened.head())
    _write(found, {f"{name}/{label}": label for label in labels}, out)
    if refused is not None:
        raise type(refused)(f"{refused} {len(found)} of {len(labels)} are released; go on with --job {name}.")
    spent = show(opened.balance().spent)
    if as_json:
        emit({"job": name, "releases": len(found), "written": str(out), "spent": spent})
    else:
        say(f"Job {name}: {len(found)} releases in {out}. Budget: {spent} spent.")


def _labels(file: Path, vault: Vault) -> list[str]:
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        raise InputError(f"targets file {file} cannot be read; give one node a line.") from None
    labels = [vault.context.label(vault.context.node(name)) for name in names]
    if not labels or len(set(labels)) < len(labels):
        raise InputError(f"targets file {file} must name different nodes, at least one.")
    return labels


def _release(vault: Vault, job: Job, part: Part) -> Done:
    """A part is paid as a whole; where that does not fit, target by target until the budget ends."""
    questions = [(target, job.epsilon, name) for target, name in zip(part.targets, part.request_ids, strict=True)]
    found: list[str] = []
    try:
        try:
            found += [one.to_json() for one in vault.release_all(questions, analyst=job.analyst)]
        except errors.BudgetExhausted:
            for target, price, name in questions:
                found.append(vault.release(target, price, analyst=job.analyst, request_id=name).to_json())
    except PrivcfsError as error:
        return Done(found, type(error).__name__, str(error))
    return Done(found)


@lru_cache(maxsize=1)
def _vault(path: str) -> Vault:
    """Opened once in each process of a worker."""
    return load_settings(Path(path)).vault()


def _release_far(job: Job, part: Part) -> Done:
    """As a worker does it: whatever fails unforeseen, its words stay there."""
    try:
        return _release(_vault(job.vault), job, part)
    except PrivcfsError as error:
        return Done([], type(error).__name__, str(error))
    except Exception as error:
        return Done([], "PrivcfsError", f"a worker failed ({type(error).__name__}); its own files say more.")


def _on_ray(job: Job, parts: Sequence[Part], cluster: str | None, workers: int) -> Iterator[Done]:
    """Tasks that Ray repeats wherever a process or a machine dies: request ids see to it that nothing is paid twice."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or Ray warns about accelerators
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
    try:
        task = ray.remote(num_cpus=1, max_retries=-1)(_release_far)
        left = iter(parts)
        most = AHEAD * max(int(ray.cluster_resources().get("CPU", workers)), 1)
        waiting = [task.remote(job, part) for part in islice(left, most)]
        while waiting:
            (ready,), waiting = ray.wait(waiting, num_returns=1)
            done: Done = ray.get(ready)
            yield done
            waiting += [task.remote(job, part) for part in islice(left, 1)]
    finally:
        ray.shutdown()


def _reach(cluster: str | None) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = (cluster or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError):
            raise SettingsError(f"the Ray cluster at {cluster} cannot be reached; check --cluster.") from None


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependency("Parquet files need pyarrow: pip install 'privcfs[parquet]'.") from None
    return pyarrow


def _write(found: Sequence[Release], labels: Mapping[str, str], out: Path) -> None:
    """One row a release, in the order of the targets; `release` is the certificate as `verify` reads it."""
    arrow, by_id = _parquet(), {one.request_id: one for one in found}
    rows = [(label, by_id[request_id]) for request_id, label in labels.items() if request_id in by_id]
    columns = {
        "target": [label for label, _ in rows],
        "epsilon": [show(one.epsilon) for _, one in rows],
        "intervention": [str(one.intervention) for _, one in rows],
        "request_id": [one.request_id for _, one in rows],
        "release": [one.to_json() for _, one in rows],
    }
    fresh = out.with_name(out.name + ".new")
    try:
        arrow.parquet.write_table(arrow.table(columns), fresh)
        fresh.replace(out)
    except OSError as error:
        raise SettingsError(f"{out} cannot be written: {error}; run the job again, it pays nothing twice.") from None
