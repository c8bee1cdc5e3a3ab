"""One paid id, one draw: nothing that depends on what was drawn decides whether it is drawn again."""

import json
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools import tuned_ids
from tools.full_disk import both, forget, impatient
from tools.small_disk import SmallDisk, can_mount, small_disk

from privcfs import Limit, Method, PublicContext, Vault
from privcfs.errors import LedgerError, LedgerFull, LedgerLocked
from privcfs.gate import storing
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.method import GUIDED
from privcfs.gate.questions.question import Asker
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.public.candidates.product import Product
from tests.worlds import World, random_gcn, random_pairs, random_world

PLENTY = Limit.of("100000")
METHOD = Method(Product(most_pairs=1, most_features=1))
needs_a_small_disk = pytest.mark.skipif(not can_mount(), reason="needs the right to mount a tmpfs: run as root")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path') / 'budget.db'}"
    return str(request.getfixturevalue("postgres_url"))


def vault_of(world: World, url: str) -> Vault:
    return Vault(world.graph, world.context, ledger=open_ledger(url, patience=20), method=METHOD)


@pytest.fixture
def draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line at every draw of any process; a draw takes a while, so that others can come meanwhile."""
    file, draw = tmp_path / "draws", Exponential.draw
    file.touch()

    def watched(self: Exponential, *given: Any) -> int:
        with file.open("a") as lines:
            lines.write("drawn\n")
        time.sleep(0.3)
        return draw(self, *given)

    monkeypatch.setattr(Exponential, "draw", watched)
    return file


def test_processes_that_ask_for_one_id_at_once_draw_once(url: str, draws: Path) -> None:
    world = random_world(3)
    open_ledger(url, PLENTY)

    def ask(file: Path) -> None:
        file.write_text(vault_of(world, url).release(0, "1", request_id="same").to_json())

    start = multiprocessing.get_context("fork").Process
    files = [draws.with_name(f"answer {number}") for number in range(4)]
    workers = [start(target=ask, args=(file,)) for file in files]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len({file.read_text() for file in files}) == 1
    assert draws.read_text().count("drawn") == 1


def test_threads_that_ask_for_one_id_at_once_draw_once(url: str, draws: Path) -> None:
    open_ledger(url, PLENTY)
    vaults = [vault_of(random_world(3), url) for _ in range(2)]
    found: list[str] = []

    def ask(vault: Vault) -> None:
        found.append(vault.release(0, "1", request_id="same").to_json())

    threads = [threading.Thread(target=ask, args=(vault,)) for vault in vaults * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert draws.read_text().count("drawn") == 1


def test_whoever_waits_too_long_for_another_is_told(url: str) -> None:
    ledger, other = open_ledger(url, PLENTY, patience=0.2), open_ledger(url, patience=0.2)
    one = Request("ann", "a", 0, Fraction(1), "", "", "")
    claim = ledger.claim([one, replace(one, request_id="b")])
    with pytest.raises(LedgerLocked, match="being answered already; ask again with the same request id"):
        other.claim([one])
    other.claim([replace(one, request_id="c")]).give_back()
    other.claim([replace(one, analyst="bob")]).give_back()
    claim.give_back()
    other.claim([one]).give_back()


def test_a_claim_ends_with_its_process(url: str, draws: Path) -> None:
    world = random_world(3)
    open_ledger(url, PLENTY)

    def ask() -> None:
        vault_of(world, url).release(0, "1", request_id="same")

    doomed = multiprocessing.get_context("fork").Process(target=ask)
    doomed.start()
    while not draws.read_text():
        time.sleep(0.01)
    doomed.kill()
    doomed.join()
    ask()
    assert draws.read_text().count("drawn") == 2, "a process that dies takes its draw with it, whatever it was"
    assert open_ledger(url).balance().spent == 1


# The length of an answer


def named_world(names: Sequence[str] | None) -> World:
    rng = np.random.default_rng(1)
    x = (rng.random((12, 6)) < 0.6).astype(np.float32)
    pairs = random_pairs(rng, 12, 0.5)
    return World(PublicContext(x, pairs, random_gcn(rng, 6), node_ids=names), random_pairs(rng, 12, 0.4))


NAMES = [None, [f"n{'x' * number}" for number in range(12)], [f'"é\\{"ü" * number}' for number in range(12)]]


@pytest.mark.parametrize("names", NAMES, ids=["numbers", "names", "strange names"])
@pytest.mark.parametrize("method", [METHOD, GUIDED], ids=["paper", "guided"])
def test_no_answer_is_longer_than_its_room(names: Sequence[str] | None, method: Method, tmp_path: Path) -> None:
    world = named_world(names)
    vault = Vault(world.graph, world.context, ledger=f"sqlite:///{tmp_path / 'b.db'}", limit="9", method=method)
    question = ReleaseQuestion(vault._side, Asker("ann", "an id"), 3, "1")
    lengths = {len(question.answer(position)) for position in range(len(question.candidates))}
    assert len(lengths) > 1
    assert max(lengths) <= question.priced.room <= max(lengths) + 400


def stored_lengths(vault: Vault, number: int) -> set[int]:
    for one in range(number):
        vault.release(3, "1", request_id=f"{one:04}")
    return {len(row["body"]) for row in vault.ledger.rows() if row["kind"] == "RELEASED"}


def test_every_answer_is_stored_at_the_same_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = named_world(None)
    ledger = SqliteLedger(tmp_path / "budget.db", PLENTY)
    vault = Vault(world.graph, world.context, ledger=ledger, method=METHOD)
    assert len(stored_lengths(vault, 20)) == 1
    verdicts = [
        vault.confirm(3, vault.guess(3).intervention, "0.1", request_id=f"v{number:02}") for number in range(20)
    ]
    chosen = [vault.select(["3", "11"], "0.1", request_id=f"s{number:02}") for number in range(20)]
    assert len({one.flips for one in verdicts}) == len({one.target for one in chosen}) == 2
    rows = [row for row in ledger.rows() if row["kind"] == "RELEASED"]
    for kind in "vs":
        assert len({len(row["body"]) for row in rows if row["request_id"].startswith(kind)}) == 1
    assert json.loads(ledger.released("owner", "0003") or "")["request_id"] == "0003"
    monkeypatch.setattr("privcfs.gate.questions.release.longest_addition", lambda *_: -(10**6))
    twin = Vault(world.graph, world.context, ledger=SqliteLedger(tmp_path / "twin.db", PLENTY), method=METHOD)
    assert len(stored_lengths(twin, 20)) > 1, "the check sees answers that are stored as long as they are"


# A full disk


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with small_disk(6 << 20) as mounted:
        yield mounted
        mounted.empty()


@needs_a_small_disk
def test_a_full_disk_refuses_charges_and_stores_what_is_paid(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    world, draw = random_world(3), Exponential.draw
    vault = Vault(world.graph, world.context, ledger=SqliteLedger(disk.folder / "budget.db", PLENTY), method=METHOD)
    vault.release(0, "1")

    def full(self: Exponential, *given: Any) -> int:
        disk.fill()
        return draw(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Exponential, "draw", full)
        vault.release(0, "1", request_id="paid")
    for _ in range(3):  # whatever small change is left in pages
        disk.fill()
        with pytest.raises(LedgerFull, match=r"has no room for the answer; nothing was charged|cannot use the disk"):
            vault.release(0, "1", request_id="refused")
    disk.empty()
    assert vault.balance().spent == 2
    vault.release(0, "1", request_id="refused")
    assert vault.balance().spent == 3


def ask_while_it_fills(disk: SmallDisk, vault: Vault, ids: int, seed: int) -> Counter[str]:
    """Asks until everything is answered, while the disk fills up and is emptied again; failed attempts by id."""
    rng, over, failed = random.Random(seed), threading.Event(), Counter[str]()

    def fill() -> None:
        while not over.is_set():
            disk.fill(leaving=rng.randrange(0, 65536))
            for _ in range(rng.randrange(1, 20)):  # greedy: whatever is given back is taken
                disk.fill()
                time.sleep(0.002)
            disk.empty()
            time.sleep(rng.random() / 50)

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        for number in range(ids):
            while True:
                try:
                    vault.release(0, "1", request_id=f"{number}")
                    break
                except LedgerError:
                    failed[f"{number}"] += 1
                    time.sleep(0.001)
    finally:
        over.set()
        filler.join()
        disk.empty()
    return failed


@needs_a_small_disk
def test_no_id_is_drawn_twice_while_the_disk_fills_up(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "PATIENCE", 0.0)
    monkeypatch.setattr(storing, "PAUSE", 0.01)
    drawn: dict[str, list[str]] = {}
    add = storing.Answers.add

    def noted(self: storing.Answers, request: Request, text: str) -> None:
        drawn.setdefault(request.request_id, []).append(text)
        add(self, request, text)

    monkeypatch.setattr(storing.Answers, "add", noted)
    world, ids = random_world(3), 150
    ledger = SqliteLedger(disk.folder / "budget.db", PLENTY)
    vault = Vault(world.graph, world.context, ledger=ledger, method=METHOD)
    failed = ask_while_it_fills(disk, vault, ids, seed=0)
    assert sum(failed.values()) > 20, "the disk was full at times"
    assert {name: len(texts) for name, texts in drawn.items()} == {f"{number}": 1 for number in range(ids)}
    assert all(ledger.released("owner", name) == texts[0] for name, texts in drawn.items())
    assert ledger.balance().spent == ids
    ledger.verify()


class LosesItsMemory(storing.Storing):  # type: ignore[misc]
    """The broken twin: a draw that could not be stored is forgotten, and drawn again."""

    def _keep(self, answers: storing.Answers, claim: Any) -> None:  # noqa: ARG002
        claim.give_back()


@needs_a_small_disk
def test_a_vault_that_forgets_what_it_drew_is_found_out(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcfs.gate.vault.Storing", LosesItsMemory)
    finish, fails = SqliteLedger.finish_all, [3]

    def failing(self: SqliteLedger, answers: Any) -> list[str]:
        fails[0] -= 1
        if fails[0] >= 0:
            raise LedgerFull("full")
        return finish(self, answers)

    monkeypatch.setattr(SqliteLedger, "finish_all", failing)
    with pytest.raises(AssertionError):
        test_no_id_is_drawn_twice_while_the_disk_fills_up(disk, monkeypatch)


def test_what_was_drawn_is_stored_later_and_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "PATIENCE", 0.0)
    monkeypatch.setattr(storing, "PAUSE", 0.05)
    world, draw, number = random_world(3), Exponential.draw, [0]

    def counted(self: Exponential, *given: Any) -> int:
        number[0] += 1
        return draw(self, *given)

    monkeypatch.setattr(Exponential, "draw", counted)
    ledger = SqliteLedger(tmp_path / "budget.db", PLENTY, patience=0.3)
    vault = Vault(world.graph, world.context, ledger=ledger, method=METHOD)
    with monkeypatch.context() as patched:
        patched.setattr(SqliteLedger, "finish_all", _full)
        for _ in range(3):
            with pytest.raises(LedgerFull, match="no space"):
                vault.release(0, "1", request_id="a")
    for _ in range(100):
        if ledger.released("owner", "a"):
            break
        time.sleep(0.05)
    assert ledger.released("owner", "a"), "the process keeps trying by itself"
    assert vault.release(0, "1", request_id="a").to_json() == ledger.released("owner", "a")
    assert number == [1]


def _full(*_: Any) -> list[str]:
    raise LedgerFull("no space")


@needs_a_small_disk
def test_a_slice_of_the_full_disk_page() -> None:
    """`make full-disk` asks for 10,000; the broken twin draws again within a few."""
    _, sides = both(60, twin=False)
    assert [(side.drawn_again, side.unlike, len(side.events)) for side in sides] == [(0, 0, 60)] * 2
    assert sum(side.failed for side in sides) > 20
    _, sides = both(60, twin=True)
    assert sum(side.drawn_again for side in sides) > 0


@needs_a_small_disk
def test_no_length_of_an_id_makes_storing_depend_on_the_answer() -> None:
    """`make full-disk` asks for 10,000, and turns the broken twin's failed attempts into a bound above its claim."""
    _, separated, sides = tuned_ids.attack(60, impatient)
    events = sides[0].events + sides[1].events
    assert not separated
    assert {event.kind for event in events} >= {"short", "long"}
    assert sum(event.failed_before_payment for event in events) > 20, "the disk was full at times"
    assert not any(event.failed_after_payment for event in events)


