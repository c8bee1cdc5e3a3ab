"""A sketch: its law, read off the draw; one draw for one price; clear refusals; and the twins that must be rejected."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import privcfs
from privcfs import Limit, PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.errors import BudgetExhausted, InputError, SettingsError, SketchError
from privcfs.gate import sketch_trials, sketching
from privcfs.gate.coins import Coins, KeyFile
from privcfs.gate.contracts import Approximate
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.publishing import Room
from privcfs.gate.randomness import Randomness
from privcfs.gate.sketch_trials import rehearse_sketch
from privcfs.gate.sketching import Parts, draw_sketch, geometric, publish_sketch, turned_pairs, turning
from privcfs.gate.snapshots import ONE_EDGE, WORD
from privcfs.private import sketching as reading
from privcfs.private.graph import PrivateGraph
from privcfs.private.sketching import class_counts, hidden_pairs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.nearby import snapshot_logits
from privcfs.public.sketches.sketch import Sketch, SketchPlan, read_sketch
from privcfs.public.sketches.triangle import number_of_pairs, pair_at, place_of
from tests.worlds import Pairs, private, random_gcn, random_world

PRICES = [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(8), Fraction(20)]
NODES = 3
PAIRS = np.array(list(combinations(range(NODES), 2)), np.int64)
Places = NDArray[np.int64]
Draw = Callable[[PrivateGraph, Fraction, Randomness], Places]
publish_durably = Room.publish


class Script(Randomness):
    """Words that were written down; a draw that asks for more is noticed, so that its whole tree can be walked."""

    def __init__(self, heads: tuple[bool, ...]) -> None:
        self.heads, self.used, self.missing = heads, 0, 0

    def integer(self, bits: int) -> int:  # noqa: ARG002
        raise AssertionError("a sketch draws words")

    def words(self, count: int) -> NDArray[np.uint64]:
        taken = self.heads[self.used : self.used + count]
        self.missing += count - len(taken)
        self.used += count
        return np.array([0 if head else WORD - 1 for head in (*taken, *[False] * (count - len(taken)))], np.uint64)


def law(draw: Draw, pairs: Pairs, epsilon: Fraction, rate: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Every answer with its exact probability, read off the draw: each word either turns a pair round or does not."""
    found: dict[tuple[int, ...], Fraction] = {}
    probe = Script(())
    draw(private(pairs, NODES), epsilon, probe)
    for heads in product((False, True), repeat=probe.missing):
        script = Script(heads)
        answer = tuple(draw(private(pairs, NODES), epsilon, script).tolist())
        assert not script.missing, "how many words are drawn depends on nothing"
        chance = rate ** sum(heads) * (1 - rate) ** (len(heads) - sum(heads))
        found[answer] = found.get(answer, Fraction(0)) + chance
    return found


def responses(graph: PrivateGraph, epsilon: Fraction, words: Randomness) -> Places:
    """Randomised response as a sketch draws it, where nothing is disclosed."""
    shown = draw_sketch(graph, nothing_disclosed(), SketchPlan(epsilon), lambda _: words).shown
    assert shown is not None
    return shown


def nothing_disclosed(nodes: int = NODES) -> PublicContext:
    rng = np.random.default_rng(0)
    return PublicContext(rng.random((nodes, 4)).astype(np.float32), np.empty((0, 2), np.int64), random_gcn(rng, 4))


def half_the_noise(graph: PrivateGraph, epsilon: Fraction, words: Randomness) -> Places:
    return responses(graph, 2 * epsilon, words)


def drawn_at_both_ends(graph: PrivateGraph, epsilon: Fraction, words: Randomness) -> Places:
    """A pair stands on the lists of both its ends, has a coin at each, and both answers are published."""
    first, second = responses(graph, epsilon, words), responses(graph, epsilon, words)
    return np.concatenate([first, second + number_of_pairs(NODES)])


def neighbours() -> Iterator[tuple[Pairs, Pairs]]:
    """All pairs of graphs on three nodes that differ in one edge."""
    for chosen in product((False, True), repeat=len(PAIRS)):
        for edge in np.flatnonzero(~np.array(chosen)):
            more = np.array(chosen)
            more[edge] = True
            yield PAIRS[np.array(chosen)], PAIRS[more]


