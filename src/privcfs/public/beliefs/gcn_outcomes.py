"""A candidate list on all imagined graphs of a target at once, for a two-layer GCN.

The effects of single operations on the target's logits are computed for each graph and for each degree that the target
may have afterwards; the effects of a set of operations are added up. Two approximations make this fast. The target's
own hidden row is treated as if the operations of a set acted on it one at a time. A hidden row does not follow a change
of degree at the far end of its other pairs. On the private graph the list is evaluated exactly; this is belief.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.hidden_degrees import HiddenDegrees
from privcfs.public.beliefs.imagined import Imagined
from privcfs.public.beliefs.pool import pool_of
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair
from privcfs.public.models.gcn import GCN
from privcfs.public.nearby import some_neighbours
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import places

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# The mean inverse root of a degree is tabulated for public degrees up to this one, from so many samples each.
TABULATED, SAMPLES = 512, 256


def logits_on_imagined(
    context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
) -> Floats:
    """Logits of the target under every candidate on every imagined graph: (candidates, classes, graphs)."""
    model = context.model
    assert isinstance(model, GCN)
    setting = _Setting.of(context, model, law, imagined, candidates)
    pair_sets = membership(candidates.pair_sets, len(candidates.deletions) + len(candidates.additions))
    feature_sets = membership(candidates.feature_sets, len(candidates.features))
    changes = pair_sets @ _degree_changes(candidates, context)
    pair_set, feature_set = candidates.parts()
    logits = np.empty((len(candidates), model.number_of_classes, imagined.number), np.float32)
    for change in np.unique(changes):
        chosen = np.flatnonzero(changes[pair_set] == change)
        root = (1 / np.sqrt(np.maximum(setting.degree + change, 1))).astype(np.float32)
        operations = np.concatenate(
            [np.ones((len(chosen), 1), np.bool_), pair_sets[pair_set[chosen]], feature_sets[feature_set[chosen]]],
            axis=1,
        )
        used: Bools = operations.sum(axis=0) > 0
        effects = _effects(setting, root, used, model)
        weights = operations[:, used].astype(np.float32)
        logits[chosen] = (weights @ effects.reshape(len(effects), -1)).reshape(len(chosen), *effects.shape[1:])
    logits += model.second_bias[:, None]
    return logits


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Hidden rows that the target reads or may read.

    A row is scale x relu(offset + scale x root x the target's input), where `root` is 1 / root of the target's degree.
    """

    scale: Floats  # (..., 1): 1 / root of the node's degree
    offsets: Floats  # (..., units): the pre-activation without the target's input
    messages: Floats  # (..., units): what the node adds to the target's own first-layer sum

    @classmethod
    def of(cls, sums: Floats, inputs: Floats, degrees: Numbers, bias: Floats) -> "_Rows":
        """Rows of nodes with these sums of neighbours' inputs, inputs of their own, and degrees with the self-loop."""
        scale = (1 / np.sqrt(degrees)).astype(np.float32)[..., None]
        messages = scale * inputs
        return cls(scale, scale * (sums + messages) + bias, messages)

    def only(self, columns: Numbers) -> "_Rows":
        """The rows in some columns of the second axis, which are ascending."""
        if len(columns) == self.scale.shape[1]:
            return self
        return _Rows(self.scale[:, columns], self.offsets[:, columns], self.messages[:, columns])

    def activated(self, target_input: Floats, root: Floats) -> Floats:
        """The rows as the target reads them; `root` has the shape of `scale`."""
        rows = (self.scale * root) * target_input
        rows += self.offsets
        np.maximum(rows, 0, out=rows)
        rows *= self.scale
        return rows


class _Setting(NamedTuple):
    """Everything about a target and a list that does not depend on the degree of the target."""

    degree: Numbers  # (graphs): the target's degree in each graph, self-loop included
    target_input: Floats  # (units)
    read: _Rows  # (entries): rows that the target reads, in order of graphs
    graph: Numbers  # (entries): the graph of each entry
    borders: Numbers  # (graphs + 1): where the entries of each graph begin
    deleted: Numbers  # (graphs, deletions): the entry that a deletion removes; the entry after the last for none
    added: _Rows  # (graphs, additions)
    is_added: Bools  # (additions): whether an addition is a pair of the target; others are left out
    masked_inputs: Floats  # (features, units): what a mask takes from the target's input
    first_sums: Floats  # (graphs, units): the target's first-layer sum over its neighbours

    @classmethod
    def of(
        cls, context: PublicContext, model: GCN, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
    ) -> "_Setting":
        graphs, count = imagined.number, len(imagined.neighbours)
        sums, inputs, degrees = _first_layer(context, law, imagined)
        known = np.searchsorted(imagined.nodes, imagined.neighbours)
        graph = np.concatenate([np.repeat(np.arange(graphs), count), imagined.own_graph])
        row = np.concatenate([np.tile(known, graphs), imagined.own_row])
        order = np.argsort(graph, kind="stable")
        graph, row, is_own = graph[order], row[order], order >= graphs * count
        variant = imagined.variant[graph, row]
        read = _Rows.of(sums[variant], inputs[row], degrees[variant] + is_own, model.first_bias)
        own_degrees = np.bincount(imagined.own_graph, minlength=graphs)
        borders = np.concatenate([[0], np.cumsum(own_degrees + count)])
        joined = _other_ends(imagined.target, candidates.additions)
        place = np.searchsorted(imagined.nodes, joined)
        chosen = imagined.variant[:, place]
        return cls(
            degree=own_degrees + count + 1,
            target_input=_inputs(context, np.array([imagined.target]))[0],
            read=read,
            graph=graph,
            borders=borders,
            deleted=_deleted(imagined, candidates, borders),
            added=_Rows.of(sums[chosen], inputs[place], degrees[chosen] + 1, model.first_bias),
            is_added=joined >= 0,
            masked_inputs=_masked_inputs(context, model, candidates),
            first_sums=_segment_sums(read.messages, borders),
        )


