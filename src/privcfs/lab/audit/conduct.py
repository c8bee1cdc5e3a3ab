"""How a vault behaves around its draws: what it pays and when, what it repeats, and what it says beside the draw."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

from privcfs.errors import BudgetExhausted, PrivcfsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.vault import Method, Vault
from privcfs.lab.audit.hostile import ONE_AGAINST_MANY, TARGET
from privcfs.private.outcomes.outcomes import Outcomes
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.grid import Grid

LIMIT = Limit.of("4")
RETRIES = 12
RESTARTS = 20
Request = Callable[[Vault], object]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Watched(Utility):
    """An honest utility that reports each time the private graph has been read, and can die there."""

    on_read: Callable[[], None]
    honest: Gated = field(default_factory=Gated)

    def __repr__(self) -> str:
        return "Watched()"

    def grid(self, caps: Caps) -> Grid:
        return self.honest.grid(caps)

    def score(self, outcomes: Outcomes) -> Scores:
        self.on_read()
        return self.honest.score(outcomes)

    def failed(self, candidates: Candidates) -> Scores:
        return self.honest.failed(candidates)


@final
class Crash(BaseException):
    """The process ends while the private graph is read."""


def replay(open_ledger: Callable[[Limit], Ledger]) -> list[str]:
    """Asks, asks again, crashes, recovers and overspends through a vault; returns every rule that was broken."""
    ledger, world = open_ledger(LIMIT), ONE_AGAINST_MANY
    reads: list[Fraction] = []
    dying = [False]

    def on_read() -> None:
        reads.append(ledger.balance().spent)
        if dying[0]:
            raise Crash

    vault = Vault(world.graph(), world.context, ledger=ledger, method=Method(world.rule, Watched(on_read)))
    reads.clear()  # the rehearsal reads the public snapshot
    broken = []
    answer = vault.release(TARGET, "1", request_id="one")
    if reads != [1]:
        broken.append("the price was not paid when the graph was read")
    if any(vault.release(TARGET, "1", request_id="one") != answer for _ in range(RETRIES)) or len(reads) != 1:
        broken.append("a retry was drawn again")
    if vault.balance().spent != 1:
        broken.append("a retry changed what is spent")
    dying[0] = True
    with suppress(Crash):
        vault.release(TARGET, "1", request_id="two")
    dying[0] = False
    if vault.balance().spent != 2:
        broken.append("a crash gave the price back")
    vault.release(TARGET, "1", request_id="two")
    if vault.balance().spent != 2:
        broken.append("recovery from a crash did not cost exactly one price")
    vault.release(TARGET, "2", request_id="three")
    count = len(reads)
    try:
        vault.release(TARGET, "0.5", request_id="four")
        broken.append("the limit was passed")
    except BudgetExhausted:
        pass
    if len(reads) != count or vault.balance().spent != LIMIT.total:
        broken.append("a refusal read the graph or changed what is spent")
    return broken


def repeats(restart: Callable[[], Vault]) -> bool:
    """Whether two fresh vaults on the same graph answer the same twenty questions alike: a seed shows."""
    runs = [[vault.release(TARGET, "1").intervention for _ in range(RESTARTS)] for vault in (restart(), restart())]
    return runs[0] == runs[1]


REQUESTS: dict[str, Request] = {
    "the free list": lambda vault: vault.propose(TARGET),
    "the digest": lambda vault: vault.digest,
    "a release, without its draw": lambda vault: replace(
        vault.release(TARGET, "1", request_id="r"), intervention=next(iter(vault.propose(TARGET)))
    ),
    "the same id for something else": lambda vault: vault.release(TARGET, "2", request_id="r"),
    "an unknown node": lambda vault: vault.release(10**6, "1"),
    "an unknown name": lambda vault: vault.release("nobody", "1"),
    "no price": lambda vault: vault.release(TARGET, "0"),
    "a price that is no number": lambda vault: vault.release(TARGET, "nan"),
    "a price above all limits": lambda vault: vault.release(TARGET, "64"),
    "no analyst": lambda vault: vault.release(TARGET, "1", analyst=""),
    "the balance": lambda vault: vault.balance(),
}


def differences(first: Callable[[], Vault], second: Callable[[], Vault]) -> list[str]:
    """What an analyst sees of two private graphs beside the draw: every request that is answered differently."""
    one, other = _answers(first), _answers(second)
    return [name for name in one if one[name] != other.get(name)]


def _answers(open_vault: Callable[[], Vault]) -> dict[str, str]:
    opened: list[Vault] = []
    answers = {"opening the vault": _seen(lambda: opened.append(open_vault()))}
    for name, request in REQUESTS.items():
        answers[name] = _seen(lambda request=request: request(opened[0])) if opened else ""  # type: ignore[misc]
    return answers


def _seen(request: Callable[[], object]) -> str:
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
    """Everything that is printed, logged or warned of meanwhile."""
    noise: list[str] = []
    out, log = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield noise
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    noise += [out.getvalue(), log.getvalue(), *(str(warning.message) for warning in caught)]