def is_private(draw: Draw, epsilon: Fraction, rate: Fraction) -> bool:
    """Whether one edge moves the probability of every answer by at most e^epsilon, exactly."""
    for one, other in neighbours():
        first, second = (law(draw, pairs, epsilon, rate) for pairs in (one, other))
        if first.keys() != second.keys():
            return False
        ratios = [max(first[answer] / second[answer], second[answer] / first[answer]) for answer in first]
        if not all(below_bound(ratio, epsilon) for ratio in ratios):
            return False
    return True


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
def test_the_law_of_a_sketch_moves_by_at_most_its_price(epsilon: Fraction) -> None:
    rate = Fraction(turning(epsilon), WORD)
    assert is_private(responses, epsilon, rate)
    assert 0 < rate < Fraction(1, 2)
    words = np.array([turning(epsilon) - 1, turning(epsilon)], np.uint64)
    assert (turned_pairs(2, epsilon, lambda _: Given(words)) == [0]).all(), "the rate is that of the draw"


class Given(Randomness):
    """One block of given words."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.given = words

    def integer(self, bits: int) -> int:  # noqa: ARG002
        raise AssertionError

    def words(self, count: int) -> NDArray[np.uint64]:
        return self.given[:count]


@pytest.mark.parametrize("twin", [half_the_noise, drawn_at_both_ends])
def test_the_check_rejects_half_the_noise_and_a_pair_that_is_drawn_twice(twin: Draw) -> None:
    epsilon = Fraction(1)
    price = 2 * epsilon if twin is half_the_noise else epsilon
    assert not is_private(twin, epsilon, Fraction(turning(price), WORD))


def test_one_edge_moves_one_pair_and_two_counts() -> None:
    classes = np.array([0, 1, 0, 2, 1])
    none = nothing_disclosed(5).disclosed
    everything = np.array(list(combinations(range(5), 2)), np.int64)
    rng = np.random.default_rng(1)
    for _ in range(200):
        chosen = rng.random(len(everything)) < 0.5
        edge = int(rng.integers(len(everything)))
        other = chosen.copy()
        other[edge] = not other[edge]
        first, second = (hidden_pairs(private(everything[one], 5), none) for one in (chosen, other))
        assert len(np.setxor1d(place_of(first, 5), place_of(second, 5))) == 1
        assert moved(first, second, lambda _: classes) == 2


def moved(first: Pairs, second: Pairs, classes: Callable[[Pairs], Places]) -> int:
    """By how much all counts together differ between two graphs."""
    none, nodes = nothing_disclosed(5).disclosed, np.arange(5)
    one, other = (class_counts(private(pairs, 5), none, nodes, classes(pairs), 3) for pairs in (first, second))
    return int(np.abs(one - other).sum())


def test_the_check_of_counts_rejects_classes_from_private_predictions() -> None:
    def predicted(pairs: Pairs) -> Places:
        return (np.bincount(pairs.ravel(), minlength=5) % 3).astype(np.int64)

    star = np.array([(0, 1), (0, 2), (0, 3)], np.int64)
    assert moved(star, star[:2], predicted) > 2


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
def test_geometric_noise_falls_no_faster_than_its_price_allows(epsilon: Fraction) -> None:
    asked: list[int] = []

    class Threshold(Randomness):
        def integer(self, bits: int) -> int:  # noqa: ARG002
            raise AssertionError

        def words(self, count: int) -> NDArray[np.uint64]:
            asked.append(count)
            middle = (low + high) // 2 if len(asked) == 1 else WORD - 1
            return np.full(count, middle, np.uint64)

    low, high = 0, WORD - 1  # the first word below `ratio` counts, so the ratio is found by bisection
    while high - low > 1:
        asked.clear()
        if geometric(1, epsilon, Threshold())[0]:
            low = (low + high) // 2
        else:
            high = (low + high) // 2
    ratio = Fraction(high, WORD)
    assert below_bound(1 / ratio, epsilon), "two cells move by one each, at half of the price"
    assert float(ratio) == pytest.approx(np.exp(-float(epsilon)), rel=1e-6)


def noise_of(counts: Callable[[PrivateGraph, Randomness], Places]) -> bool:
    """Whether the noise that is added owes nothing to the graph, given the same coins."""
    graphs = [private(PAIRS[:1], NODES), private(PAIRS, NODES), private(PAIRS[:0], NODES)]
    context, found = nothing_disclosed(), []
    for graph in graphs:
        noisy = counts(graph, Coins(b"k", "counts"))
        said = snapshot_logits(context, np.arange(NODES)).argmax(axis=1)
        found.append(noisy - class_counts(graph, context.disclosed, np.arange(NODES), said, context.number_of_classes))
    return all((one == found[0]).all() for one in found)


def test_every_count_has_the_same_noise_whatever_the_graph_and_a_twin_that_spares_zeros_is_noticed() -> None:
    context, plan = nothing_disclosed(), SketchPlan(Fraction(0), Fraction(1))

    def honest(graph: PrivateGraph, words: Randomness) -> Places:
        counts = draw_sketch(graph, context, plan, lambda _: words).counts
        assert counts is not None
        return counts

    def sparing(graph: PrivateGraph, words: Randomness) -> Places:
        said = snapshot_logits(context, np.arange(NODES)).argmax(axis=1)
        counts = class_counts(graph, context.disclosed, np.arange(NODES), said, context.number_of_classes)
        noise = sketching.laplace(counts.size, plan.counts / 2, words).reshape(counts.shape)
        return counts + np.where(counts > 0, noise, 0)

    assert noise_of(honest)
    assert not noise_of(sparing)


def test_pairs_of_the_snapshot_are_no_evidence_and_a_twin_that_covers_them_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A snapshot pair that is an edge gives the same sketch as one that is none, so it can cost nothing."""

    def shown(pairs: Pairs) -> Places:
        context = PublicContext(np.eye(4, dtype=np.float32), [(0, 1)], random_gcn(np.random.default_rng(0), 4))
        found = draw_sketch(private(pairs, 4), context, SketchPlan(Fraction(1)), lambda use: Coins(b"k", use)).shown
        assert found is not None
        return found

    edges = np.array([(0, 1), (2, 3)], np.int64)
    assert (shown(edges) == shown(edges[1:])).all()
    monkeypatch.setattr(
        sketching, "hidden_pairs", lambda graph, _: reading.hidden_pairs(graph, nothing_disclosed(4).disclosed)
    )
    assert len(shown(edges)) != len(shown(edges[1:]))


