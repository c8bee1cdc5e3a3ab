"""`privcfs demo`: one release on embedded real data, told in words and as a page."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privcfs.cli.output import emit, odds, say
from privcfs.cli.page import Story, page
from privcfs.embedded import Dataset, load_dataset
from privcfs.errors import BudgetExhausted, SettingsError
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import GUIDED
from privcfs.gate.public_guess import public_guess
from privcfs.gate.vault import Vault
from privcfs.private.allowance import Allowance
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import show
from privcfs.public.release import Release
from privcfs.public.words import in_words

LIMIT = "10"
TARGETS = {"cora": 2701, "citeseer": 2515}  # where the free guess fails and a release often does not
METHOD = GUIDED
PAPERS = 60  # over which the honest rate is told
WARNING = (
    "SIMULATION. The citations play the secret; the public snapshot is half of them, drawn for this demo, so it "
    "protects nobody. Yours must have been public before, and independently of, the private edges: no program can "
    "check that for you."
)


def run_demo(name: str, target: int | None, epsilon: str, folder: Path, as_json: bool) -> None:
    """Release, then tell the story; everything is written into `folder`."""
    data = load_dataset(name)
    graph, context = data.private_graph(), data.context()
    node = context.node(TARGETS[name] if target is None else target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"folder {folder} cannot be made: {error.strerror}; choose another with --folder."
        ) from None
    vault = Vault(graph, context, ledger=f"sqlite:///{folder / f'{name}.db'}", limit=LIMIT, simulation=True)
    try:
        release = vault.release(node, epsilon)
    except BudgetExhausted as error:
        raise BudgetExhausted(f"{error} That is the point of a limit; delete {folder} to start over.") from None
    curtain = behind_the_curtain(graph, context, release)
    curtain["rates"] = honest_rates(data, graph, context, release.epsilon)
    story = _story(data, release, context, vault, curtain)
    auc = _mechanism(context, release).auc(release.epsilon)
    html, certificate = folder / "release.html", folder / "release.json"
    try:
        html.write_text(page(story, release, context, vault.balance(), auc), encoding="utf-8")
        certificate.write_text(json.dumps(release.to_dict(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{error.filename} cannot be written: {error.strerror}.") from None
    if as_json:
        emit({"release": release.to_dict(), "budget": vault.balance().to_dict(), "page": str(html)})
    else:
        _tell(story, html, certificate)


def _story(data: Dataset, release: Release, context: PublicContext, vault: Vault, curtain: dict[str, Any]) -> Story:
    balance = vault.balance()
    left = balance.left or Fraction(0)
    price, factor = show(release.epsilon), odds(release.epsilon)
    advantage = _mechanism(context, release).advantage(release.epsilon)
    auc = _mechanism(context, release).auc(release.epsilon)
    return Story(
        title=f"What small change would flip the decision on paper {release.target_name}?",
        lead=f"{data.name.capitalize()}: {context.number_of_nodes:,} papers, "
        f"{len(context.snapshot.pairs):,} public pairs, and secret citations. One private answer at epsilon {price}.",
        warning=WARNING,
        released=[*in_words(release.intervention), _sure(release)],
        cost=[
            f"Epsilon {price}, written to the ledger before any secret edge was read.",
            f"{show(balance.spent)} of {LIMIT} spent, {show(left)} left: "
            f"{int(left / release.epsilon)} more at this price.",
            f"Drawn from {len(vault.propose(release.target)):,} candidates that public data alone decides.",
        ],
        can=[
            f"Odds about any edge, any node's edges or the whole graph move by a factor of at most {factor}.",
            f"The best possible attack beats a coin by at most {advantage:.3f} (true minus false positives); "
            f"its AUC is at most {auc:.3f}.",
        ],
        cannot=[
            "Beyond those odds, nothing about the secret edges. In particular, the release does not tell:",
            "whether a pair it names is an edge: deleting an absent edge is allowed and changes nothing;",
            "whether the change flips the decision, what the model decided, or how close the call was;",
            "more when asked again: every answer is paid for, and the limit ends it.",
        ],
        curtain=_curtain_words(curtain, price),
    )


def _sure(release: Release) -> str:
    """The public confidence, in a sentence."""
    return f"It flips the decision with probability {release.confidence or 0:.2f}, judged from public data alone."


def _mechanism(context: PublicContext, release: Release) -> Mechanism:
    """What this release was drawn by."""
    return METHOD.prepare(context, METHOD.candidates.propose(context, release.target), release.epsilon).mechanism


def behind_the_curtain(graph: PrivateGraph, context: PublicContext, release: Release) -> dict[str, Any]:
    """What only the owner could compute, and the honest zero: the best guess from public data alone."""
    candidates = METHOD.candidates.propose(context, release.target)
    outcomes = evaluate(graph, context, candidates, Allowance(METHOD.evaluation_seconds))
    guess, confidence = public_guess(context, candidates, METHOD)
    flips = outcomes.flips()
    mechanism = METHOD.prepare(context, candidates, release.epsilon).mechanism
    probabilities = mechanism.probabilities(METHOD.utility.score(outcomes), release.epsilon)
    return {
        "release_flips": bool(flips[list(candidates).index(release.intervention)]),
        "chance": float(probabilities @ flips),
        "guess": in_words(context.named(candidates[guess])),
        "guess_confidence": confidence,
        "guess_flips": bool(flips[guess]),
        "ceiling": bool(flips.any()),
    }


def honest_rates(data: Dataset, graph: PrivateGraph, context: PublicContext, epsilon: Fraction) -> dict[str, float]:
    """Over some test papers: how many the free guess flips, how many a release, and how many can be flipped at all."""
    rates = []
    for target in data.test[:: max(len(data.test) // PAPERS, 1)].tolist():
        candidates = METHOD.candidates.propose(context, target)
        outcomes = evaluate(graph, context, candidates, Allowance(METHOD.evaluation_seconds))
        flips, mechanism = outcomes.flips(), METHOD.prepare(context, candidates, epsilon).mechanism
        released = float(mechanism.probabilities(METHOD.utility.score(outcomes), epsilon) @ flips)
        guess = public_guess(context, candidates, METHOD).position
        rates.append((float(flips[guess]), released, float(flips.any())))
    guessed, released, possible = np.mean(rates, axis=0)
    return {"papers": len(rates), "guess": guessed, "release": released, "ceiling": possible}


def _curtain_words(curtain: dict[str, Any], price: str) -> list[str]:
    possible = "some candidate flips" if curtain["ceiling"] else "no candidate flips"
    verb = "flips" if curtain["release_flips"] else "does not flip"
    zero, rates = "flips" if curtain["guess_flips"] else "does not flip", curtain["rates"]
    return [
        "We can look only because these citations are public after all; an analyst never sees this part.",
        f"This release {verb} the decision; a release at epsilon {price} does so with probability "
        f"{curtain['chance']:.3f} for this paper ({possible}).",
        "The honest zero: the best guess from public data alone, at epsilon 0, is: "
        f"{' and '.join(curtain['guess'])}. It {zero} the decision; its confidence was "
        f"{curtain['guess_confidence']:.2f}.",
        f"The honest rate, over {rates['papers']} test papers: the free guess flips {rates['guess']:.1%}, a release at "
        f"epsilon {price} {rates['release']:.1%} on average, and {rates['ceiling']:.1%} can be flipped at all. The "
        "demo's own paper was chosen because paying helps there; for most papers it adds little at this price.",
    ]


def _tell(story: Story, html: Path, certificate: Path) -> None:
    say(story.title)
    say(story.lead)
    say()
    say(story.warning)
    for heading, lines in (
        ("Released", story.released),
        ("Cost", story.cost),
        ("An outsider can conclude", story.can),
        ("An outsider cannot conclude", story.cannot),
        ("Behind the curtain", story.curtain),
    ):
        say(f"\n{heading}")
        for line in lines:
            say(f"  - {line}")
    say(f"\nPicture: {html}\nCertificate: {certificate}")
