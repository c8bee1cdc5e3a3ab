"""The attack on answers that are stored at their own length: ids whose long answers miss the last page of a full disk.

python -m tools.tuned_ids --ids 1500   the two graphs' lower bound on epsilon, as one line of JSON

An analyst knows how a ledger's file is laid out, so that the length of a request id can be chosen such that a short
answer takes one page less than a long one. With just that much space left on the disk, a version that draws again what
it could not store answers with short answers alone, and the number of failed attempts tells about the secret edge.
Only interfaces of version 0.1 are used, so that the attack also runs against that version: with its sources first on
PYTHONPATH. Needs the right to mount a tmpfs (root on Linux).
"""

import argparse
import json
import multiprocessing
import shutil
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privcfs.errors import LedgerError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext
from privcfs_lab.audit.blackbox import Bound, lower_bound
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF as WORLD
from tools.small_disk import PAGE, SmallDisk, small_disk

CLAIM = "1"
SIZE = 8 << 20  # bytes of the file system
FAR = 10_000  # where the numbers of leaves that pull down begin: their deletion is a longer answer
TEMPLATES = 12  # ledgers to begin with, of different sizes
EARLIER = 2  # requests that stand in each of them
LONGEST_ID = 199
TRIES_TO_TUNE = 12  # releases for one length of an id
MOST_FAILED = 10  # paid attempts of one id; then the disk is emptied


class Event(NamedTuple):
    """What an analyst saw of one id."""

    kind: str  # of the answer
    failed_before_payment: int
    failed_after_payment: int


@dataclass(slots=True)
class Side:
    """What an analyst saw on one graph."""

    events: list[Event] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Attempts."""
        return sum(before + after for _, before, after in self.events)


@dataclass(frozen=True, slots=True)
class Tuning:
    """How an id is asked: the ledger before it, its own length, and the pages that are left on the disk."""

    template: int
    length: int
    pages: int
    separates: bool = False  # short answers fit and long ones do not


def renumbered() -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """New numbers of the world's nodes: those that pull down get five digits, every other node keeps its own."""
    numbers = np.arange(WORLD.target + 1)
    numbers[WORLD.up : WORLD.leaves] += FAR
    return numbers


def context() -> PublicContext:
    """The hostile world, padded with nodes that nothing is known of."""
    given, numbers = WORLD.context, renumbered()
    features = np.zeros((numbers.max() + 1, given.features.shape[1]), np.float32)
    features[numbers] = given.features.toarray()
    return PublicContext(features, numbers[given.snapshot.pairs], given.model)


def graph(*missing: int) -> PrivateGraph:
    """One of the two neighbouring graphs."""
    numbers = renumbered()
    return PrivateGraph.from_edges(numbers[WORLD.pairs(*missing)], number_of_nodes=int(numbers.max()) + 1)


