"""`privcfs demo`: one release on embedded data, told in words and as a page."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcfs.cli.output import emit, odds, say
from privcfs.cli.page import Story, page
from privcfs.embedded import load_dataset
from privcfs.embedded.loan import GRANTED, load_bank
from privcfs.errors import BudgetExhausted, InputError, SettingsError
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import GUIDED, GUIDED_RECOURSE, Method
from privcfs.gate.public_guess import public_guess
from privcfs.gate.vault import Vault
from privcfs.private.allowance import Allowance
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.advice import Advice
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import show
from privcfs.public.release import Release
from privcfs.public.words import in_words, share_in_words, to_person

LIMIT = "10"
SOME = 60  # nodes over which the honest rate is told
DRAWN = (
    "SIMULATION. {secret} play the secret; the public snapshot is half of them, drawn for this demo, so it protects "
    "nobody. Yours must have been public before, and independently of, the private edges: no program can check that "
    "for you."
)


@dataclass(frozen=True, slots=True)
class Case:
    """What a demo is about.

    Attributes:
        name: Of its ledger.
        noun: What a node is.
        title: The question that is answered about one of them, with a place for its name.
        about: What the graph is.
        secret: What its edges are.
        shown_here: Why we may look behind the curtain.
        target: Its number; one for which the free guess fails and a release often does not.
        context: Everything public.
        graph: The edges that play the secret.
        method: The method.
        test: The nodes over which rates are told.
        personal: Whether people ask about themselves here, and know their own edges.
    """

    name: str
    noun: str
    title: str
    about: str
    secret: str
    shown_here: str
    target: int
    context: PublicContext
    graph: PrivateGraph
    method: Method
    test: NDArray[np.int64]
    personal: bool = False


def papers(name: str) -> Case:
    """Papers of Cora or CiteSeer."""
    data = load_dataset(name)
    return Case(
        name,
        noun="paper",
        title="What small change would flip the decision on paper {}?",
        about=f"{data.name.capitalize()}: {len(data.labels):,} papers",
        secret="citations",
        shown_here="these citations are public after all",
        target={"cora": 2701, "citeseer": 2515}[name],
        context=data.context(),
        graph=data.private_graph(),
        method=GUIDED,
        test=data.test,
    )


def loans() -> Case:
    """Clients of a made-up bank whose loan is refused."""
    bank = load_bank()
    context = bank.context()
    decided = context.model.logits(context.features, bank.snapshot).argmax(axis=1)
    return Case(
        "loan",
        noun="client",
        title="What could {} change so that her loan is granted?",
        about=f"A bank that this package made up (no person is behind any row): {len(bank.names):,} clients",
        secret="links between clients",
        shown_here="this bank is made up",
        target=LOAN_TARGET,
        context=context,
        graph=bank.private_graph(),
        method=replace(
            GUIDED_RECOURSE,
            candidates=Recourse(pairs=False).restricted(Restriction(desired=GRANTED)),
            utility=GUIDED_RECOURSE.utility.towards(GRANTED),
        ),
        test=np.flatnonzero(decided != GRANTED),
        personal=True,
    )


LOAN_TARGET = 213
CASES: dict[str, Callable[[], Case]] = {
    "cora": lambda: papers("cora"),
    "citeseer": lambda: papers("citeseer"),
    "loan": loans,
}


def run_demo(name: str, target: str | None, epsilon: str, folder: Path, as_json: bool) -> None:
    """Release, then tell the story; everything is written into `folder`."""
    if name not in CASES:
        raise InputError(f"data set {name!r} is not embedded; choose {', '.join(CASES)}.")
    case = CASES[name]()
    context = case.context
    node = case.target if target is None else context.node(target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"folder {folder} cannot be made: {error.strerror}; choose another with --folder."
        ) from None
    vault = Vault(
        case.graph,
        context,
        ledger=f"sqlite:///{folder / f'{name}.db'}",
        limit=LIMIT,
        method=case.method,
        simulation=True,
        people_know_their_edges=case.personal,
    )
    try:
        release = vault.release(node, epsilon)
    except BudgetExhausted as error:
        raise BudgetExhausted(f"{error} That is the point of a limit; delete {folder} to start over.") from None
    advice = vault.advise(node) if case.personal else None
    curtain = behind_the_curtain(case, release, advice)
    curtain["rates"] = honest_rates(case, release.epsilon)
    story = _story(case, release, vault, curtain, advice)
    auc = _mechanism(case, release).auc(release.epsilon)
    html, certificate = folder / "release.html", folder / "release.json"
    try:
        html.write_text(page(story, release, context, vault.balance(), auc, advice), encoding="utf-8")
        certificate.write_text(json.dumps(release.to_dict(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{error.filename} cannot be written: {error.strerror}.") from None
    if as_json:
        told = {} if advice is None else {"advice": advice.to_dict()}
        emit({"release": release.to_dict(), **told, "budget": vault.balance().to_dict(), "page": str(html)})
    else:
        _tell(story, html, certificate)


def _story(case: Case, release: Release, vault: Vault, curtain: dict[str, Any], advice: Advice | None) -> Story:
    balance, context = vault.balance(), case.context
    left = balance.left or Fraction(0)
    price, factor = show(release.epsilon), odds(release.epsilon)
    advantage = _mechanism(case, release).advantage(release.epsilon)
    auc = _mechanism(case, release).auc(release.epsilon)
    return Story(
        title=case.title.format(release.target_name),
        lead=f"{case.about}, {len(context.snapshot.pairs):,} public pairs, and secret {case.secret}. One private "
        f"answer at epsilon {price}.",
        warning=DRAWN.format(secret=f"The {case.secret}"),
        advised=[] if advice is None else _advised(advice),
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
        curtain=_curtain_words(case, curtain, price),
    )


def _advised(advice: Advice) -> list[str]:
    """What the person is told, and from what."""
    found = []
    for number, one in enumerate(advice.changes):
        what = " and ".join(to_person(one.intervention, advice.target))
        found.append(f"{'Or: ' if number else ''}{what} ({share_in_words(one.confidence)}).")
    return [
        *found,
        "This is for her alone, and costs nothing: it is computed from public data and from her own links, which she "
        "knows. Other people's links were not read.",
    ]


def _sure(release: Release) -> str:
    """The public confidence, in a sentence."""
    return f"It flips the decision with probability {release.confidence or 0:.2f}, judged from public data alone."


def _mechanism(case: Case, release: Release) -> Mechanism:
    """What this release was drawn by."""
    candidates = case.method.candidates.propose(case.context, release.target)
    return case.method.prepare(case.context, candidates, release.epsilon).mechanism


def behind_the_curtain(case: Case, release: Release, advice: Advice | None = None) -> dict[str, Any]:
    """What only the owner could compute, and the honest zero: the best guess from public data alone."""
    context, method = case.context, case.method
    candidates = method.candidates.propose(context, release.target)
    outcomes = evaluate(case.graph, context, candidates, Allowance(method.evaluation_seconds))
    guess, confidence = public_guess(context, candidates, method)
    flips = method.utility.valid(outcomes)
    mechanism = method.prepare(context, candidates, release.epsilon).mechanism
    probabilities = mechanism.probabilities(method.utility.score(outcomes), release.epsilon)
    listed = list(candidates)
    return {
        "advice_flips": None if advice is None else bool(flips[listed.index(advice.intervention)]),
        "release_flips": bool(flips[listed.index(release.intervention)]),
        "chance": float(probabilities @ flips),
        "guess": in_words(context.named(candidates[guess])),
        "guess_confidence": confidence,
        "guess_flips": bool(flips[guess]),
        "ceiling": bool(flips.any()),
    }


def honest_rates(case: Case, epsilon: Fraction) -> dict[str, float]:
    """Over some nodes: how many the free guess flips, how many a release, and how many can be flipped at all."""
    context, method, rates = case.context, case.method, []
    for target in case.test[:: max(len(case.test) // SOME, 1)].tolist():
        candidates = method.candidates.propose(context, target)
        outcomes = evaluate(case.graph, context, candidates, Allowance(method.evaluation_seconds))
        flips, mechanism = method.utility.valid(outcomes), method.prepare(context, candidates, epsilon).mechanism
        released = float(mechanism.probabilities(method.utility.score(outcomes), epsilon) @ flips)
        guess = public_guess(context, candidates, method).position
        rates.append((float(flips[guess]), released, float(flips.any())))
    guessed, released, possible = np.mean(rates, axis=0)
    return {"nodes": len(rates), "guess": guessed, "release": released, "ceiling": possible}


def _curtain_words(case: Case, curtain: dict[str, Any], price: str) -> list[str]:
    possible = "some candidate flips" if curtain["ceiling"] else "no candidate flips"
    verb = "flips" if curtain["release_flips"] else "does not flip"
    zero, rates = "flips" if curtain["guess_flips"] else "does not flip", curtain["rates"]
    which = "test papers" if case.noun == "paper" else f"{case.noun}s whom the model refuses on the public snapshot"
    advised = curtain["advice_flips"]
    return [
        f"We can look only because {case.shown_here}; an analyst never sees this part.",
        *([] if advised is None else [f"The advice {'flips' if advised else 'does not flip'} the decision."]),
        f"This release {verb} the decision; a release at epsilon {price} does so with probability "
        f"{curtain['chance']:.3f} for this {case.noun} ({possible}).",
        "The honest zero: the best guess from public data alone, at epsilon 0, is: "
        f"{' and '.join(curtain['guess'])}. It {zero} the decision; its confidence was "
        f"{curtain['guess_confidence']:.2f}.",
        f"The honest rate, over {rates['nodes']} {which}: the free guess flips {rates['guess']:.1%}, a release at "
        f"epsilon {price} {rates['release']:.1%} on average, and {rates['ceiling']:.1%} can be flipped at all. The "
        f"demo's own {case.noun} was chosen because paying helps there; for most {case.noun}s it adds little at this "
        "price.",
    ]


def _tell(story: Story, html: Path, certificate: Path) -> None:
    say(story.title)
    say(story.lead)
    say()
    say(story.warning)
    for heading, lines in (
        *([("What she is told herself", story.advised)] if story.advised else []),
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
