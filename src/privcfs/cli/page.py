"""A release as one self-contained HTML page: a picture, what it cost, what it hides. Uses public values only."""

import json
from dataclasses import dataclass, field
from html import escape
from typing import Any

from privcfs.gate.accounting import Balance
from privcfs.public.advice import CONFIDENCE, Advice
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import show
from privcfs.public.picture import picture
from privcfs.public.release import Release
from privcfs.public.words import share_in_words, to_person

STYLE = """
:root { color-scheme: light; --ink: #1b2430; --soft: #5b6673; --line: #c9d1d9; --paper: #ffffff; --wash: #f4f6f8;
  --cut: #b3261e; --own: #0b5cad; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--wash); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; } ul + h2 { margin-top: 1.25rem; }
.lead { color: var(--soft); margin: 0 0 1.25rem; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.25rem; }
.wide { grid-column: 1 / -1; }
.warn { border-left: .35rem solid var(--cut); } .warn p { margin: 0; }
ul { margin: .25rem 0; padding-left: 1.2rem; } li { margin: .2rem 0; }
svg { width: 100%; height: auto; display: block; }
svg text { font-family: system-ui, sans-serif; font-size: 13px; fill: var(--ink); }
pre { overflow-x: auto; font-size: .8rem; background: var(--wash); padding: .75rem; border-radius: .4rem; }
figcaption, .small { color: var(--soft); font-size: .9rem; } figure { margin: 0; }
"""


@dataclass(frozen=True, slots=True)
class Story:
    """The words around a release."""

    title: str
    lead: str
    warning: str
    released: list[str]
    cost: list[str]
    can: list[str]
    cannot: list[str]
    curtain: list[str]
    advised: list[str] = field(default_factory=list)


def page(
    story: Story,
    release: Release,
    context: PublicContext,
    balance: Balance,
    auc: float,
    advice: Advice | None = None,
) -> str:
    """The whole page."""
    certificate = escape(json.dumps(release.to_dict(), indent=2))
    drawing = picture(release, context).to_svg(alone=False)
    advised = ""
    if advice is not None:
        advised = (
            f"<section><h2>What she is told herself, for nothing</h2>{_list(story.advised)}"
            f"<figure>{picture(advice, context).to_svg(alone=False)}</figure></section>"
        )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(story.title)}</title><style>{STYLE}</style></head><body><main>
<h1>{escape(story.title)}</h1><p class="lead">{escape(story.lead)}</p>
<div class="grid">
<section class="wide warn"><p>{escape(story.warning)}</p></section>
{advised}
<section><h2>What was released</h2>{_list(story.released)}<figure>{drawing}
<figcaption>{escape(_caption(release))}</figcaption></figure></section>
<section><h2>What it cost, and what is left</h2>{_meter(balance)}{_list(story.cost)}
<h2>The best possible attacker</h2>{_gauge(auc)}</section>
<section><h2>What an outsider can conclude</h2>{_list(story.can)}</section>
<section><h2>What an outsider cannot conclude</h2>{_list(story.cannot)}</section>
<section class="wide"><h2>Behind the curtain</h2>{_list(story.curtain)}</section>
<section class="wide"><details><summary>Certificate (JSON)</summary><pre>{certificate}</pre></details></section>
</div></main></body></html>
"""


def advice_page(advice: Advice, context: PublicContext) -> str:
    """Advice as a page for the person concerned. It is hers, and says so first."""
    certificate = escape(json.dumps(advice.to_dict(), indent=2))
    sections = "".join(
        f"<section><h2>{'The best way' if not number else f'Another way ({number})'}</h2>"
        f"<p>It flips the decision with probability {share_in_words(change.confidence).replace(' %', '&nbsp;%')}.</p>"
        f"{_list(to_person(change.intervention, advice.target))}"
        f"<figure>{picture(advice, context, number + 1).to_svg(alone=False)}<figcaption>You, and in grey your public "
        "connections. Dashed, with a cross: connections to end. Dotted, with a plus: connections to make.</figcaption>"
        "</figure></section>"
        for number, change in enumerate(advice.changes)
    )
    title = f"Advice for {advice.target_name}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{escape(title)}</h1><p class="lead">What you could change so that the decision about you changes.</p>
<div class="grid">
<section class="wide warn"><p>{escape(advice.promise)}</p></section>
{sections}
<section class="wide"><h2>How sure this is</h2><p>{escape(CONFIDENCE)}</p><p>{escape(advice.about_told)}</p>
<h2>What this rests on</h2>{_list(list(advice.premises))}
<details><summary>Certificate (JSON)</summary><pre>{certificate}</pre></details></section>
</div></main></body></html>
"""


def _caption(release: Release) -> str:
    """What the picture draws, and what it does not say."""
    drawn = ["Dashed, with a cross: pairs that the release deletes."] if release.intervention.delete else []
    drawn += ["Dotted, with a plus: pairs that the release adds."] if release.intervention.add else []
    return (
        f"Node {release.target_name} and, in grey, its pairs in the public snapshot. "
        f"{' '.join(drawn) or 'The release names no pair.'} It does not say whether a pair is an edge of the secret "
        "graph."
    )


def _meter(balance: Balance) -> str:
    limit = balance.limit or balance.spent
    width = 400 * float(balance.spent / limit)
    return (
        f'<svg viewBox="0 0 420 52" role="img" aria-label="{show(balance.spent)} of {show(limit)} spent">'
        '<rect x="10" y="8" width="400" height="16" rx="4" fill="#e3e8ed"/>'
        f'<rect x="10" y="8" width="{width:.1f}" height="16" rx="4" fill="#0b5cad"/>'
        f'<text x="10" y="44">{show(balance.spent)} spent</text>'
        f'<text x="410" y="44" text-anchor="end">{show(limit - balance.spent)} of {show(limit)} left</text></svg>'
    )


def _gauge(auc: float) -> str:
    x = 10 + 800 * (auc - 0.5)
    return (
        f'<svg viewBox="0 0 420 70" role="img" aria-label="attack AUC at most {auc:.3f}">'
        '<rect x="10" y="24" width="400" height="10" rx="4" fill="#e3e8ed"/>'
        f'<rect x="10" y="24" width="{x - 10:.1f}" height="10" rx="4" fill="#b3261e"/>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="18" y2="40" stroke="#1b2430" stroke-width="2"/>'
        f'<text x="{min(max(x, 70), 350):.1f}" y="13" text-anchor="middle">AUC at most {auc:.3f}</text>'
        '<text x="10" y="58">0.5: blind guess</text><text x="410" y="58" text-anchor="end">1: certainty</text></svg>'
    )


def _list(items: list[Any]) -> str:
    return "<ul>" + "".join(f"<li>{escape(str(item))}</li>" for item in items) + "</ul>"
