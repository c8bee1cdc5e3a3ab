"""A candidate list on all imagined graphs of a target at once, for a two-layer GCN.

The effects of single operations on the target's logits are computed for each graph and for each degree that the target
may have afterwards; the effects of a set of operations are added up. Two approximations make this fast: the target's own
hidden row is treated as if the operations of a set acted on it one at a time, and a hidden row does not follow a change of
degree at the far end of its other pairs. On the private graph the list is evaluated exactly; this is belief.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.hidden_degrees import HiddenDegrees
from privcfs.public.beliefs.imagined import VARIANTS, Imagined, ends_beside
from privcfs.public.beliefs.pool import pool_of
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs.public.nearby import some_neighbours
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import places

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# The mean inverse root of a degree is tabulated for public degrees up to this one, from so many samples each.
TABULATED, SAMPLES = 512, 256


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Hidden rows of nodes in the pre-activation before the target's input: scale x (sums + own input) + bias."""

    scale: Floats  # (...): 1 / root of the node's degree
    offsets: Floats  # (..., units)
    message: Floats  # (..., units): what the node adds to the target's own first-layer sum

    def activated(self, target_input: Floats, root: Floats) -> Floats:
        """The rows as the target reads them; `root` is 1 / root of the target's degree, of the rows' shape."""
        scale = self.scale[..., None]
        rows: Floats = np.maximum(self.offsets + scale * root[..., None] * target_input, 0)
        rows *= scale
        return rows


def logits_on_imagined(
    context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
) -> Floats:
    """Logits of the target under every candidate on every imagined graph: (candidates, classes, graphs)."""
    model = context.model
    assert isinstance(model, GCN)
    setting = _Setting.of(context, law, imagined, candidates)
    changes = _degree_changes(candidates, context)
    pair_sets = membership(candidates.pair_sets, len(candidates.deletions) + len(candidates.additions))
    change_of_set = pair_sets @ changes
    pair_set, feature_set = candidates.parts()
    feature_sets = membership(candidates.feature_sets, len(candidates.features))
    logits = np.empty((len(candidates), model.number_of_classes, imagined.number), np.float32)
    for change in np.unique(change_of_set):
        chosen = np.flatnonzero(change_of_set[pair_set] == change)
        root = (1 / np.sqrt(np.maximum(setting.degree + change, 1))).astype(np.float32)
        effects = _effects(setting, root, model)
        sets = np.concatenate([pair_sets[pair_set[chosen]], feature_sets[feature_set[chosen]]], axis=1)
        weights = np.concatenate([np.ones((len(chosen), 1), np.float32), sets.astype(np.float32)], axis=1)
        summed = (weights @ effects.reshape(len(effects), -1)).reshape(len(chosen), *effects.shape[1:])
        logits[chosen] = summed * root + model.second_bias[:, None]
    return logits


class _Setting(NamedTuple):
    """Everything about a target and a list that does not depend on the degree of the target."""

    degree: Numbers  # (graphs): the target's degree in each graph, self-loop included
    target_input: Floats  # (units)
    read: _Rows  # (entries): rows that the target reads, in order of graphs
    graph: Numbers  # (entries): the graph of each entry
    borders: Numbers  # (graphs + 1): where the entries of each graph begin
    deleted: Numbers  # (graphs, deletions): the entry that a deletion removes, or -1
    added: _Rows  # (graphs, additions)
    is_added: Floats  # (additions): 1 for additions of a pair of the target, 0 for others, which are left out
    masked_inputs: Floats  # (features, units): what a mask takes from the target's input
    first_sums: Floats  # (graphs, units): the target's first-layer sum over its neighbours

    @classmethod
    def of(
        cls, context: PublicContext, law: HiddenDegrees, imagined: Imagined, candidates: Candidates
    ) -> "_Setting":
        graphs, count = imagined.number, len(imagined.neighbours)
        sums, inputs, degrees = _first_layer(context, law, imagined)
        known = np.searchsorted(imagined.nodes, imagined.neighbours)
        graph = np.concatenate([np.repeat(np.arange(graphs), count), imagined.own_graph])
        row = np.concatenate([np.tile(known, graphs), imagined.own_row])
        order = np.argsort(graph, kind="stable")
        graph, row, is_own = graph[order], row[order], order >= graphs * count
        variant = imagined.variant[graph, row]
        read = _rows(sums[row, variant], inputs[row], degrees[row, variant] + is_own, context.model)
        own_degrees = np.bincount(imagined.own_graph, minlength=graphs)
        borders = np.concatenate([[0], np.cumsum(own_degrees + count)])
        joined = np.array([one + other - imagined.target for one, other in candidates.additions], np.int64)
        is_joined = np.array([imagined.target in pair for pair in candidates.additions], np.bool_)
        place = np.searchsorted(imagined.nodes, joined).clip(max=max(len(imagined.nodes) - 1, 0)) * is_joined
        chosen = imagined.variant[:, place]
        added = _rows(sums[place, chosen], inputs[place], degrees[place, chosen] + 1, context.model)
        return cls(
            degree=own_degrees + count + 1,
            target_input=_inputs(context, np.array([imagined.target]))[0],
            read=read,
            graph=graph,
            borders=borders,
            deleted=_deleted(imagined, candidates, borders),
            added=added,
            is_added=is_joined.astype(np.float32),
            masked_inputs=_masked_inputs(context, candidates),
            first_sums=_segment_sums(read.message, borders),
        )


