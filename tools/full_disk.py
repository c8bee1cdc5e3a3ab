"""Asks for releases on a file system that fills up at random moments, and examines what was drawn.

python -m tools.full_disk             5,000 ids on each of two neighbouring graphs; writes docs/full-disk.md, 15 minutes
python -m tools.full_disk --ids 200 --write -   a short look, printed

Needs the right to mount a tmpfs (root on Linux).
"""

import argparse
import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from privcfs.errors import LedgerError
from privcfs.gate import storing, vault
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Claim, Request
from privcfs.gate.ledger.reserve import Reserve
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.method import Method
from privcfs.gate.questions import release
from privcfs.gate.questions.question import OWNER
from privcfs.gate.vault import Vault
from privcfs.public.context import PublicContext
from privcfs.public.release import Release
from privcfs_lab.audit.blackbox import CONFIDENCE, Bound, lower_bound
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF, HostileWorld
from tools import tuned_ids
from tools.page import put
from tools.small_disk import PAGE, SmallDisk, small_disk

CLAIM = "1"
LONG = 3000  # letters of some names
SIZE = 16 << 20  # bytes of a file system
TOGETHER = 500  # ids of one ledger; then a new one begins on a new file system
TELLING = (4, 5)  # pages: enough for a charge and a short answer, too few for a long one
MOST_COUNTED = 10  # failed attempts; more count as so many
MOST_TRIES = 20  # of one id; then the disk is emptied


@dataclass(slots=True)
class Side:
    """What happened on one graph."""

    events: list[Hashable] = field(default_factory=list)  # each id's answer and number of failed attempts
    draws: dict[str, list[str]] = field(default_factory=dict)
    unlike: int = 0  # ids whose stored answer is none of their draws
    failed: int = 0

    @property
    def drawn_again(self) -> int:
        """Ids with two different draws."""
        return sum(len(set(texts)) > 1 for texts in self.draws.values())


class Forgetful(storing.Storing):  # type: ignore[misc]
    """Version 0.1: whatever could not be stored is drawn again at the next attempt."""

    def _keep(self, answers: storing.Answers, claim: Claim) -> None:  # noqa: ARG002
        claim.give_back()


def impatient() -> None:
    """Makes this process fail at once where it would try for a while: whoever asks sees every failure."""
    storing.PATIENCE, storing.PAUSE = 0.0, 0.002


def forget() -> None:
    """Makes this process behave as version 0.1 did: no padding, no reserve, no memory of a draw."""
    impatient()
    setattr(vault, "Storing", Forgetful)  # noqa: B010
    setattr(release, "longest_addition", lambda *_: -(10**6))  # noqa: B010
    Reserve.keep = lambda *_: None  # type: ignore[method-assign]
    SqliteLedger.finish_all = super(SqliteLedger, SqliteLedger).finish_all  # type: ignore[method-assign]


def named(world: HostileWorld) -> PublicContext:
    """The same world with public names: short ones where a leaf pulls up, long ones where it pulls down."""
    lengths = [0] * world.up + [LONG] * world.down + [0] * (world.target + 1 - world.leaves)
    names = [f"{number}{'x' * length}" for number, length in enumerate(lengths)]
    given = world.context
    return PublicContext(given.features, given.snapshot.pairs, given.model, node_ids=names)


def ask(side: Side, disk: SmallDisk, missing: tuple[int, ...], ids: Sequence[int], rng: random.Random) -> None:
    """Every id until it is answered."""
    world, context = HALF_AGAINST_HALF, named(HALF_AGAINST_HALF)
    ledger = SqliteLedger(disk.folder / "budget.db", Limit.of("1000000"))
    opened = Vault(world.graph(*missing), context, ledger=ledger, method=Method(world.rule))
    for number in ids:
        name = f"{number}{'x' * rng.randrange(100)}"  # an analyst chooses how long a row is
        scene = still if rng.random() < 0.7 else storm
        with scene(disk, rng):
            answer, failed = until_answered(opened, name, world.target, disk)
        side.failed += failed.total()
        side.events.append((kind(answer), min(failed[True], MOST_COUNTED)))
        side.unlike += answer.to_json() not in side.draws[name]


def kind(answer: Release) -> str:
    """Answers by what the secret edge does to them: few kinds make a strong auditor."""
    deleted = answer.intervention.delete
    if not deleted:
        return "nothing"
    return "short" if min(deleted[0]) < HALF_AGAINST_HALF.up else "long"


def until_answered(opened: Vault, name: str, target: int, disk: SmallDisk) -> tuple[Release, Counter[bool]]:
    """The answer, and how many attempts failed before and after it was paid, which the balance shows to an analyst."""
    failed, paid = Counter[bool](), False
    while True:
        try:
            return opened.release(target, CLAIM, request_id=name), failed
        except LedgerError:
            with suppress(LedgerError):
                paid = paid or bool(opened.ledger.paid(OWNER, [name]))
            failed[paid] += 1
            if failed.total() > MOST_TRIES:
                disk.empty()


@contextmanager
def still(disk: SmallDisk, rng: random.Random) -> Iterator[None]:
    """A backup has just cut the write-ahead log, and a few pages are left on the disk for all attempts."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(disk.folder / "budget.db")) as backup:
        backup.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    disk.fill(leaving=PAGE * rng.choice([*TELLING, rng.randrange(4, 16)]))
    try:
        yield
    finally:
        disk.empty()


@contextmanager
def storm(disk: SmallDisk, rng: random.Random) -> Iterator[None]:
    """Another program fills the disk, takes whatever is given back, and empties it, every few milliseconds."""
    over = threading.Event()

    def fill() -> None:
        while not over.is_set():
            end = time.monotonic() + rng.random() / 50
            while time.monotonic() < end and not over.is_set():
                disk.fill()
                time.sleep(0.001)
            disk.empty()
            time.sleep(rng.random() / 200)

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        yield
    finally:
        over.set()
        filler.join()
        disk.empty()


def both(ids: int, twin: bool) -> tuple[Bound, list[Side]]:
    """Two graphs that differ in one edge, each in a process and on a file system of its own."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        tasks = [(missing, ids, seed, twin) for seed, missing in enumerate([(), (HALF_AGAINST_HALF.secret,)])]
        sides = pool.starmap(_side, tasks)
    return lower_bound(sides[0].events, sides[1].events), sides