@needs_a_small_disk
def test_the_attack_tells_long_answers_by_the_failed_attempts_of_a_vault_that_draws_again() -> None:
    _, separated, sides = tuned_ids.attack(60, forget)
    assert separated
    for event in sides[0].events + sides[1].events:
        assert event.kind != "long" or event.failed_after_payment == tuned_ids.MOST_FAILED
    few, many = (sum(event.failed_after_payment for event in side.events) for side in sides)
    assert 10 < few < many, "without the secret edge long answers are likelier"


def test_links_to_a_ledger_share_its_claims_and_reserve(tmp_path: Path) -> None:
    first = SqliteLedger(tmp_path / "budget.db", PLENTY, patience=0.2)
    (tmp_path / "current.db").symlink_to(tmp_path / "budget.db")
    second = SqliteLedger(tmp_path / "current.db", patience=0.2)
    one = Request("ann", "a", 0, Fraction(1), "", "", "")
    claim = first.claim([one])
    with pytest.raises(LedgerLocked, match="being answered already"):
        second.claim([one])
    claim.give_back()
    second.charge(one)
    assert not list(tmp_path.glob("current.db-[cr]*"))


def test_a_child_of_a_fork_leaves_draws_and_claims_to_its_parent(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "PATIENCE", 0.0)
    world = random_world(3)
    open_ledger(url, PLENTY)
    vault = vault_of(world, url)
    ledger = type(vault.ledger)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "finish_all", _full)
        with pytest.raises(LedgerFull, match="no space"):
            vault.release(0, "1", request_id="a")
        child = multiprocessing.get_context("fork").Process(target=lambda: vault._storing.wait())
        child.start()
        child.join(timeout=20)
        assert child.exitcode == 0, "a child waits for nothing"
    for _ in range(100):
        if vault.ledger.released("owner", "a"):
            break
        time.sleep(0.05)
    assert vault.ledger.released("owner", "a")


def test_one_analysts_batch_holds_up_another_by_one_answer_only(tmp_path: Path) -> None:
    world = random_world(3)
    ledger = SqliteLedger(tmp_path / "budget.db", PLENTY)
    vault = Vault(world.graph, world.context, ledger=ledger, method=METHOD, answer_seconds=0.2)
    batch = threading.Thread(
        target=vault.release_all, args=([(node % 8, "1", None) for node in range(15)],), kwargs={"analyst": "ann"}
    )
    batch.start()
    time.sleep(0.3)
    before = time.monotonic()
    vault.release(0, "1", analyst="bob")
    assert time.monotonic() - before < 1.2
    assert batch.is_alive(), "three seconds of answers"
    batch.join()
