"""`privcfs sketch`: pay once for evidence about hidden pairs, which makes the free guess about everyone better."""

from pathlib import Path
from typing import Annotated

import typer

from privcfs.cli.commands import VAULT, JsonOption, VaultOption
from privcfs.cli.output import emit, learning, say
from privcfs.cli.spending import YesOption, agree
from privcfs.errors import InputError
from privcfs.gate.ledger.ledger import ENTRIES
from privcfs.gate.sketch_trials import Worth, rehearse_sketch
from privcfs.gate.sketching import is_paid, publish_sketch
from privcfs.owner.kept_sketch import recall_or_believe
from privcfs.owner.vault_file import VaultFile, read_vault_file
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import parse_decimal, parse_epsilon, show
from privcfs.public.sketches.meaning import covered_by, in_percent
from privcfs.public.sketches.sketch import MOST_NODES, PARTNERS, SketchPlan

TRIED = ("1", "2", "4", "8")


def sketch(
    epsilon: Annotated[
        str | None, typer.Option(help="What it costs, once, for graphs that differ in one edge. Needed to pay.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(help="The part for noisy counts by class, by default at most 2; the rest is randomised response."),
    ] = None,
    partners: Annotated[
        int | None,
        typer.Option(
            help="Cover so many likeliest partners of each node instead of all pairs; by default all pairs of up to "
            f"{MOST_NODES:,} nodes, and {PARTNERS} partners in larger graphs."
        ),
    ] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Say from public data alone what sketches would buy; pays nothing.")
    ] = False,
    write: Annotated[Path, typer.Option(help="Where the sketch goes.")] = Path("sketch.bin"),
    vault: VaultOption = VAULT,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pay once for a sketch of the hidden pairs: every guess, list, confidence and advice gets better for everyone."""
    file = read_vault_file(vault)
    context = file.context_without_sketch()
    plans = _plans(epsilon, counts, rehearse, _partners(partners, context))
    worlds = _worlds(file, context)
    if rehearse:
        _told(rehearse_sketch(context, worlds, plans, learning), as_json)
        return
    (plan,) = plans
    graph = file.graph(context)
    ledger = file.account.open(graph)
    if not is_paid(context, ledger, plan):
        agree(plan.epsilon, ledger, ENTRIES, yes)
    made = publish_sketch(graph, context, ledger, plan, worlds, write, learning)
    recall_or_believe(context, write, learning)
    losses, covered = ledger.meaning(), covered_by(made)
    if as_json:
        fields = {"written": str(write), "epsilon": show(plan.epsilon), "name": made.name, "guarantee": losses}
        emit(fields | {"partners": plan.partners or None, "covered": covered})
        return
    say(f"Wrote {write}: {plan.name}, for two graphs that differ in one edge. Asking again pays nothing.")
    if plan.is_listed and plan.responses:
        say(f"Covers {in_percent(covered)} of the hidden pairs; what is believed of the others comes from public data.")
    say(f'Now name it in the vault file, under [public]: sketch = "{write.name}"')
    say(f"Spent and limited in all: {losses}")


def _partners(given: int | None, context: PublicContext) -> int:
    """How many likeliest partners are covered; 0 for all pairs."""
    if given is None:
        return 0 if context.number_of_nodes <= MOST_NODES else PARTNERS
    if given < 1:
        raise InputError(f"partners is {given}; cover at least one likeliest partner of each node.")
    return given


def _plans(epsilon: str | None, counts: str | None, rehearse: bool, partners: int) -> list[SketchPlan]:
    """The sketches that were meant."""
    if epsilon is None and not rehearse:
        raise InputError("give --epsilon, or --rehearse to see first what sketches at several prices would buy.")
    if epsilon is None:
        return [SketchPlan.of(parse_epsilon(price), partners) for price in TRIED]
    whole = parse_epsilon(epsilon)
    if counts is None:
        return [SketchPlan.of(whole, partners)]
    part = parse_decimal(counts, "counts")
    if part > whole:
        raise InputError(f"counts is {show(part)}; it is a part of epsilon {show(whole)}, so give at most that.")
    return [SketchPlan(whole - part, part, partners)]


def _worlds(file: VaultFile, context: PublicContext) -> Worlds:
    """What the vault file says of hidden pairs, where its method imagines any."""
    return file.method(context).rehearsal.worlds


def _told(found: list[Worth], as_json: bool) -> None:
    """A table of what sketches would buy."""
    if as_json:
        fields = ("without", "with_it", "ceiling", "targets", "covered")
        emit(
            {
                "sketches": [
                    {"epsilon": show(one.plan.epsilon), "counts": show(one.plan.counts)}
                    | {name: getattr(one, name) for name in fields}
                    for one in found
                ]
            }
        )
        return
    first = found[0]
    say(f"Judged from public data alone, on {first.targets} nodes where public data play the hidden pairs.")
    say(f"  free guess without a sketch   {100 * first.without:.1f} %")
    for one in found:
        said = f", where it covers {in_percent(one.covered)} of hidden pairs" if one.plan.is_listed else ""
        say(f"  with a sketch at {show(one.plan.epsilon):<12} {100 * one.with_it:.1f} %{said}")
    say(f"  any candidate (ceiling)       {100 * first.ceiling:.1f} %")
    say(
        "A sketch is paid once, for two graphs that differ in one edge; a person with m edges may lose m times as much."
    )