def test_all_pairs_have_a_place_of_their_own() -> None:
    places = np.arange(number_of_pairs(7))
    pairs = pair_at(places, 7)
    assert pairs.tolist() == [list(pair) for pair in combinations(range(7), 2)]
    assert (place_of(pairs, 7) == places).all()


PLAN = SketchPlan(Fraction(2), Fraction(1))


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "budget.db", Limit.of("9"))


def publish(world_seed: int, ledger: SqliteLedger, path: Path, plan: SketchPlan = PLAN) -> Sketch:
    world = random_world(world_seed, nodes=12)
    return publish_sketch(world.graph, world.context, ledger, plan, Worlds(), path)


def test_a_sketch_is_paid_once_and_stays_the_same(tmp_path: Path, ledger: SqliteLedger) -> None:
    path = tmp_path / "sketch.bin"
    first = publish(1, ledger, path)
    again = publish(1, ledger, path)
    assert ledger.balance().spent == 3
    assert first.name == again.name
    assert read_sketch(path).name == first.name
    assert ledger.adjacencies() == {ONE_EDGE}
    assert sorted(one.name for one in tmp_path.iterdir() if "sketch" in one.name) == ["sketch.bin"], "no key is left"
    assert path.stat().st_size == len(path.read_bytes())


def test_the_length_of_a_sketch_follows_from_public_numbers(tmp_path: Path) -> None:
    world = random_world(3, nodes=12)
    lengths = set()
    for number, pairs in enumerate((world.pairs, world.pairs[:1], world.pairs[:0])):
        ledger = SqliteLedger(tmp_path / f"{number}.db", Limit.of("9"))
        path = tmp_path / f"{number}.bin"
        publish_sketch(private(pairs, 12), world.context, ledger, PLAN, Worlds(), path)
        lengths.add(path.stat().st_size)
    assert len(lengths) == 1


