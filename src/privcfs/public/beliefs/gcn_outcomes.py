"""A candidate list on all imagined graphs of a target at once, for a two-layer GCN.

The effects of single operations on the target's logits are computed for each graph and for each degree that the target
may have afterwards; the effects of a set of operations are added up. Two approximations make this fast. The target's
own hidden row is treated as if the operations of a set acted on it one at a time. A hidden row does not follow a change
of degree at the far end of its other pairs. On the private graph the list is evaluated exactly; this is belief.

Tables of hidden rows have the graphs on their last axis and the hidden units before it, so that numpy works through
long contiguous stretches. A rectified sum relu(x + y) is computed as max(x, -y) + y: the part that does not depend on
the operation or on the degree goes through the second layer once, and not for each of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.beliefs.belief import margins_of
from privcfs.public.beliefs.hidden_degrees import HiddenDegrees
from privcfs.public.beliefs.imagined import Imagined
from privcfs.public.beliefs.pool import pool_of, public_degrees
from privcfs.public.candidates.alterations import taken_inputs
from privcfs.public.candidates.candidates import Candidates, Caps, Choice, membership
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal
from privcfs.public.interventions import Pair
from privcfs.public.models.gcn import GCN
from privcfs.public.nearby import some_neighbours
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import among, places

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
# The mean inverse root of a degree is tabulated for public degrees up to this one, from so many samples each.
TABULATED, SAMPLES = 512, 256
# The groups of lists up to this length are kept, because targets with as many neighbours have the same ones.
SHORT = 2000
# Takes the place of the logit of the target's own class, which is no rival of itself.
NO_RIVAL = np.float32(-1e30)


def logits_on_imagined(
    context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
) -> Floats:
    """Logits of the target under every candidate on every imagined graph: (candidates, classes, graphs)."""
    logits = np.empty((context.number_of_classes, len(candidates), imagined.number), np.float32)
    for group, effects in _effects_by_group(context, law, imagined, candidates):
        logits[:, group.candidates] = group.operations @ effects.transpose(1, 0, 2)
    return logits.transpose(1, 0, 2)


def margins_on_graphs(
    context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates, desired: Goal
) -> tuple[Floats, Numbers]:
    """The margins that `belief.margins_of` finds in these logits, without building them, and the original classes.

    Margins have the shape (graphs, candidates).
    """
    if isinstance(desired, tuple):  # Of several classes the highest logit differs from candidate to candidate.
        logits = logits_on_imagined(context, law, imagined, candidates)
        return margins_of(logits, desired), logits[0].argmax(axis=0)
    margins, graphs = np.empty((len(candidates), imagined.number), np.float32), np.arange(imagined.number)
    original = label = np.empty(0, np.int64)
    for group, effects in _effects_by_group(context, law, imagined, candidates):
        if not len(label):  # The first group has the empty set as its first candidate.
            original = effects[0].argmax(axis=0)
            label = original if desired is None else np.full(len(graphs), desired)
        effects -= effects[:, label, graphs][:, None]
        effects[0, label, graphs] = NO_RIVAL
        margins[group.candidates] = (group.operations @ effects.transpose(1, 0, 2)).max(axis=0)
    if desired is None:
        return np.negative(margins, out=margins).T, original
    margins[:, original == desired] = np.inf
    return margins.T, original


class _Group(NamedTuple):
    """The candidates that change the target's degree by the same number, and the operations that they consist of.

    `operations` has a row for each candidate and a column for each used operation: none at all, which is part of every
    candidate, then `deletions`, `additions` and `masks`, which are given by their positions. Deletions and additions
    that do not change the degree are believed to do nothing; they are left out, and positions do not count them.
    """

    change: int
    candidates: Numbers
    operations: Floats
    deletions: slice | Numbers | None
    additions: slice | Numbers | None
    masks: slice | Numbers | None


def _groups(imagined: Imagined, candidates: Candidates) -> tuple[_Group, ...]:
    """The groups of a list; the first changes no degree."""
    make = _kept_groups if len(candidates) <= SHORT else _kept_groups.__wrapped__
    deletions, changes = len(candidates.deletions), _degree_changes(candidates, imagined)
    return make(candidates.pair_sets, candidates.feature_sets, candidates.caps, deletions, tuple(changes.tolist()))


@lru_cache(maxsize=16)
def _kept_groups(
    pair_sets: tuple[Choice, ...],
    feature_sets: tuple[Choice, ...],
    caps: Caps,
    deletions: int,
    changes: tuple[int, ...],
) -> tuple[_Group, ...]:
    """Groups follow from which sets there are, and from how each pair changes the degree."""
    does_something = np.array(changes, np.int64) != 0
    pairs = membership(pair_sets, len(changes))[:, does_something]
    features = membership(feature_sets, max((max(one, default=-1) for one in feature_sets), default=-1) + 1)
    pair_set, feature_set = Candidates(0, caps, pair_sets=pair_sets, feature_sets=feature_sets).parts()
    change_of_set = pairs @ np.array(changes, np.int64)[does_something]
    first_addition, first_mask = int(does_something[:deletions].sum()), pairs.shape[1]
    found = []
    for change in sorted(set(change_of_set.tolist()), key=abs):
        chosen = np.flatnonzero(change_of_set[pair_set] == change)
        none = np.ones((len(chosen), 1), np.bool_)
        operations = np.concatenate([none, pairs[pair_set[chosen]], features[feature_set[chosen]]], axis=1)
        used = np.flatnonzero(operations.any(axis=0))
        kinds = np.split(used[1:] - 1, np.searchsorted(used[1:] - 1, [first_addition, first_mask]))
        weights = operations[:, used].astype(np.float32)
        positions = (_indices(one - first) for one, first in zip(kinds, (0, first_addition, first_mask), strict=True))
        found.append(_Group(change, chosen, weights, *positions))
    return tuple(found)


def _indices(positions: Numbers) -> slice | Numbers | None:
    """The same positions as a slice, which copies nothing, where they follow each other; None if there are none."""
    if not len(positions):
        return None
    first, last = int(positions[0]), int(positions[-1])
    return slice(first, last + 1) if last - first + 1 == len(positions) else positions


def _effects_by_group(
    context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
) -> Iterator[tuple[_Group, Floats]]:
    """Each group of a list with the effects of its operations: (operations, classes, graphs)."""
    model = context.model
    assert isinstance(model, GCN)
    setting, groups = _Setting.of(context, model, law, imagined, candidates), _groups(imagined, candidates)
    for group, target in zip(groups, _targets(setting, [group.change for group in groups]), strict=True):
        effects = _effects(setting, target, group)
        effects *= target.root
        effects[0] += model.second_bias[:, None]
        yield group, effects


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Hidden rows that the target reads or may read.

    As the target reads it, a row is relu(root x input - floor), where `root` is 1 / root of the target's degree. The
    axes are (nodes, units, graphs), or (pairs, 1, units) where each row is that of one imagined pair in one graph.
    """

    square: Floats  # 1 / the node's degree
    inputs: Floats  # what the target's own input adds to a row for a root of 1
    floors: Floats  # -1 times the row without the target's input, before it is rectified
    messages: Floats  # what the node adds to the target's own first-layer sum

    def split(self, first: int) -> tuple["_Rows", "_Rows"]:
        """The first so many rows, and the others."""
        parts = self.square, self.inputs, self.floors, self.messages
        return _Rows(*(part[:first] for part in parts)), _Rows(*(part[first:] for part in parts))

    def activated(self, root: Floats) -> Floats:
        """The rows as the target reads them."""
        rows = self.inputs * root
        rows -= self.floors
        np.maximum(rows, 0, out=rows)
        return rows


