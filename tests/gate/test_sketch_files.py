"""A sketch on its way to the disk: pieces, interruptions, full disks, and refusals before anything is charged."""

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tools.small_disk import SmallDisk, can_mount, small_disk

import privcfs
from privcfs import Limit, Vault
from privcfs.errors import InputError, SketchError
from privcfs.gate import draft, sketching
from privcfs.gate.draft import Draft, Piece, draft_of
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.publishing import Room
from privcfs.gate.sketching import publish_sketch, shown_by_chance
from privcfs.owner.kept_sketch import recall_or_believe
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.sketches import likeliest
from privcfs.public.sketches.sketch import MOST_SHOWN, Sketch, SketchPlan, read_sketch
from tests.worlds import private, random_world

PLAN = SketchPlan(Fraction(2), Fraction(1), partners=6)
NODES = 60


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeliest, "LEAF", 16)
    monkeypatch.setattr(likeliest, "TOGETHER", 1)
    monkeypatch.setattr(sketching, "COUNTED", 25)


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "budget.db", Limit.of("9"))


def publish(ledger: SqliteLedger, path: Path, plan: SketchPlan = PLAN) -> Sketch:
    world = random_world(1, nodes=NODES)
    return publish_sketch(world.graph, world.context, ledger, plan, Worlds(), path)


def drafts(folder: Path) -> list[Path]:
    return list(folder.glob(".*.draft"))


def test_a_sketch_of_likeliest_partners_is_paid_once_read_back_and_used(tmp_path: Path, ledger: SqliteLedger) -> None:
    world, path = random_world(1, nodes=NODES), tmp_path / "sketch.bin"
    made = publish(ledger, path)
    assert publish(ledger, path).name == made.name
    assert ledger.balance().spent == 3
    assert sorted(one.name for one in tmp_path.iterdir() if "sketch" in one.name) == ["sketch.bin"]
    listed = made.listed
    assert listed is not None
    assert made.counts is not None
    assert made.counts.shape == (NODES, world.context.number_of_classes)
    owner = np.repeat(np.arange(NODES), np.diff(listed.shown.starts))
    pairs = np.column_stack([owner, listed.shown.others])
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert not world.context.snapshot.has_pairs(pairs).any()
    kept = recall_or_believe(world.context, path)
    direct = privcfs.with_sketch(world.context, path)
    for one, other in zip(kept.snapshot.pairs, direct.snapshot.pairs, strict=True):
        assert one.tolist() == other.tolist()
    assert kept.posterior is not None
    assert direct.posterior is not None
    assert (kept.posterior.rest == direct.posterior.rest).all()
    assert Vault(world.graph, kept, ledger=ledger).guess(0).confidence is not None


class Interrupted(Exception):
    """The process dies."""


def dying(after: int) -> Callable[[Draft, str, Callable[[], Piece]], Piece]:
    """Keeps so many pieces, and dies."""
    kept: list[str] = []

    def piece(self: Draft, name: str, make: Callable[[], Piece]) -> Piece:
        if len(kept) >= after:
            raise Interrupted
        kept.append(name)
        return honest(self, name, make)

    return piece


honest = Draft.piece