def _effects(setting: _Setting, root: Floats, model: GCN) -> Floats:
    """Effects on the logits before the last division by the root of the target's degree: (1 + operations, C, graphs).

    The first entry is the target without operations, then follow deletions, additions and masks of one feature.
    """
    scale = root[setting.graph]
    rows = setting.read.activated(setting.target_input, scale)
    own_offset = root[:, None] * setting.first_sums + (root * root)[:, None] * setting.target_input + model.first_bias
    own = np.maximum(own_offset, 0)
    base = _segment_sums(rows, setting.borders) + root[:, None] * own
    padded_rows, padded_messages = (
        np.concatenate([one, np.zeros_like(one[:1])]) if len(one) else np.zeros((1, len(model.first_bias)), np.float32)
        for one in (rows, setting.read.message)
    )
    added = setting.added.activated(setting.target_input, np.broadcast_to(root[:, None], setting.added.scale.shape))
    messages = np.concatenate([-padded_messages[setting.deleted], setting.added.message], axis=1)
    own_changes = np.maximum(own_offset[:, None] + root[:, None, None] * messages, 0) - own[:, None]
    pairs = np.concatenate([-padded_rows[setting.deleted], added], axis=1) + root[:, None, None] * own_changes
    pairs[:, setting.deleted.shape[1] :] *= setting.is_added[:, None]
    slopes = _segment_sums((rows > 0) * (setting.read.scale**2 * scale)[:, None], setting.borders)
    masked_own = own_offset[:, None] - (root * root)[:, None, None] * setting.masked_inputs
    masks = root[:, None, None] * (np.maximum(masked_own, 0) - own[:, None]) - slopes[:, None] * setting.masked_inputs
    effects = np.concatenate([base[:, None], pairs, masks], axis=1) @ model.second
    return np.ascontiguousarray(effects.transpose(1, 2, 0), np.float32)


def _degree_changes(candidates: Candidates, context: PublicContext) -> Numbers:
    """By how much each operation changes the target's degree; a deletion outside the snapshot is believed to do nothing."""
    neighbours = set(context.snapshot.neighbours(candidates.target))
    ends = [[one + other - candidates.target if candidates.target in (one, other) else -1 for one, other in pairs]
            for pairs in (candidates.deletions, candidates.additions)]
    return np.array([-(end in neighbours) for end in ends[0]] + [int(end >= 0) for end in ends[1]], np.int64)


def _deleted(imagined: Imagined, candidates: Candidates, borders: Numbers) -> Numbers:
    """The entry that each deletion removes in each graph; -1 for a pair that is not the target's or not in the snapshot."""
    ends = [one + other - imagined.target if imagined.target in (one, other) else -1 for one, other in candidates.deletions]
    place = places(imagined.neighbours, np.array(ends, np.int64))
    return np.where(place >= 0, borders[:-1, None] + place, -1)


def _rows(sums: Floats, inputs: Floats, degrees: Numbers, model: object) -> _Rows:
    """Rows of nodes with these sums of neighbours' inputs, inputs of their own, and degrees, self-loop included."""
    assert isinstance(model, GCN)
    scale = (1 / np.sqrt(degrees)).astype(np.float32)
    message = scale[..., None] * inputs
    return _Rows(scale, scale[..., None] * (sums + message) + model.first_bias, message)


def _first_layer(context: PublicContext, law: HiddenDegrees, imagined: Imagined) -> tuple[Floats, Floats, Numbers]:
    """Of each node and variant: the sum of its neighbours' inputs without the target, its input, and its degree.

    The inputs of neighbours are divided by the root of their expected degree. Degrees include the self-loop.
    """
    nodes, snapshot = imagined.nodes, context.snapshot
    position, neighbour = some_neighbours(snapshot, nodes)
    degrees = snapshot.degrees(nodes)
    share = (degrees / np.maximum(np.bincount(position, minlength=len(nodes)), 1)).astype(np.float32)
    weights = inverse_roots(context, law, snapshot.degrees(neighbour)) * share[position] * (neighbour != imagined.target)
    known = _segment_sums(
        weights[:, None] * _inputs(context, neighbour), np.searchsorted(position, np.arange(len(nodes) + 1))
    )
    borders = np.searchsorted(imagined.hidden_owner, np.arange(len(nodes) * VARIANTS + 1))
    hidden = _segment_sums(_pool_messages(context, law)[imagined.hidden_partner], borders)
    sums = known[:, None] + hidden.reshape(len(nodes), VARIANTS, -1)
    return sums, _inputs(context, nodes), (degrees + 1)[:, None] + imagined.hidden_degree


def _masked_inputs(context: PublicContext, candidates: Candidates) -> Floats:
    """What masking each feature takes from the target's first-layer input: (features, units)."""
    model = context.model
    assert isinstance(model, GCN)
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