class _Setting(NamedTuple):
    """Everything about a target and a list that does not depend on the degree of the target."""

    second: Floats  # (classes, units)
    first_bias: Floats  # (units, 1)
    degree: Numbers  # (graphs): the target's degree in each graph, self-loop included
    target_input: Floats  # (units, 1)
    first_sums: Floats  # (units, graphs): the target's first-layer sum over its neighbours
    known: _Rows  # rows of neighbours that the target has in all graphs: (neighbours, units, graphs)
    own: _Rows  # rows at the other ends of imagined pairs of the target: (pairs, 1, units)
    own_graph: Numbers  # (pairs)
    of_graph: sp.csr_array  # (graphs, pairs): which of these pairs each graph has
    deleted: Numbers  # (deletions): the neighbour that a deletion takes away
    added: _Rows  # rows of nodes that the target may be joined to: (additions, units, graphs)
    added_logits: Floats  # (additions, classes, graphs): their floors through the second layer
    masked: Floats  # (features, units, graphs): what a mask or a change takes from the target's input in every graph
    masked_logits: Floats  # (features, classes, units): the same through the second layer, for each unit alone
    masked_sums: Floats  # (features, classes, 1): sums of these over units

    @classmethod
    def of(
        cls, context: PublicContext, model: GCN, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
    ) -> "_Setting":
        variants = _Variants.of(context, law, imagined)
        deleted = places(imagined.neighbours, _other_ends(imagined.target, candidates.deletions))
        joined = _other_ends(imagined.target, candidates.additions)
        joined = joined[_is_added(imagined, candidates)]
        read = np.searchsorted(imagined.nodes, np.concatenate([imagined.neighbours, joined]))
        raised = np.concatenate([~imagined.in_snapshot, np.ones(len(joined), np.bool_)])
        known, added = variants.rows(read, raised, model.first_bias).split(len(imagined.neighbours))
        own = variants.rows_of_pairs(model.first_bias)
        of_graph = _pairs_of_graphs(imagined)
        second = np.ascontiguousarray(model.second.T)
        masked = taken_inputs(candidates, context.feature_row(candidates.target), model.first)
        masked_logits = masked[:, None] * second
        return cls(
            second=second,
            first_bias=model.first_bias[:, None],
            degree=np.diff(of_graph.indptr) + len(imagined.neighbours) + 1,
            target_input=variants.target_input[:, None],
            first_sums=known.messages.sum(axis=0) + (of_graph @ own.messages[:, 0]).T,
            known=known,
            own=own,
            own_graph=imagined.own_graph,
            of_graph=of_graph,
            deleted=deleted[deleted >= 0],
            added=added,
            added_logits=second @ added.floors,
            masked=np.ascontiguousarray(np.broadcast_to(masked[:, :, None], (*masked.shape, imagined.number))),
            masked_logits=masked_logits,
            masked_sums=masked_logits.sum(axis=2, keepdims=True),
        )