def _side(missing: tuple[int, ...], ids: int, seed: int, twin: bool) -> Side:
    (forget if twin else impatient)()
    side, add = Side(), storing.Answers.add

    def noted(self: storing.Answers, request: Request, text: str) -> None:
        side.draws.setdefault(request.request_id, []).append(text)
        add(self, request, text)

    storing.Answers.add = noted  # type: ignore[method-assign]
    for start in range(0, ids, TOGETHER):
        with small_disk(SIZE) as disk:
            ask(side, disk, missing, range(start, min(start + TOGETHER, ids)), random.Random(1000 * seed + start))
    return side


ABOUT = """# Releases on a disk that fills up

Written by `make full-disk`. Two graphs that differ in one edge, in a world built to be hostile: that edge decides
whether ten candidates with short public names flip the decision, or ten with names of {long:,} letters. Each graph has
its ledgers ({together} ids each) on a real file system of {size} MB. For three ids in ten another program fills that up
and empties it again every few milliseconds; for the others a random small number of pages is left until {most} attempts
have failed. {ids:,} releases at epsilon {claim} are asked for on each side, one id after another, each until it is
answered; the analyst chooses the length of the ids. The auditor of the laboratory sees which kind of answer came
*together with the number of failed attempts* after it was paid, and gives a lower bound on epsilon ({confidence:.0%}
confidence; the kinds alone differ by 0.5). The last row is the broken twin: it stores answers at their own length,
keeps no reserve, and draws again what could not be stored, as version 0.1 did. It is convicted by the ids that have two
different draws. Most of its failed attempts have other causes, so that this auditor's bound alone would not convict it;
the second table's does.

| | ids | failed attempts | ids with two different draws | answers that were not drawn | epsilon is at least | claimed |
|---|---|---|---|---|---|---|
"""

TUNED = """
## Ids that are tuned

An attack on what is stored at its own length (`tools/tuned_ids.py`). The analyst knows how the ledger's file is laid
out, and looks for a length of the request id at which a short answer takes fewer pages than a long one. With just the
pages for a short answer left on the disk, a version that draws again what it could not store fails as often as it draws
a long answer; the number of these failures tells about the secret edge, without a limit as ids are added. Each id is
asked for in a fresh copy of a small ledger, {ids:,} on each side; nodes have numbers of one to five digits, and no
names. Where no length of an id separates short answers from long ones, ids at which a page is added are asked for with
every number of pages left. Version 0.1 is the code of commit {before}.

| | ids | short and long answers separated | failed attempts | epsilon is at least | claimed |
|---|---|---|---|---|---|
"""
BEFORE = "2928294"


def tuned_row(name: str, bound: Bound, separated: bool, sides: Sequence[tuned_ids.Side]) -> str:
    """A line of the second table."""
    ids, failed = sum(len(side.events) for side in sides), sum(side.failed for side in sides)
    return f"| {name} | {ids:,} | {'yes' if separated else 'no'} | {failed:,} | {bound.epsilon:.2f} | {CLAIM} |"


def attack_before(ids: int) -> tuple[Bound, bool, list[tuned_ids.Side]]:
    """The attack on version 0.1, whose sources are taken from this repository's history."""
    with tempfile.TemporaryDirectory() as folder:
        sources = subprocess.run(["git", "archive", BEFORE, "src"], capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", folder], input=sources, check=True)
        command = [sys.executable, "-m", "tools.tuned_ids", "--ids", str(ids)]
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src"}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
    found = json.loads(done.stdout)
    return Bound(**found["bound"]), found["tuned"], [tuned_ids.Side(**side) for side in found["sides"]]


def row(name: str, bound: Bound, sides: list[Side]) -> str:
    """A line of the page."""
    ids, failed = sum(len(side.events) for side in sides), sum(side.failed for side in sides)
    again, unlike = sum(side.drawn_again for side in sides), sum(side.unlike for side in sides)
    return f"| {name} | {ids:,} | {failed:,} | {again:,} | {unlike} | {bound.epsilon:.2f} | {CLAIM} |"


def main() -> None:
    """One page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=5_000, help="on each side")
    parser.add_argument("--write", default="docs/full-disk.md", help="the page, or - to print it")
    given = parser.parse_args()
    text = ABOUT.format(
        long=LONG,
        together=TOGETHER,
        most=MOST_TRIES,
        size=SIZE >> 20,
        ids=given.ids,
        claim=CLAIM,
        confidence=CONFIDENCE,
    )
    text += row("this version", *both(given.ids, twin=False)) + "\n"
    text += row("broken twin", *both(given.ids, twin=True)) + "\n"
    text += TUNED.format(ids=given.ids, before=BEFORE)
    text += tuned_row("this version", *tuned_ids.attack(given.ids, impatient)) + "\n"
    text += tuned_row("broken twin", *tuned_ids.attack(given.ids, forget)) + "\n"
    text += tuned_row("version 0.1", *attack_before(given.ids)) + "\n"
    put(text, given.write)


if __name__ == "__main__":
    main()