class Recorded:
    """Notes what was drawn, and fails to publish it so many times."""

    def __init__(self, failures: int) -> None:
        self.drawn: list[bytes] = []
        self.failures = failures

    def publish(self, room: Room, content: Iterable[bytes]) -> None:
        self.drawn.append(b"".join(content))
        if len(self.drawn) <= self.failures:
            raise SketchError("the disk is full")
        publish_durably(room, [self.drawn[-1]])

    def publishing(self) -> Callable[[Room, Iterable[bytes]], None]:
        """As a method of a room."""
        return lambda room, content: self.publish(room, content)


def test_a_sketch_that_could_not_be_written_is_drawn_again_from_the_same_coins(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Recorded(failures=2)
    monkeypatch.setattr(Room, "publish", disk.publishing())
    assert tries(disk, tmp_path, ledger) == 1, "one draw for one price"
    assert ledger.balance().spent == 3


def test_a_twin_that_draws_anew_after_a_failed_write_is_noticed(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Recorded(failures=2)
    monkeypatch.setattr(Room, "publish", disk.publishing())
    monkeypatch.setattr(KeyFile, "key", lambda _: np.random.default_rng().bytes(32))
    monkeypatch.setattr(KeyFile, "exists", lambda _: True)
    assert tries(disk, tmp_path, ledger) == 3


def tries(disk: Recorded, folder: Path, ledger: SqliteLedger) -> int:
    """How many different sketches are drawn until one can be written."""
    for _ in range(disk.failures):
        with pytest.raises(SketchError, match="the disk is full"):
            publish(1, ledger, folder / "sketch.bin")
    publish(1, ledger, folder / "sketch.bin")
    return len(set(disk.drawn))


def test_a_lost_key_is_no_second_draw(tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Room, "publish", Recorded(failures=9).publishing())
    with pytest.raises(SketchError):
        publish(1, ledger, tmp_path / "sketch.bin")
    (key,) = tmp_path.glob("sketch.bin.*.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    with pytest.raises(SketchError, match="not drawn a second time for one price"):
        publish(1, ledger, tmp_path / "sketch.bin")


def test_two_plans_at_one_path_have_nothing_in_common(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that a crash left behind must not become the coins of another sketch."""
    disk = Recorded(failures=1)
    monkeypatch.setattr(Room, "publish", disk.publishing())
    with pytest.raises(SketchError):
        publish(1, ledger, tmp_path / "sketch.bin", SketchPlan(Fraction(1)))
    publish(1, ledger, tmp_path / "sketch.bin", SketchPlan(Fraction(2)))
    assert len({path.name for path in tmp_path.glob("sketch.bin.*.key")}) == 1, "that of the first plan"
    same_key = [Coins(b"key", f"{plan}: responses").words(4).tolist() for plan in ("one", "two")]
    assert same_key[0] != same_key[1]


def test_bad_input_is_refused_before_anything_is_charged(tmp_path: Path, ledger: SqliteLedger) -> None:
    world = random_world(1, nodes=12)
    path = tmp_path / "sketch.bin"

    def publishing(plan: SketchPlan = PLAN, at: Path = path, other: SqliteLedger = ledger) -> None:
        publish_sketch(world.graph, world.context, other, plan, Worlds(), at)

    with pytest.raises(BudgetExhausted, match="does not fit"):
        publishing(SketchPlan(Fraction(10)))
    with pytest.raises(SketchError, match="cannot be written: No such file"):
        publishing(at=tmp_path / "nowhere" / "sketch.bin")
    path.write_text("a letter")
    with pytest.raises(SketchError, match="exists and is not the sketch"):
        publishing()
    with pytest.raises(SketchError, match="needs a part whose epsilon is above 0"):
        SketchPlan(Fraction(0))
    approximate = SqliteLedger(tmp_path / "other.db", Limit.of("9", contract=Approximate(Fraction(1, 10**6))))
    with pytest.raises(SettingsError, match="needs the contract pure"):
        publishing(other=approximate, at=tmp_path / "third.bin")
    with pytest.raises(SettingsError, match="different numbers of nodes"):
        publish_sketch(random_world(1).graph, world.context, ledger, PLAN, Worlds(), path)
    assert ledger.balance().spent == 0


def test_too_many_nodes_are_refused(tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketching, "MOST_NODES", 11)
    with pytest.raises(InputError, match="of all pairs is for 2 to 11 nodes"):
        publish(1, ledger, tmp_path / "sketch.bin")


def test_a_damaged_a_foreign_and_an_unpaid_sketch_are_refused(tmp_path: Path, ledger: SqliteLedger) -> None:
    world, path = random_world(1, nodes=12), tmp_path / "sketch.bin"
    publish(1, ledger, path)
    context = privcfs.with_sketch(world.context, path)
    assert Vault(world.graph, context, ledger=ledger).guess(0).confidence is not None
    elsewhere = SqliteLedger(tmp_path / "elsewhere.db", Limit.of("9"))
    with pytest.raises(SettingsError, match="not one that this ledger has paid for"):
        Vault(private(world.pairs, 12), context, ledger=elsewhere)
    with pytest.raises(SketchError, match="made for another public context"):
        privcfs.with_sketch(random_world(2, nodes=12).context, path)
    with pytest.raises(SketchError, match="knows a sketch already"):
        privcfs.with_sketch(context, path)
    whole = path.read_bytes()
    for place in (20, 300, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(SketchError, match=r"damaged|is not a sketch"):
            read_sketch(path)
    path.write_bytes(whole[:-5])
    with pytest.raises(SketchError, match="damaged"):
        read_sketch(path)
    path.write_bytes(whole.replace(b"sketch 1", b"sketch 2", 1))
    with pytest.raises(SketchError, match="another version"):
        read_sketch(path)
    path.unlink()
    with pytest.raises(SketchError, match="does not exist"):
        read_sketch(path)


def test_a_release_with_a_sketch_says_what_it_rests_on(tmp_path: Path, ledger: SqliteLedger) -> None:
    world, path = random_world(1, nodes=12), tmp_path / "sketch.bin"
    publish(1, ledger, path)
    vault = Vault(world.graph, privcfs.with_sketch(world.context, path), ledger=ledger)
    release = vault.release(0, "1")
    assert "SKETCH_KNOWN" in release.assumptions
    assert ledger.losses().any_two_graphs() is None
    assert ledger.losses().one_edge() == 4


def test_a_rehearsal_is_the_same_whatever_the_private_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given no graph; and it finds that a dear sketch is worth more than a cheap one on real data."""
    monkeypatch.setattr(sketch_trials, "TARGETS", 60)
    data = load_dataset("cora")
    plans = [SketchPlan.of(Fraction(8))]
    first, second = (rehearse_sketch(data.paper_context(), Worlds(), plans) for _ in range(2))
    assert first == second
    (worth,) = first
    assert worth.without < worth.with_it


def test_a_sketch_of_real_data_makes_the_free_guess_better() -> None:
    """A small slice of the page `population`: what is believed is mostly right, and the guess gains."""
    data, plan = load_dataset("cora"), SketchPlan.of(Fraction(8))
    base = data.paper_context()
    parts: Parts = draw_sketch(data.private_graph(), base, plan, lambda use: Coins(b"test", use))
    sketch = Sketch(plan, base.digest, Worlds(), base.number_of_nodes, base.number_of_classes, *parts)
    context = privcfs.with_sketch(base, replace(sketch, name="test"))
    edges = {tuple(pair) for pair in data.edges().tolist()}
    disclosed = {tuple(pair) for pair in base.snapshot.pairs.tolist()}
    believed = {tuple(pair) for pair in context.snapshot.pairs.tolist()} - disclosed
    assert context.disclosed is base.snapshot
    assert len(believed & edges) > 0.75 * len(believed)
    assert len(believed & edges) > 0.6 * len(edges - disclosed)


def test_a_sketch_that_is_public_is_not_drawn_again_from_other_edges(
    tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same coins on edges that changed after a crash would show exactly what changed."""
    world, path = random_world(1, nodes=12), tmp_path / "sketch.bin"

    def crash(room: Room, content: Iterable[bytes]) -> None:
        publish_durably(room, content)
        raise SketchError("the process dies")

    with monkeypatch.context() as patched:
        patched.setattr(Room, "publish", crash)
        with pytest.raises(SketchError, match="the process dies"):
            publish(1, ledger, path)
    before = path.read_bytes()
    publish_sketch(private(world.pairs[:1], 12), world.context, ledger, PLAN, Worlds(), path)
    assert path.read_bytes() == before
    assert ledger.balance().spent == 3