class _Target(NamedTuple):
    """The target at one degree: its own hidden row, and what it reads. Arrays are (units, graphs)."""

    root: Floats  # (graphs): 1 / root of the degree
    offset: Floats  # the target's own row before it is rectified
    own: Floats  # the target's own row, as it reads it
    known_rows: Floats  # (neighbours, units, graphs): the rows of neighbours that it has in all graphs
    sums: Floats  # what it reads in all
    slopes: Floats  # how fast the rows that it reads grow with its input


def _targets(setting: _Setting, changes: Sequence[int]) -> list[_Target]:
    """The target after each of some changes of its degree, computed together."""
    degrees = setting.degree + np.array(changes)[:, None]
    roots = (1 / np.sqrt(np.maximum(degrees, 1))).astype(np.float32)
    root = roots[:, None]
    offset = root * (setting.first_sums + root * setting.target_input) + setting.first_bias
    own = root * np.maximum(offset, 0)
    known, read = setting.known, setting.own
    known_rows = known.activated(root[:, None])
    # Of imagined pairs, rows and how fast they grow stand side by side, so that one product sums both up.
    rows = read.activated(roots.T[setting.own_graph][:, :, None])
    beside = np.stack([rows, (rows > 0) * read.square], axis=1)
    shape = beside.shape[1:]
    summed = (setting.of_graph @ beside.reshape(len(beside), prod(shape))).reshape(-1, *shape).transpose(1, 2, 3, 0)
    sums = known_rows.sum(axis=1) + summed[0] + own
    slopes = root * (((known_rows > 0) * known.square).sum(axis=1) + summed[1])
    return [_Target(*parts) for parts in zip(roots, offset, own, known_rows, sums, slopes, strict=True)]


def _effects(setting: _Setting, target: _Target, group: _Group) -> Floats:
    """Effects of a group's operations on what the second layer passes on: (operations, classes, graphs)."""
    second, root = setting.second, target.root
    own_logits = second @ target.own
    effects = [(second @ target.sums)[None]]
    if group.deletions is not None:
        removed = setting.deleted[group.deletions]
        messages = setting.known.messages[removed]
        kept = np.maximum(target.offset / root, messages) - messages
        effects.append(root**2 * (second @ kept) - second @ target.known_rows[removed] - own_logits)
    if group.additions is not None:
        rows = setting.added.inputs[group.additions] * root
        gained = second @ np.maximum(rows, setting.added.floors[group.additions], out=rows)
        np.maximum(setting.added.messages[group.additions], target.offset / -root, out=rows)
        gained += root**2 * (second @ rows)
        gained -= setting.added_logits[group.additions]
        gained += second @ (root * target.offset) - own_logits
        effects.append(gained)
    if group.masks is not None:
        masked_logits = setting.masked_logits[group.masks]
        masked = second @ np.maximum(setting.masked[group.masks], target.offset / root**2)
        masked -= setting.masked_sums[group.masks]
        masked *= root**3
        masked -= masked_logits @ target.slopes
        masked -= own_logits
        effects.append(masked)
    return np.concatenate(effects)


