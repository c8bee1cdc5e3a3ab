"""A job in parts: each is paid as a whole, and whoever repeats one gets what is already paid for nothing.

What passes between workers and driver are public names of targets, request ids, finished releases and public guesses. A
worker opens the vault from its own files.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple, final

from privcfs.errors import BudgetExhausted, InputError, PrivcfsError, error_named
from privcfs.gate.vault import Vault
from privcfs.public.release import Release
from privcfs.public.words import in_words

TOGETHER = 16  # targets of a part


@final
class Job(NamedTuple):
    """What every worker has to know: how the vault is opened, what its digest must be, the price, who pays."""

    open: Callable[[], Vault]
    digest: str
    epsilon: Fraction
    analyst: str


@final
class Part(NamedTuple):
    """Some targets by their public names, and the request ids of their releases."""

    targets: Sequence[str]
    request_ids: Sequence[str]


@final
class Answer(NamedTuple):
    """One target: what is released, what a guess from public data alone would say in its place, the certificate."""

    target: str
    intervention: str
    guess: str
    guess_confidence: float | None
    release: str


@final
class Done(NamedTuple):
    """What came of a part: answers in order and, where the job is refused, the class and words of the refusal.

    `spent` has the targets that got no answer because their own accounts do not reach; that refuses nobody else.
    """

    answers: Sequence[Answer]
    error: str = ""
    message: str = ""
    spent: Sequence[str] = ()

    def refusal(self) -> PrivcfsError | None:
        """The error to raise, if there is one."""
        return error_named(self.error)(self.message) if self.error else None


def parts(name: str, targets: Sequence[str]) -> Iterator[Part]:
    """The targets of a job; the job's name and the target make the request id."""
    for start in range(0, len(targets), TOGETHER):
        some = targets[start : start + TOGETHER]
        yield Part(some, [request_id(name, target) for target in some])


def request_id(name: str, target: str) -> str:
    """The request id of one target. No suggestion has such an id: ids of suggestions end in a slash and a number."""
    return f"{name}:{target}"


def release_here(vault: Vault, job: Job, todo: Iterable[Part]) -> Generator[Done, None, None]:
    """What came of each part, in order, until one is refused."""
    for part in todo:
        yield (done := release_part(vault, job, part))
        if done.error:
            return


def release_part(vault: Vault, job: Job, part: Part) -> Done:
    """A part is paid as a whole; where that does not fit, target by target until the budget ends."""
    asked = list(zip(*part, strict=True))
    known = _kept(vault, job, *asked[0]) is not None  # what was paid together is kept together
    found = {name: _kept(vault, job, target, name) if known else None for target, name in asked}
    left = [(target, job.epsilon, name) for target, name in asked if found[name] is None]
    error_class, words = "", ""
    spent: list[str] = []
    try:
        try:
            found |= {one.request_id: one for one in vault.release_all(left, analyst=job.analyst)}
        except BudgetExhausted:
            for target, _, name in left:
                found[name] = _release(vault, job, target, name)
                spent += [target] if found[name] is None else []
    except PrivcfsError as error:
        error_class, words = type(error).__name__, str(error)
        found |= {name: _kept(vault, job, target, name) for target, name in asked if found[name] is None}
    named = [(target, found[name]) for target, name in asked]
    answers = [_answer(vault, target, release) for target, release in named if release is not None]
    return Done(answers, error_class, words, spent)


def _release(vault: Vault, job: Job, target: str, name: str) -> Release | None:
    """One release; None where the account of its node does not reach, which says nothing about the others."""
    try:
        return vault.release(target, job.epsilon, analyst=job.analyst, request_id=name)
    except BudgetExhausted:
        charged = vault.charged_at([target])
        if not charged or vault.ledger.left_for(job.analyst, nodes=charged)[1] != "node":
            raise
        return None


def _answer(vault: Vault, target: str, release: Release) -> Answer:
    """A release beside its public guess, both in words with the public names of nodes."""
    guess = vault.guess(target)
    released, guessed = (
        "; ".join(in_words(one)) for one in (vault.context.named(release.intervention), guess.intervention)
    )
    return Answer(target, released, guessed, guess.confidence, release.to_json())


def release_far(job: Job, part: Part) -> Done:
    """Answers parts in a worker. If loading fails there, its error text stays there: it could quote a private line."""
    try:
        vault = job.open()
    except Exception as error:
        return Done([], "SettingsError", f"a worker cannot open the vault ({type(error).__name__}); try it there.")
    if vault.digest != job.digest:
        return Done([], "SettingsError", "a worker's vault file or public files differ from those here; share them.")
    try:
        return release_part(vault, job, part)
    except Exception as error:
        return Done([], "PrivcfsError", f"a worker failed ({type(error).__name__}).")


def _kept(vault: Vault, job: Job, target: str, name: str) -> Release | None:
    """The finished release of this very question, read back without preparing anything."""
    text = vault.ledger.released(job.analyst, name)
    try:
        release = None if text is None else Release.from_json(text)
    except InputError:  # another kind of answer: the vault will refuse the request id
        return None
    asked = vault.context.node(target), job.epsilon, vault.digest
    same = release is not None and asked == (release.target, release.epsilon, release.context_digest)
    return release if same else None
