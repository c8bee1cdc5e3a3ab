"""`privcfs batch`: releases for many targets, here or on a Ray cluster; a job that stops goes on for nothing."""

import hashlib
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from privcfs.cli.commands import VAULT, AnalystOption, JsonOption, VaultOption
from privcfs.cli.output import console, emit, failures_told, say, warn
from privcfs.cli.spending import YesOption, agree
from privcfs.errors import BudgetExhausted, InputError, PrivcfsError
from privcfs.fleet.cluster import release_on_ray
from privcfs.fleet.parts import Answer, Job, parts, release_here, request_id
from privcfs.fleet.processes import release_in_processes
from privcfs.fleet.results import ResultFile
from privcfs.gate.questions.question import OWNER
from privcfs.gate.vault import Vault
from privcfs.owner.answering_time import rehearse_time
from privcfs.owner.vault_file import open_vault, read_vault_file
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.release import Release
from privcfs.public.tidy import tidy

LONGEST = 200  # letters of a request id


def batch(
    targets: Annotated[Path, typer.Option(help="File with the nodes to explain, one a line, by number or name.")],
    epsilon: Annotated[str, typer.Option(help="Price of each release.")],
    out: Annotated[Path, typer.Option(help="Where the releases go, as Parquet.")] = Path("releases.parquet"),
    table: Annotated[
        Path | None,
        typer.Option(help="Also as one tidy table, CSV: a row for each element of each release."),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Names the job: the same name pays nothing twice.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine.", min=1)] = 1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Ray cluster whose nodes see the files.")] = None,
    as_many_as_fit: Annotated[
        bool, typer.Option("--as-many-as-fit", help="Release until the budget ends, where it does not reach for all.")
    ] = False,
    yes: YesOption = False,
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    as_json: JsonOption = False,
) -> None:
    """Pay for one release per target of a file. Run again, it goes on where it stopped and pays nothing twice."""
    path, price = str(vault.resolve()), parse_epsilon(epsilon)
    opened = opened_once(path)
    settings = read_vault_file(vault)
    warn(settings.account.other_limit(opened.ledger))
    labels = _labels(targets, opened.context)
    name = job or hashlib.sha256(f"{opened.digest} {show(price)}".encode()).hexdigest()[:12]
    if not all(len(one) <= LONGEST and one.isprintable() for one in (request_id(name, label) for label in labels)):
        raise InputError(
            f"a job's name and a target's together are printable, of at most {LONGEST} letters; see --job."
        )
    paid = opened.ledger.paid(analyst, [request_id(name, label) for label in labels])
    unpaid = [label for label in labels if request_id(name, label) not in paid]
    if unpaid:
        _check_time(opened, settings.answer_seconds(), as_json)
    if unpaid and not as_many_as_fit:
        _agree_to_all(unpaid, opened, price, analyst, yes)
    work, todo = Job(partial(opened_once, path), opened.digest, price, analyst), parts(name, labels)
    if cluster is not None:
        results = release_on_ray(work, todo, cluster)
    else:
        results = release_in_processes(work, todo, workers) if workers > 1 else release_here(opened, work, todo)
    refusal: PrivcfsError | None = None
    answered: set[str] = set()
    found: list[Answer] = []
    refused: list[str] = []
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True, disable=as_json)
    with failures_told(opened), closing(results), ResultFile(out) as file, progress:
        bar = progress.add_task("Releasing", total=len(labels))
        try:
            for done in results:
                file.add(done.answers)
                found += done.answers if table is not None else ()
                answered.update(one.target for one in done.answers)
                refused += done.spent
                progress.advance(bar, len(done.answers) + len(done.spent))
                refusal = refusal or done.refusal()
        except KeyboardInterrupt:
            progress.stop()
            if not as_json:
                say(f"Stopped. What is paid is kept, and nothing is written yet: go on with --job {name}.")
            raise
    if table is not None and found:
        tidy(Release.from_json(answer.release) for answer in found).write_csv(table)
    if refusal is not None:
        first = next((f" The first without an answer is {one}." for one in labels if one not in answered), "")
        reached = f"{file.written} of {len(labels)} are released and paid; go on with --job {name}.{first}"
        over = "the budget does not reach further." if isinstance(refusal, BudgetExhausted) else str(refusal)
        raise type(refusal)(f"{over} {reached}")
    if refused and not file.written:
        raise BudgetExhausted(f"epsilon {show(price)} fits none of the accounts of these nodes. Nothing was charged.")
    spent = show(opened.ledger.losses().everything if opened.charged_at(labels[:1]) else opened.balance().spent)
    if as_json:
        emit({"job": name, "releases": file.written, "refused": len(refused), "written": str(out), "spent": spent})
    else:
        empty = f" {_refused(refused)}" if refused else ""
        say(f"Job {name}: {file.written} releases in {out}.{empty} Budget: {spent} spent.")


def _refused(targets: Sequence[str]) -> str:
    """How many nodes have accounts that do not reach; balances are public."""
    return f"{len(targets)} were refused, because the accounts of their nodes do not reach: {targets[0]} is the first."


def _check_time(opened: Vault, answer_seconds: float | None, as_json: bool) -> None:
    """Says what an answer takes, and refuses settings under which public data cannot be evaluated."""
    measured = rehearse_time(opened)
    if not as_json:
        say(str(measured))
    warn(measured.check(opened.method, answer_seconds))


def _agree_to_all(labels: Sequence[str], opened: Vault, price: Fraction, analyst: str, yes: bool) -> None:
    """Nothing is paid unless everything fits; where nodes have accounts, those that do not reach stop nobody else."""
    cost, charged = opened.cost(price), opened.charged_at(labels)
    try:
        if not charged:
            agree(len(labels) * cost, opened.ledger, analyst, yes)
            return
        spent, limit = opened.ledger.spent_at(charged), opened.ledger.limit.per_node or Fraction(0)
        fitting = [node for node in charged if spent[node] + cost <= limit]
        if not fitting:
            return
        own = opened.ledger.account_of(analyst).left
        if own is not None and len(fitting) * cost > own:
            raise BudgetExhausted(f"{show(len(fitting) * cost)} is needed, and {show(own)} is left for {analyst}.")
        agree(cost, opened.ledger, analyst, yes, fitting)
    except BudgetExhausted as error:
        less = "A shorter list, a lower price or --as-many-as-fit would do."
        raise BudgetExhausted(f"{len(labels)} releases are to be paid: {error} {less}") from None


@lru_cache(maxsize=1)
def opened_once(path: str) -> Vault:
    """The vault of a vault file, opened once in each worker process."""
    return open_vault(path)


def _labels(file: Path, context: PublicContext) -> list[str]:
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        raise InputError(f"targets file {file} cannot be read; give one node a line.") from None
    labels = [context.label(context.node(name)) for name in names]
    if not labels or len(set(labels)) < len(labels):
        raise InputError(f"targets file {file} must name different nodes, at least one.")
    return labels
