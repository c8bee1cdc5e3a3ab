"""`privcfs advise`: the answer to the person concerned."""

from pathlib import Path
from typing import Annotated

import typer

from privcfs.cli.commands import VAULT, AnalystOption, JsonOption, RequestOption, VaultOption
from privcfs.cli.output import emit, failures_told, learning, say, warn
from privcfs.cli.page import advice_page
from privcfs.cli.spending import YesOption, agree_to_one
from privcfs.errors import SettingsError
from privcfs.gate.questions.advice import MOST_ALTERNATIVES
from privcfs.gate.questions.question import OWNER
from privcfs.owner.vault_file import read_vault_file
from privcfs.public.advice import CONFIDENCE, Advice
from privcfs.public.epsilon import show
from privcfs.public.words import share_in_words, to_person


def advise(
    target: Annotated[str, typer.Argument(help="The node of the person who asks, by number or public name.")],
    alternatives: Annotated[
        int | None,
        typer.Option(
            help="How many other ways to name beside the best one: 2 by default where advice is free, none where it "
            "is paid. Paid ways share the price equally.",
            min=0,
            max=MOST_ALTERNATIVES,
        ),
    ] = None,
    told: Annotated[int | None, typer.Option(help="The decision that the person was told: a class number.")] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Price at which other people's edges are read too; without it they are not read at all."),
    ] = None,
    read_others: Annotated[
        bool | None,
        typer.Option(
            "--read-others/--own-edges-alone",
            help="What the price is for: other people's edges too (the default where edges alone are secret), or a "
            "secret model or secret features alone (the default where there are such).",
            show_default=False,
        ),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Also write it as a page with pictures.", metavar="FILE")] = None,
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    request_id: RequestOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer the person concerned, from public data and her own edges. For her alone, not for publication."""
    file = read_vault_file(vault)
    opened = file.vault(progress=learning)
    if page is not None and page.exists():
        raise SettingsError(f"{page} exists; name another file.")
    if epsilon is not None:
        warn(file.account.other_limit(opened.ledger))
        first = request_id if request_id is None or not alternatives else f"{request_id}/1"
        agree_to_one(opened.cost(epsilon), opened.ledger, analyst, first, yes)
    with failures_told(opened):
        advice = opened.advise(
            target,
            alternatives=alternatives,
            told=told,
            epsilon=epsilon,
            read_others=read_others,
            analyst=analyst,
            request_id=request_id,
        )
    if page is not None:
        page.write_text(advice_page(advice, opened.context), encoding="utf-8")
    if as_json:
        emit(advice.to_dict())
        return
    _tell(advice)
    if page is not None:
        say(f"Wrote {page}.")


def _tell(advice: Advice) -> None:
    """Advice in words."""
    say(f"Advice for {advice.target_name}:")
    for number, change in enumerate(advice.changes):
        parts = to_person(change.intervention, advice.target)
        together = ", all of it together" if len(parts) > 1 else ""
        say(f"  {'or' if number else 'best'}, with probability {change.confidence:.2f}{together}:")
        for part in parts:
            say(f"    {part}")
    believed = ", ".join(f"class {label} ({share_in_words(chance)})" for label, chance in advice.believed.items())
    say(f"  The present decision is believed to be {believed}; it was not read.")
    if advice.about_told:
        say(f"  {advice.about_told}")
    say(CONFIDENCE)
    say(advice.promise)
    say("This rests on what follows.")
    for words in advice.premises:
        say(f"  {words}")
    paid = f"Paid: epsilon {show(advice.epsilon)}, request id {advice.request_id}."
    say(paid if advice.epsilon else "Nothing was paid.")