class Attacker:
    """Asks one graph, each id in a fresh copy of the same small ledger: whatever is tuned stays tuned."""

    def __init__(self, missing: tuple[int, ...], disk: SmallDisk, templates: Path) -> None:
        """`templates` holds the ledgers to begin with."""
        self._graph, self._context, self._disk, self._templates = graph(*missing), context(), disk, templates

    @contextmanager
    def opened(self, template: int) -> Iterator[tuple[Vault, SqliteLedger, Path]]:
        """A vault over a fresh ledger, which another process has open too, as a second worker of a service would."""
        folder = self._disk.folder / "ledger"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._templates / str(template), folder)
        path = folder / "budget.db"
        ledger = SqliteLedger(path)
        with closing(sqlite3.connect(path)) as worker:
            worker.execute("SELECT count(*) FROM entries").fetchone()
            yield Vault(self._graph, self._context, ledger=ledger, method=Method(WORLD.rule)), ledger, path
            ledger.close()

    def pages(self, template: int, length: int) -> tuple[str, int]:
        """The kind of one answer, and how many pages of log it took, on a disk with room for everything."""
        with self.opened(template) as (vault, _, path):
            answer = vault.release(WORLD.target, CLAIM, request_id="x" * length)
            log = path.with_name(path.name + "-wal").stat().st_size
        return kind(answer.intervention.delete), -(-log // PAGE)

    def tune(self) -> list[Tuning]:
        """An id for which short answers need fewer pages than long ones; where there is none, whatever comes near."""
        near: list[Tuning] = []
        for template in range(TEMPLATES):
            for length in self._where_a_page_is_added(template):
                by_kind: dict[str, set[int]] = defaultdict(set)
                for _ in range(TRIES_TO_TUNE):
                    name, pages = self.pages(template, length)
                    by_kind[name].add(pages)
                if by_kind["short"] and by_kind["long"] and max(by_kind["short"]) < min(by_kind["long"]):
                    return [Tuning(template, length, max(by_kind["short"]), separates=True)]
                near += [Tuning(template, length, pages) for pages in range(max(set().union(*by_kind.values())) + 2)]
        return near

    def _where_a_page_is_added(self, template: int) -> range:
        """Lengths of an id around the one from which on its rows need another page; found by bisection."""
        low, high = 1, LONGEST_ID
        few = self.pages(template, low)[1]
        if self.pages(template, high)[1] == few:
            return range(0)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.pages(template, middle)[1] == few else (low, middle)
        return range(max(low - 1, 1), min(high + 2, LONGEST_ID))

    def ask(self, tuning: Tuning, side: Side) -> None:
        """One id until it is answered, with the tuned number of pages left on the disk."""
        failed = Counter[bool]()
        with self.opened(tuning.template) as (vault, ledger, _):
            before = ledger.balance().spent
            self._disk.fill(leaving=tuning.pages * PAGE)
            try:
                while True:
                    try:
                        answer = vault.release(WORLD.target, CLAIM, request_id="x" * tuning.length)
                        break
                    except LedgerError:
                        paid = ledger.balance().spent > before
                        failed[paid] += 1
                        if not paid or failed[paid] >= MOST_FAILED:
                            self._disk.empty()
            finally:
                self._disk.empty()
        side.events.append(Event(kind(answer.intervention.delete), failed[False], failed[True]))


def kind(deleted: object) -> str:
    """Answers by what the secret edge does to them: few kinds make a strong auditor."""
    pairs = list(deleted)  # type: ignore[call-overload]
    if not pairs:
        return "nothing"
    return "short" if min(pairs[0]) < WORLD.up else "long"


def write_templates(folder: Path) -> None:
    """Small ledgers with a few earlier requests, whose ids are longer in each."""
    for template in range(TEMPLATES):
        place = folder / str(template)
        place.mkdir()
        ledger = SqliteLedger(place / "budget.db", Limit.of("1000000"), graph_id="attacked")
        vault = Vault(graph(), context(), ledger=ledger, method=Method(WORLD.rule))
        for number in range(EARLIER):
            vault.release(
                WORLD.target, CLAIM, request_id=f"{number}".rjust(1 + LONGEST_ID * template // TEMPLATES, "x")
            )
        ledger.close()


def attack(ids: int, prepare: Callable[[], None] | None = None) -> tuple[Bound, bool, list[Side]]:
    """The bound from so many ids on each of two neighbouring graphs, whether an id could be tuned, and what was seen.

    `prepare` may break each process first.
    """
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("fork").Pool(2, prepare) as pool:
        templates = Path(folder)
        pool.apply(write_templates, (templates,))
        tunings = pool.apply(_tuned, (templates,))
        sides = pool.starmap(_side, [(missing, ids, tunings, templates) for missing in ((), (WORLD.secret,))])
    return lower_bound(sides[0].events, sides[1].events), tunings[0].separates, sides


def _tuned(templates: Path) -> list[Tuning]:
    with small_disk(SIZE) as disk:
        return Attacker((), disk, templates).tune()


def _side(missing: tuple[int, ...], ids: int, tunings: list[Tuning], templates: Path) -> Side:
    side = Side()
    with small_disk(SIZE) as disk:
        attacker = Attacker(missing, disk, templates)
        for _, tuning in zip(range(ids), cycle(tunings), strict=False):
            attacker.ask(tuning, side)
    return side


def main() -> None:
    """One line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=1500, help="on each side")
    bound, tuned, sides = attack(parser.parse_args().ids)
    print(json.dumps({"bound": asdict(bound), "tuned": tuned, "sides": [asdict(side) for side in sides]}))


if __name__ == "__main__":
    main()