def _effects(setting: _Setting, root: Floats, used: Bools, model: GCN) -> Floats:
    """Effects on the target's logits where its degree is 1 / root squared: (used operations, classes, graphs).

    The first entry is the target without operations, then follow deletions, additions and masks of one feature, as far
    as they are `used`.
    """
    by_graph, each = root[:, None], root[:, None, None]
    first_addition = 1 + setting.deleted.shape[1]
    first_mask = first_addition + len(setting.is_added)
    deletions, additions = np.flatnonzero(used[1:first_addition]), np.flatnonzero(used[first_addition:first_mask])
    masks = np.flatnonzero(used[first_mask:])
    rows = setting.read.activated(setting.target_input, by_graph[setting.graph])
    own_offset = by_graph * (setting.first_sums + by_graph * setting.target_input) + model.first_bias
    own = by_graph * np.maximum(own_offset, 0)
    effects = [(_segment_sums(rows, setting.borders) + own)[:, None]]
    if len(deletions):
        entries = setting.deleted[:, deletions]
        removed = _own_change(root, own_offset, own, -_padded(setting.read.messages)[entries])
        effects.append(removed - _padded(rows)[entries])
    if len(additions):
        added = setting.added.only(additions)
        joined = _own_change(root, own_offset, own, added.messages)
        joined += added.activated(setting.target_input, each)
        effects.append(joined * setting.is_added[additions, None])
    if len(masks):
        slopes = _segment_sums((rows > 0) * (setting.read.scale**2 * by_graph[setting.graph]), setting.borders)
        masked = _own_change(root, own_offset, own, -each * setting.masked_inputs[masks])
        effects.append(masked - slopes[:, None] * setting.masked_inputs[masks])
    hidden = np.concatenate(effects, axis=1)
    hidden *= each
    by_class: Floats = (hidden.reshape(-1, own.shape[1]) @ model.second).reshape(*hidden.shape[:2], -1)
    return np.ascontiguousarray(by_class.transpose(1, 2, 0))


def _own_change(root: Floats, offset: Floats, own: Floats, added: Floats) -> Floats:
    """What the target's own row, as it reads it, gains if `added` comes to its first-layer sum."""
    change = root[:, None, None] * added
    change += offset[:, None]
    np.maximum(change, 0, out=change)
    change *= root[:, None, None]
    change -= own[:, None]
    return change


def _padded(rows: Floats) -> Floats:
    """The same rows and a row of zeros, for operations that do nothing."""
    return np.concatenate([rows, np.zeros((1, rows.shape[1]), np.float32)])


def _degree_changes(candidates: Candidates, context: PublicContext) -> Numbers:
    """By how much each operation changes the target's degree.

    A deletion of a pair outside the snapshot is believed to do nothing.
    """
    deleted, added = (_other_ends(candidates.target, pairs) for pairs in (candidates.deletions, candidates.additions))
    is_neighbour = np.isin(deleted, context.snapshot.neighbours(candidates.target))
    return np.concatenate([-is_neighbour.astype(np.int64), (added >= 0).astype(np.int64)])


def _deleted(imagined: Imagined, candidates: Candidates, borders: Numbers) -> Numbers:
    """The entry that each deletion removes in each graph: the neighbours of each graph are its first entries."""
    place = places(imagined.neighbours, _other_ends(imagined.target, candidates.deletions))
    entries: Numbers = np.where(place >= 0, borders[:-1, None] + place, borders[-1])
    return entries


def _other_ends(target: int, pairs: tuple[Pair, ...]) -> Numbers:
    """The other end of each pair that the target is part of; -1 for other pairs."""
    return np.array([one + other - target if target in (one, other) else -1 for one, other in pairs], np.int64)


def _first_layer(context: PublicContext, law: HiddenDegrees, imagined: Imagined) -> tuple[Floats, Floats, Numbers]:
    """Sums of neighbours' inputs for each variant, without the target's; inputs of nodes; degrees of variants.

    The inputs of neighbours are divided by the root of their expected degree. Degrees include the self-loop.
    """
    nodes, target = imagined.nodes, np.array([imagined.target])
    known = _known_sums(context, law, nodes)
    from_target = inverse_roots(context, law, context.snapshot.degrees(target))[:, None] * _inputs(context, target)
    known[np.searchsorted(nodes, imagined.neighbours)] -= from_target
    borders = np.concatenate([[0], np.cumsum(imagined.hidden_degree)])
    sums = _segment_sums(_pool_messages(context, law)[imagined.hidden_partner], borders)
    sums += known[imagined.variant_row]
    degrees = context.snapshot.degrees(nodes) + 1
    return sums, _inputs(context, nodes), degrees[imagined.variant_row] + imagined.hidden_degree


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


def _masked_inputs(context: PublicContext, model: GCN, candidates: Candidates) -> Floats:
    """What masking each feature takes from the target's first-layer input: (features, units)."""
    numbers, values = context.feature_row(candidates.target)
    features = np.array(candidates.features, np.int64)
    value = np.append(values, np.float32(0))[places(numbers, features)]
    taken: Floats = value[:, None] * model.first[features]
    return taken


def _inputs(context: PublicContext, nodes: Numbers) -> Floats:
    """The first-layer inputs of nodes: their features times the first weights."""
    if context.inputs is not None:
        return context.inputs[nodes]
    model = context.model
    assert isinstance(model, GCN)
    inputs: Floats = context.feature_rows(nodes) @ model.first
    return inputs


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
