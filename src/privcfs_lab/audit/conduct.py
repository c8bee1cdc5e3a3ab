"""How a vault behaves around its draws: what it pays and when, what it repeats, and what it says beside the draw."""

import io
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from tempfile import TemporaryFile
from typing import Any, final

from privcfs.errors import BudgetExhausted, PrivcfsError, RequestConflict
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.utilities.utility import Scores
from privcfs.public.confidence import said
from privcfs.public.release import Release
from privcfs_lab.audit.hostile import ONE_AGAINST_MANY
from privcfs_lab.audit.twins import Wrapped

LIMIT = Limit.of("5", "3")
ANNA, BORIS = "Anna", "Boris"
RETRIES = 12
RESTARTS = 20
Request = Callable[[Vault], object]


@final
@dataclass(frozen=True, slots=True)
class Watched(Wrapped):
    """Reports each time the private graph has been read, and can die there."""

    on_read: Callable[[], None] = field(repr=False)

    def score(self, outcomes: Outcomes) -> Scores:
        self.on_read()
        return self.honest.score(outcomes)


@final
class Crash(BaseException):
    """The process ends while the private graph is read."""


def replay(open_ledger: Callable[[Limit], Ledger]) -> list[str]:
    """Asks, asks again, crashes, overspends and recovers through a vault; returns every rule that was broken."""
    ledger, world = open_ledger(LIMIT), ONE_AGAINST_MANY
    reads: list[Fraction] = []
    dying = [False]

    def on_read() -> None:
        reads.append(ledger.balance().spent)
        if dying[0]:
            raise Crash

    vault = Vault(world.graph(), world.context, ledger=ledger, method=Method(world.rule, Watched(on_read)))
    broken: list[str] = []

    def expect(rule: str, holds: bool) -> None:
        if not holds:
            broken.append(rule)

    def refused(error: type[PrivcfsError], price: str, request_id: str, analyst: str = ANNA) -> bool:
        before = len(reads), vault.balance()
        try:
            vault.release(world.target, price, request_id=request_id, analyst=analyst)
        except error:
            return (len(reads), vault.balance()) == before
        return False

    ask = partial(vault.release, world.target, "1", analyst=ANNA)
    reads.clear()  # the rehearsal reads the public snapshot
    try:
        answer = ask(request_id="one")
        expect("the price is paid when the graph is read", reads == [1])
        same = all(ask(request_id="one") == answer for _ in range(RETRIES))
        expect("a retry is answered from the books", same and len(reads) == 1)
        expect("a retry costs nothing", vault.balance().spent == 1)
        expect("one id is for one question", refused(RequestConflict, "0.5", "one"))
        dying[0] = True
        with suppress(Crash):
            ask(request_id="two")
        dying[0] = False
        expect("a crash gives nothing back", vault.balance().spent == 2)
        expect("an unfinished price counts against the analyst's limit", refused(BudgetExhausted, "1.5", "three"))
        vault.release(world.target, "2", request_id="one", analyst=BORIS)
        expect("ids belong to their analyst", vault.balance(BORIS).spent == 2)
        expect("an unfinished price counts against the total limit", refused(BudgetExhausted, "1.5", "two", BORIS))
        ask(request_id="two")
        expect("recovery from a crash costs nothing more", vault.balance().spent == 4)
        ask(request_id="three")
        expect("the analyst's limit is kept", refused(BudgetExhausted, "0.01", "four"))
        expect("the sum is exact", vault.balance().spent == 5)
    except PrivcfsError as error:
        broken.append(f"every allowed request is answered ({type(error).__name__})")
    return broken


def repeats(restart: Callable[[], Vault], target: int) -> bool:
    """Whether two fresh vaults on the same graph answer the same twenty questions alike: a seed shows."""
    runs = [[vault.release(target, "1").intervention for _ in range(RESTARTS)] for vault in (restart(), restart())]
    return runs[0] == runs[1]


OPENING, RELEASE = "opening the vault", "a release, without its draw"


def requests(target: int) -> dict[str, Request]:
    """What anyone may ask; every one of them has an answer that must not depend on an edge."""
    return {
        "the free list": lambda vault: vault.propose(target),
        "the digest": lambda vault: vault.digest,
        RELEASE: lambda vault: _without_its_draw(vault, target),
        "the same id for something else": lambda vault: vault.release(target, "2", request_id="r"),
        "an unknown node": lambda vault: vault.release(10**6, "1"),
        "an unknown name": lambda vault: vault.release("nobody", "1"),
        "no price": lambda vault: vault.release(target, "0"),
        "a price that is no number": lambda vault: vault.release(target, "nan"),
        "a price above all limits": lambda vault: vault.release(target, "64"),
        "no analyst": lambda vault: vault.release(target, "1", analyst=""),
        "the balance": lambda vault: vault.balance(),
    }


def _without_its_draw(vault: Vault, target: int) -> Release:
    """A release with the empty set in the place of its draw, and without a confidence that follows from the draw."""
    release, candidates = vault.release(target, "1", request_id="r"), vault.propose(target)
    confidences = vault.method.prepare(vault.context, candidates, release.epsilon).confidences
    public = confidences[list(candidates).index(release.intervention)] if confidences else None
    follows = said(public) == said(release.confidence)
    return replace(release, intervention=candidates[0], confidence=None if follows else release.confidence)


def differences(first: Callable[[], Vault], second: Callable[[], Vault], target: int) -> list[str]:
    """What an analyst sees of two private graphs beside the draw: every request that is answered differently."""
    one, other = _answers(first, target), _answers(second, target)
    return [name for name in one if one[name] != other[name]]


def _answers(open_vault: Callable[[], Vault], target: int) -> dict[str, str]:
    opened: list[Vault] = []
    answers = {OPENING: seen(lambda: opened.append(open_vault()))}
    for name, request in requests(target).items():
        answers[name] = seen(partial(request, opened[0])) if opened else ""
    return answers


def seen(request: Callable[[], object]) -> str:
    """The answer or the error, and everything that is said meanwhile."""
    with _overheard() as noise:
        try:
            answer = repr(request())
        except PrivcfsError as error:
            answer = f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = f"unexpected {type(error).__name__}: {error}"
    return answer + "".join(noise)


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Everything that is printed, logged or warned of meanwhile, by C code and by loggers that tell nobody too."""
    noise: list[str] = []
    made, root = logging.getLogRecordFactory(), logging.getLogger()
    level = root.level

    def heard(*arguments: Any, **more: Any) -> logging.LogRecord:
        record = made(*arguments, **more)
        noise.append(record.getMessage())
        return record

    logging.setLogRecordFactory(heard)
    root.setLevel(logging.DEBUG)
    try:
        with _descriptors(noise), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield noise
    finally:
        logging.setLogRecordFactory(made)
        root.setLevel(level)
    noise += [str(warning.message) for warning in caught]


@contextmanager
def _descriptors(noise: list[str]) -> Iterator[None]:
    """What reaches standard output and standard error by whatever way."""
    out = io.StringIO()
    with TemporaryFile() as file:
        saved = {number: os.dup(number) for number in (1, 2)}
        try:
            for number in saved:
                os.dup2(file.fileno(), number)
            with redirect_stdout(out), redirect_stderr(out):
                yield
        finally:
            for number, copy in saved.items():
                os.dup2(copy, number)
                os.close(copy)
        file.seek(0)
        noise += [out.getvalue(), file.read().decode(errors="replace")]
