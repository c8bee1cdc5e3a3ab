"""privcfs-lab: certificates, benchmarks and experiments. For owners and researchers; it releases nothing."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from privcfs.cli.output import complain
from privcfs.errors import InputError, PrivcfsError
from privcfs.lab.bench import bench_rows
from privcfs.lab.certify import certify as run_checks
from privcfs.lab.experiments import EXPERIMENTS
from privcfs.lab.report import console, show_table, write_markdown
from privcfs.lab.zero import zero_rows

app = typer.Typer(
    help="Certificates, benchmarks and experiments: sees both sides, releases nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
SLICE = 40  # targets that the tests compute again
WriteOption = Annotated[Path | None, typer.Option(help="Also write the table as Markdown into this folder.")]


@app.callback()
def _root() -> None:
    """Keeps commands named even while there are few."""


@app.command()
def certify(
    write: WriteOption = None,
    graphs: Annotated[int, typer.Option(help="Random graphs on eight nodes.", min=10)] = 40,
) -> None:
    """Check support, sensitivity and ratio; every check must also reject its broken twin. Exit code 1 on a breach."""
    headings = ("check", "graph pairs", "measured sensitivity", "worst ratio", "bound", "verdict")
    rows: list[tuple[str, ...]] = []
    breaches = 0
    with console.status("Comparing releases ...") as status:
        for row in run_checks(graphs):
            status.update(f"{len(rows) + 1} checks done; last: {row.check}")
            verdict = "holds" if row.passed else "BREACH"
            rows.append((row.check, str(row.pairs), row.sensitivity, row.ratio, row.bound, verdict))
            breaches += not row.passed
    show_table("Certification checks", headings, rows)
    if write:
        intro = (
            f"Written by `privcfs-lab certify --write docs/results`: {graphs} random graphs on 8 nodes (seeds 0 to "
            f"{graphs - 1}), each against its neighbours. The bound is e^epsilon, or the closed form where it says so. "
            "Hostile scores are compared as exact fractions; other ratios come from the exact law rounded to floats."
        )
        write_markdown(write / "certify.md", ("Certification checks", intro, ""), headings, rows)
    if breaches:
        console.print(f"{breaches} breaches")
        raise typer.Exit(1)


@app.command()
def bench(
    write: WriteOption = None,
    repeats: Annotated[int, typer.Option(help="Timed repetitions.", min=3)] = 60,
) -> None:
    """Measure the evaluators, a whole release and memory, in one run."""
    headings = ("what", "value", "asked for")
    rows = bench_rows(repeats)
    show_table("Benchmark", headings, rows)
    if write:
        intro = (
            f"Written by `privcfs-lab bench --write docs/results` (median of {repeats} repetitions, all in one run, "
            "one core unless it says otherwise). Cora, node 55: 12 neighbours, all of them public for this purpose, "
            "paper's support. Ratios travel between machines better than times."
        )
        write_markdown(write / "bench.md", ("Benchmark", intro, ""), headings, rows)


@app.command()
def zero(
    write: WriteOption = None,
    most: Annotated[int, typer.Option(help="Test nodes per data set.", min=1)] = 1000,
) -> None:
    """Compare releases with the honest zero: the best guess from public data alone, at epsilon 0."""
    headings = ("data", "model trained on", "targets", "ceiling", "public guess, epsilon 0", "epsilon 1", "epsilon 8")
    rows = zero_rows(most)
    show_table("Share of targets whose decision flips", headings, rows)
    if write:
        intro = (
            f"Written by `privcfs-lab zero --write docs/results`: the first {most} test nodes, embedded snapshot "
            "(half of the edges, simulated), paper's support, gated utility with our range 24/25, exponential "
            "mechanism, exact expectations. The public guess is the best candidate on the snapshot graph; the ceiling "
            "is the share of targets with any flipping candidate."
        )
        last = f"<!-- first {SLICE}: {json.dumps(zero_rows(SLICE))} -->"
        write_markdown(write / "zero.md", ("Share of targets whose decision flips", intro, last), headings, rows)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}, or all.")],
    write: Annotated[Path, typer.Option(help="Folder for Markdown and CSV.")] = Path("docs/results"),
) -> None:
    """Compute tables of the paper again, with its numbers beside ours."""
    if name != "all" and name not in EXPERIMENTS:
        raise InputError(f"experiment {name!r} is unknown; choose one of {', '.join(EXPERIMENTS)}, or all.")
    for chosen in EXPERIMENTS if name == "all" else [name]:
        with console.status(chosen) as status:
            table = EXPERIMENTS[chosen](lambda step, label=chosen: status.update(f"{label}: {step}"))  # type: ignore[misc]
        show_table(table.title, table.headings, table.rows)
        table.write(write, chosen)


def main() -> None:
    """Runs one command; an expected error ends in one line and its own exit code."""
    try:
        app()
    except PrivcfsError as error:
        complain(error, as_json=False)
        sys.exit(error.exit_code)
