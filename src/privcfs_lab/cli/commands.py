"""privcfs-lab: certificates, benchmarks and experiments. For owners and researchers; it releases nothing."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import privcfs
from privcfs.cli.output import complain
from privcfs.errors import InputError, PrivcfsError, SettingsError
from privcfs.owner.vault_file import read_vault_file
from privcfs_lab.audit.depth import FULL, QUICK
from privcfs_lab.audit.report import breaches
from privcfs_lab.audit.report import html as audit_html
from privcfs_lab.bench import Extent, bench_page
from privcfs_lab.experiments import EXPERIMENTS, PAGES, PAPER, overview, stamps
from privcfs_lab.experiments.audits import run as run_audit
from privcfs_lab.experiments.certification import checks as run_checks
from privcfs_lab.experiments.certification import page_of as certification_page
from privcfs_lab.figures.page import console
from privcfs_lab.measuring.price_list import OWNER_ONLY, SAFE, SUPPORTS, Question, price_list, read_targets
from privcfs_lab.measuring.study import ONE_THREAD, Study

app = typer.Typer(
    help="Certificates, benchmarks and experiments: sees both sides, releases nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
DEPTHS = {depth.name: depth for depth in (QUICK, FULL)}
WriteOption = Annotated[Path | None, typer.Option(help="Also write the result into this folder: Markdown, CSV, JSON.")]
Seeds = Annotated[
    int,
    typer.Option(help="How many seeds; the first uses the embedded weights. everyone always has ten.", min=1, max=100),
]


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"privcfs-lab {privcfs.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Options that stand before a command."""


@app.command()
def certify(
    write: WriteOption = None,
    graphs: Annotated[int, typer.Option(help="Random graphs on eight nodes.", min=10)] = 40,
) -> None:
    """Check support, sensitivity and ratio; every check must also reject its broken twin. Exit code 1 on a breach."""
    with _progress() as say:
        found = run_checks(graphs, Study(progress=say))
    result = certification_page(found, graphs)
    result.show()
    if write:
        stamps.write(result, write, "certification", "privcfs-lab certify")
    breaches = sum(not row.passed for row in found)
    if breaches:
        console.print(f"{breaches} breaches")
        raise typer.Exit(1)