def test_a_sketch_that_was_interrupted_goes_on_where_it_was(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, drawn = tmp_path / "sketch.bin", []
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "piece", dying(after=5))
        with pytest.raises(Interrupted):
            publish(ledger, path)
    assert not path.exists()
    (folder,) = drafts(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    before = {piece.name: piece.read_bytes() for piece in folder.glob("*.npz")}
    assert len(before) == 5
    (folder / "responses-1.part").write_bytes(b"half a piece")

    def noted(self: Draft, name: str, make: Callable[[], Piece]) -> Piece:
        def draw() -> Piece:
            drawn.append(name)
            return make()

        return honest(self, name, draw)

    monkeypatch.setattr(Draft, "piece", noted)
    publish(ledger, path)
    assert not {f"{name}.npz" for name in drawn} & before.keys(), "what was kept is not drawn again"
    assert ledger.balance().spent == 3
    assert drafts(tmp_path) == []


def test_pieces_of_another_division_are_dropped(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If rounding moves a pair from a later piece to an earlier one, kept pieces could answer for it twice."""
    path = tmp_path / "sketch.bin"
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "piece", dying(after=6))
        with pytest.raises(Interrupted):
            publish(ledger, path)
    (folder,) = drafts(tmp_path)
    before = {piece.name: piece.stat().st_mtime_ns for piece in folder.glob("*.npz")}
    (folder / draft.DIVISION).write_text("of another machine")
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "piece", dying(after=6))
        with pytest.raises(Interrupted):
            publish(ledger, path)
    after = {piece.name: piece.stat().st_mtime_ns for piece in folder.glob("*.npz")}
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


def test_one_process_at_a_time_makes_a_sketch(tmp_path: Path) -> None:
    with (
        draft_of(tmp_path / "sketch.bin", "one", 10),
        pytest.raises(SketchError, match="another process makes sketch"),
        draft_of(tmp_path / "sketch.bin", "one", 10),
    ):
        pass
    assert drafts(tmp_path) == []


def test_a_file_that_would_not_fit_is_refused_before_anything_is_charged(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown_by_chance(SketchPlan(Fraction(2), partners=100), 10**7) > MOST_SHOWN
    assert shown_by_chance(SketchPlan.of(Fraction(6), 100), 10**7) < MOST_SHOWN
    monkeypatch.setattr(sketching, "MOST_SHOWN", 10)
    with pytest.raises(SketchError, match="would not fit: of 6 partners of each node about"):
        publish(ledger, tmp_path / "sketch.bin")
    monkeypatch.setattr(sketching, "MOST_NODES", NODES - 1)
    with pytest.raises(InputError, match="cover likeliest partners instead"):
        publish(ledger, tmp_path / "sketch.bin", SketchPlan(Fraction(1)))
    with pytest.raises(SketchError, match="partners is -1"):
        SketchPlan(Fraction(1), partners=-1)
    assert ledger.balance().spent == 0
    counts_alone = publish(ledger, tmp_path / "sketch.bin", SketchPlan(Fraction(0), Fraction(1), partners=6))
    assert counts_alone.listed is not None
    assert not len(counts_alone.listed.shown.others)


def test_what_follows_is_the_same_from_memory_and_from_disk_for_counts_alone(
    tmp_path: Path, ledger: SqliteLedger
) -> None:
    world, path = random_world(1, nodes=NODES), tmp_path / "sketch.bin"
    publish(ledger, path, SketchPlan(Fraction(0), Fraction(1), partners=6))
    kept, direct = recall_or_believe(world.context, path), privcfs.with_sketch(world.context, path)
    assert kept.digest == direct.digest
    assert kept.posterior is not None
    assert direct.posterior is not None
    assert (kept.posterior.rest == direct.posterior.rest).all()


def test_a_damaged_list_is_noticed(tmp_path: Path, ledger: SqliteLedger) -> None:
    path = tmp_path / "sketch.bin"
    publish(ledger, path)
    whole = path.read_bytes()
    for place in (400, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(SketchError, match="damaged"):
            read_sketch(path)
    path.write_bytes(b"")
    with pytest.raises(SketchError, match="is not a sketch"):
        read_sketch(path)


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with small_disk(1 << 21) as found:
        yield found


needs_root = pytest.mark.skipif(not can_mount(), reason="needs the right to mount a tmpfs")


@needs_root
def test_a_disk_without_room_is_noticed_before_anything_is_charged(disk: SmallDisk, ledger: SqliteLedger) -> None:
    disk.fill(leaving=8192)
    with pytest.raises(SketchError, match="Nothing was charged"):
        publish(ledger, disk.folder / "sketch.bin")
    assert ledger.balance().spent == 0
    assert drafts(disk.folder) == []
    disk.empty()
    assert publish(ledger, disk.folder / "sketch.bin").listed is not None


@needs_root
@pytest.mark.parametrize("partners", [0, 6])
def test_a_disk_that_fills_up_after_the_charge_loses_nothing_and_there_is_one_draw(
    partners: int, disk: SmallDisk, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody takes the room away, as no program can prevent: the sketch is the same once there is room again."""
    plan, path, contents = SketchPlan(Fraction(2), Fraction(1), partners), disk.folder / "sketch.bin", set()
    durably = Room.publish

    def robbed(room: Room, content: Iterator[bytes]) -> None:
        whole = b"".join(content)
        contents.add(whole)
        os.truncate(room._path, 0)
        disk.fill()
        durably(room, [whole, bytes(1 << 21)])

    with monkeypatch.context() as patched:
        patched.setattr(Room, "publish", robbed)
        with pytest.raises(SketchError, match="is paid and could not be written: No space left"):
            publish(ledger, path, plan)
    assert not path.exists()
    assert ledger.balance().spent == 3
    disk.empty()
    publish(ledger, path, plan)
    assert contents == {path.read_bytes()}
    assert ledger.balance().spent == 3


def test_the_room_of_a_sketch_owes_nothing_to_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, sizes = random_world(1, nodes=NODES), []

    class Noted(Room):  # type: ignore[misc]
        def __init__(self, path: Path, target: Path, size: int) -> None:
            sizes.append(size)
            super().__init__(path, target, size)

    monkeypatch.setattr(draft, "Room", Noted)
    for number, pairs in enumerate((world.pairs, world.pairs[:0])):
        budget = SqliteLedger(tmp_path / f"{number}.db", Limit.of("9"))
        publish_sketch(private(pairs, NODES), world.context, budget, PLAN, Worlds(), tmp_path / f"{number}.bin")
    assert len(sizes) == 2
    assert len(set(sizes)) == 1