def _degree_changes(candidates: Candidates, imagined: Imagined) -> Numbers:
    """By how much each operation changes the target's degree.

    A deletion of a pair that is not in all graphs is believed to do nothing.
    """
    is_neighbour = among(imagined.neighbours, _other_ends(imagined.target, candidates.deletions))
    return np.concatenate([-is_neighbour.astype(np.int64), _is_added(imagined, candidates).astype(np.int64)])


def _is_added(imagined: Imagined, candidates: Candidates) -> Bools:
    """Whether each addition joins the target to a node that is not its neighbour yet."""
    joined = _other_ends(imagined.target, candidates.additions)
    return (joined >= 0) & ~among(imagined.neighbours, joined)


def _pairs_of_graphs(imagined: Imagined) -> sp.csr_array:
    """Which of the target's imagined pairs each graph has: (graphs, pairs)."""
    count = len(imagined.own_graph)
    ends = np.searchsorted(imagined.own_graph, np.arange(imagined.number + 1))
    return sp.csr_array((np.ones(count, np.float32), np.arange(count), ends), shape=(imagined.number, count))


def _other_ends(target: int, pairs: tuple[Pair, ...]) -> Numbers:
    """The other end of each pair that the target is part of; -1 for other pairs."""
    return np.array([one + other - target if target in (one, other) else -1 for one, other in pairs], np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Variants:
    """The variants of all nodes that the target may read, and which of them each graph has."""

    imagined: Imagined
    target_input: Floats  # (units)
    inputs: Floats  # (nodes, units)
    sums: Floats  # (variants, units): of neighbours' inputs, without the target's
    degrees: Numbers  # (variants): with the self-loop

    @classmethod
    def of(cls, context: PublicContext, law: HiddenDegrees, imagined: Imagined) -> "_Variants":
        """The inputs of neighbours are divided by the root of their expected degree."""
        nodes, target = imagined.nodes, np.array([imagined.target])
        target_input = _inputs(context, target)[0]
        known = _known_sums(context, law, nodes)
        from_target = inverse_roots(context, law, context.snapshot.degrees(target)) * target_input
        known[np.searchsorted(nodes, imagined.neighbours[imagined.in_snapshot])] -= from_target
        messages, count = _messages(context, law, imagined.far), len(imagined.hidden_partner)
        ends = np.concatenate([[0], np.cumsum(imagined.hidden_degree)])
        shape = (len(imagined.variant_row), len(messages))
        hidden = sp.csr_array((np.ones(count, np.float32), imagined.hidden_partner, ends), shape=shape)
        sums: Floats = hidden @ messages
        sums += known[imagined.variant_row]
        degrees = (public_degrees(context, nodes) + 1)[imagined.variant_row] + imagined.hidden_degree
        return cls(imagined, target_input, _inputs(context, nodes), sums, degrees)

    def rows(self, place: Numbers, raised: Bools, bias: Floats) -> _Rows:
        """Rows of nodes in every graph; the degrees of some are raised by a pair that the snapshot does not show."""
        variant = self.imagined.variant[:, place].T
        more = np.zeros(len(self.imagined.nodes), np.int64)
        more[place] = raised
        scale = (1 / np.sqrt(self.degrees + more[self.imagined.variant_row])).astype(np.float32)
        messages = self.inputs[place, :, None] * scale[variant][:, None]
        square = np.square(scale)[variant][:, None]
        floors = np.take(self._floors(scale, bias).T, variant, axis=1, mode="wrap").transpose(1, 0, 2)
        return _Rows(square, square * self.target_input[:, None], np.ascontiguousarray(floors), messages)

    def rows_of_pairs(self, bias: Floats) -> _Rows:
        """Rows at the other ends of the target's imagined pairs, which raise their degrees by one."""
        imagined = self.imagined
        variant = imagined.variant[imagined.own_graph, imagined.own_row]
        scale = (1 / np.sqrt(self.degrees + 1)).astype(np.float32)
        square = np.square(scale)[variant][:, None, None]
        messages = (scale[variant, None] * self.inputs[imagined.own_row])[:, None]
        return _Rows(square, square * self.target_input, self._floors(scale, bias)[variant][:, None], messages)

    def _floors(self, scale: Floats, bias: Floats) -> Floats:
        """-1 times the rows of all variants without the target's input: (variants, units)."""
        by_variant = scale[:, None]
        sums = self.sums + by_variant * self.inputs[self.imagined.variant_row]
        floors: Floats = -by_variant * (by_variant * sums + bias)
        return floors


def _known_sums(context: PublicContext, law: HiddenDegrees, nodes: Numbers) -> Floats:
    """Sums over the snapshot neighbours of nodes; those of the pool are kept."""
    place = places(pool_of(context).nodes, nodes)
    sums = _pool_sums(context, law)[place]
    elsewhere = np.flatnonzero(place < 0)
    if len(elsewhere):
        sums[elsewhere] = _sums_over_neighbours(context, law, nodes[elsewhere])
    return sums


@per_context(maxsize=2)
def _pool_sums(context: PublicContext, law: HiddenDegrees) -> Floats:
    return _sums_over_neighbours(context, law, pool_of(context).nodes)


def _sums_over_neighbours(context: PublicContext, law: HiddenDegrees, nodes: Numbers) -> Floats:
    """Sums of the inputs of snapshot neighbours, each divided by the root of its expected degree."""
    position, neighbour = some_neighbours(context.snapshot, nodes)
    degrees = context.snapshot.degrees(nodes)
    share = (degrees / np.maximum(np.bincount(position, minlength=len(nodes)), 1)).astype(np.float32)
    weights = inverse_roots(context, law, context.snapshot.degrees(neighbour)) * share[position]
    borders = np.searchsorted(position, np.arange(len(nodes) + 1))
    return _segment_sums(weights[:, None] * _inputs(context, neighbour), borders)


def _inputs(context: PublicContext, nodes: Numbers) -> Floats:
    """The first-layer inputs of nodes: their features times the first weights; those of the pool are kept."""
    if context.inputs is not None:
        return context.inputs[nodes]
    place = places(pool_of(context).nodes, nodes)
    inputs = _pool_inputs(context)[place]
    elsewhere = np.flatnonzero(place < 0)
    if len(elsewhere):
        inputs[elsewhere] = _computed_inputs(context, nodes[elsewhere])
    return inputs


@per_context(maxsize=1)
def _pool_inputs(context: PublicContext) -> Floats:
    return _computed_inputs(context, pool_of(context).nodes)


def _computed_inputs(context: PublicContext, nodes: Numbers) -> Floats:
    model = context.model
    assert isinstance(model, GCN)
    inputs: Floats = context.feature_rows(nodes) @ model.first
    return inputs


def _messages(context: PublicContext, law: HiddenDegrees, nodes: Numbers) -> Floats:
    """The same as `_pool_messages` for some nodes, those of the pool among them."""
    pool, kept = pool_of(context).nodes, _pool_messages(context, law)
    if len(nodes) == len(pool):
        return kept
    place = places(pool, nodes)
    found, elsewhere = kept[place], np.flatnonzero(place < 0)
    degrees = context.snapshot.degrees(nodes[elsewhere]) + 1
    found[elsewhere] = inverse_roots(context, law, degrees)[:, None] * _inputs(context, nodes[elsewhere])
    return found


@per_context(maxsize=2)
def _pool_messages(context: PublicContext, law: HiddenDegrees) -> Floats:
    """The inputs of the pool's nodes, divided by the root of the degree that each has if one more pair is its own."""
    pool = pool_of(context)
    messages: Floats = inverse_roots(context, law, pool.degrees + 1)[:, None] * _inputs(context, pool.nodes)
    return messages


def inverse_roots(context: PublicContext, law: HiddenDegrees, public_degrees: Numbers) -> Floats:
    """The expected inverse root of the degree, self-loop and hidden pairs included, by public degree."""
    found: Floats = _inverse_root_table(context, law)[public_degrees.clip(max=TABULATED - 1)]
    return found


@per_context(maxsize=2)
def _inverse_root_table(context: PublicContext, law: HiddenDegrees) -> Floats:
    degrees = np.repeat(np.arange(TABULATED), SAMPLES)
    hidden = law.sample(degrees, np.random.default_rng(context.seed))
    roots: Floats = (1 / np.sqrt(1 + degrees + hidden)).reshape(TABULATED, SAMPLES).mean(axis=1).astype(np.float32)
    return roots


def _segment_sums(values: Floats, borders: Numbers) -> Floats:
    """Sums of consecutive rows, from each border to below the next; zeros where there are none."""
    sums = np.zeros((len(borders) - 1, *values.shape[1:]), np.float32)
    filled = np.flatnonzero(np.diff(borders))
    if len(filled):
        sums[filled] = np.add.reduceat(values, borders[filled])
    return sums