@app.command()
def audit(
    depth: Annotated[str, typer.Option(help="quick (a minute or two) or full (about an hour).")] = "quick",
    write: Annotated[Path, typer.Option(help="The report, one HTML file.")] = Path("audit.html"),
    pages: Annotated[
        Path | None, typer.Option(help="Also write its parts into this folder: Markdown, CSV, JSON.")
    ] = None,
    keep: Annotated[Path, typer.Option(help="Folder in which finished work is kept.")] = Path(".privcfs-lab"),
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Try to refute the promise: exact checks, black box, worst cases, attacks, time. Exit code 1 on a breach."""
    if depth not in DEPTHS:
        raise InputError(f"depth {depth!r} is unknown; choose one of {', '.join(DEPTHS)}.")
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    with _progress(live=False) as say:  # nothing may print while the audit listens for what a vault prints
        parts = run_audit(DEPTHS[depth], workers, keep, say)
    command = f"privcfs-lab audit --depth {depth}"
    write.parent.mkdir(parents=True, exist_ok=True)
    write.write_text(audit_html(parts, depth, f"Written by {command}."), encoding="utf-8")
    if pages is not None:
        for name, page in parts.items():
            stamps.write(page, pages, name, command)
    found = [f"{page.title}: {row}" for page in parts.values() for row in breaches(page)]
    for row in found:
        console.print(f"breach: {row}", highlight=False)
    console.print(f"{len(found)} breaches. Wrote {write}", highlight=False)
    if found:
        raise typer.Exit(1)


@app.command()
def bench(
    write: WriteOption = None,
    repeats: Annotated[int, typer.Option(help="Timed repetitions.", min=3)] = 60,
    largest: Annotated[
        int, typer.Option(help="Nodes of the largest graph that is made: ten million need 5 GB of disk.", min=10_000)
    ] = 1_000_000,
) -> None:
    """Measure evaluators, releases, many targets, large graphs, cold starts and memory, in one run."""
    with _progress() as say:
        result = bench_page(Extent(repeats, largest), say)
    result.show()
    if write:
        stamps.write(result, write, "bench", f"privcfs-lab bench --largest {largest}")


@app.command()
def price(
    targets: Annotated[Path, typer.Option(help="A public list of nodes, one a line.")],
    vault: Annotated[Path, typer.Option(help="The vault file.")] = Path("vault.toml"),
    public: Annotated[
        bool, typer.Option("--public", help="Use the snapshot alone: safe to act on and to publish.")
    ] = False,
    support: Annotated[list[str] | None, typer.Option(help="Candidate rules; may be repeated. Default: all.")] = None,
    write: Annotated[Path, typer.Option(help="Folder for table, plot and files.")] = Path("price"),
) -> None:
    """List what releases would achieve by disclosure, support and epsilon, before any budget is spent."""
    question = Question(read_targets(targets), tuple(support or SUPPORTS), public)
    with _progress() as say:
        result = price_list(read_vault_file(vault), question, say)
    result.show()
    console.print(SAFE if public else OWNER_ONLY, style=None if public else "bold")
    name = "price-public" if public else "price-for-the-owner"
    result.write(write, name, "privcfs-lab price --public" if public else "privcfs-lab price")


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}; or all, everything, or stale.")],
    write: Annotated[Path, typer.Option(help="Folder for pages, figures, CSV and JSON.")] = Path("results"),
    keep: Annotated[Path, typer.Option(help="Folder in which finished work is kept.")] = Path(".privcfs-lab"),
    seeds: Seeds = 3,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Compute tables and figures again, the paper's numbers beside ours: "all" of the paper, or "everything".

    "stale" stands for the pages of the folder that other code than today's has written. Interrupted work goes on where
    it stopped.
    """
    old = stamps.stale(write) if name == "stale" else [name]
    chosen = {"all": PAPER, "everything": EXPERIMENTS}.get(name) or {
        key: one for key, one in EXPERIMENTS.items() if key in old
    }
    if not chosen and name != "stale":
        choices = ", ".join([*EXPERIMENTS, "all", "everything", "stale"])
        raise InputError(f"experiment {name!r} is unknown; choose one of {choices}.")
    more = f" --seeds {seeds}" if seeds != 3 else ""
    for variable in ONE_THREAD:  # before torch is imported: sums in one order, so the same weights every time
        os.environ.setdefault(variable, "1")
    for key, experiment in chosen.items():
        try:
            with _progress(f"{key}: training and measuring") as say:
                result = experiment.run(Study(tuple(range(seeds)), workers, keep, say))
        except SettingsError as error:
            if len(chosen) == 1:
                raise
            console.print(f"{key} is left out: {error}", highlight=False)
            continue
        except (KeyboardInterrupt, BrokenProcessPool):
            sys.stderr.write(
                "Stopped (interrupted, or out of memory). Finished work is kept: the same command goes on.\n"
            )
            raise typer.Exit(130) from None
        result.show()
        stamps.write(result, write, key, f"privcfs-lab reproduce {key}{more}")
    for key in old if name == "stale" else ():
        if key not in EXPERIMENTS:
            console.print(f"{key} has a command of its own: {stamps.stale(write)[key]}", highlight=False)
    _list_results(write)


@app.command()
def stale(
    pages: Annotated[Path, typer.Option(help="The folder with pages of results.")] = Path("docs/results"),
    record: Annotated[
        bool, typer.Option("--record", help=f"Write the list into {overview.STALE} beside them.")
    ] = False,
) -> None:
    """List the pages of results that other code than today's has written, each with its command."""
    for name, command in stamps.stale(pages).items():
        console.print(f"{name}: {command}", highlight=False, soft_wrap=True)
    if record:
        stamps.record(pages)
        overview.write(pages, PAGES)


def _list_results(folder: Path) -> None:
    """The first page, and the list of stale pages where there is one."""
    if (folder / overview.STALE).exists():
        stamps.record(folder)
    overview.write(folder, PAGES)


@contextmanager
def _progress(title: str = "", live: bool = True) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done and for how long; unless it is live, it changes with each step alone."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, auto_refresh=live) as bar:
        task = bar.add_task(title)
        yield lambda step: bar.update(task, description=f"{title} {step}".strip(), refresh=not live)


def main() -> None:
    """Runs one command; an expected error ends in one line and its own exit code."""
    try:
        app()
    except PrivcfsError as error:
        complain(error, as_json=False)
        sys.exit(error.exit_code)
