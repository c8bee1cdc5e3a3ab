"""A candidate list on imagined graphs: which margins it leaves there. One function per kind of model, in a table.

Zone: private
Claim: margins are a function of the public context, the beliefs, the candidates and, where they are given, the own
    edges of the target; of no other edge.
Why: nothing here is given a private graph. The graphs that are evaluated are imagined from public data around the
    target's own edges, which are given as a value that holds nothing else, or are imagined too. Nothing is kept.
Check: tests/claims/test_own_edges.py::test_pairs_elsewhere_leave_the_law_of_a_release_identical
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators.generic import evaluate_module_on_all
from privcfs.private.graph import OwnEdges, PrivateGraph
from privcfs.private.one_thread import one_thread
from privcfs.public.beliefs.belief import margins_of
from privcfs.public.beliefs.gcn_outcomes import logits_on_imagined, margins_on_graphs
from privcfs.public.beliefs.imagined import Beliefs, Imagined, Sampling, imagine
from privcfs.public.beliefs.learned import drawn_together
from privcfs.public.beliefs.local_graphs import local_graphs
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal
from privcfs.public.models.gcn import GCN
from privcfs.public.models.model import Model
from privcfs.public.models.torch_module import TorchModel
from privcfs.tables.store import resting

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# At most so many logits of candidates on graphs are kept, so that a long list is rehearsed on fewer graphs.
MOST_OUTCOMES, LEAST_GRAPHS = 1 << 22, 8
# A torch module is run on the snapshot and on at most so many imagined graphs.
MODULE_GRAPHS = 16
# A margin that is not finite says nothing of the candidate, which is then believed not to be valid.
HOPELESS = 1e6


class OnImagined(NamedTuple):
    """What a list does on imagined graphs.

    `margins` (graphs, candidates) are below 0 where a candidate is valid. `original` is the class that each graph gives
    to the target without any change.
    """

    margins: Floats
    original: Numbers


def evaluate_on_imagined(
    context: PublicContext,
    beliefs: Beliefs,
    candidates: Candidates,
    sampling: Sampling,
    desired: Goal = None,
    own: OwnEdges | None = None,
    blend: float = 0.0,
) -> OnImagined:
    """Evaluates a list on the snapshot and on imagined graphs.

    Args:
        context: The public context.
        beliefs: What is believed of hidden pairs.
        candidates: The list.
        sampling: How many graphs are imagined; fewer for a long list.
        desired: The class or classes that a valid candidate leads to; by default any other than the original one.
        own: The target's own edges, where they are read; by default they are imagined.
        blend: How far the logits of each graph are drawn towards those of the snapshot; by default not at all.

    Returns:
        Margins and original classes, the snapshot's first.
    """
    if blend:
        logits = drawn_together(logits_of_imagined(context, beliefs, candidates, sampling, own), blend)
        found = OnImagined(margins_of(logits, desired), np.nan_to_num(logits[0]).argmax(axis=0))
    else:
        with one_thread(), resting(), np.errstate(all="ignore"):
            imagined = _imagined(context, beliefs, candidates, sampling, own)
            found = REHEARSED[type(context.model)].margins(context, beliefs, imagined, candidates, desired)
    if not np.isfinite(found.margins).all():
        np.nan_to_num(found.margins, copy=False, nan=HOPELESS, posinf=HOPELESS, neginf=-HOPELESS)
    return found


def logits_of_imagined(
    context: PublicContext,
    beliefs: Beliefs,
    candidates: Candidates,
    sampling: Sampling,
    own: OwnEdges | None = None,
) -> Floats:
    """The logits of the target under each candidate on each imagined graph: (candidates, classes, graphs)."""
    with one_thread(), resting(), np.errstate(all="ignore"):
        imagined = _imagined(context, beliefs, candidates, sampling, own)
        return REHEARSED[type(context.model)].logits(context, beliefs, imagined, candidates)


def classes_on_imagined(
    context: PublicContext, beliefs: Beliefs, candidates: Candidates, sampling: Sampling, blend: float = 0.0
) -> Numbers:
    """The class of the target under each candidate on each imagined graph: (candidates, graphs)."""
    logits = logits_of_imagined(context, beliefs, candidates, sampling)
    logits = drawn_together(logits, blend) if blend else logits
    classes: Numbers = np.nan_to_num(logits).argmax(axis=1)
    return classes


def _imagined(
    context: PublicContext, beliefs: Beliefs, candidates: Candidates, sampling: Sampling, own: OwnEdges | None
) -> Imagined:
    """Graphs around the target; fewer for a long list."""
    sampling = sampling.at_most(max(MOST_OUTCOMES // len(candidates), LEAST_GRAPHS))
    return imagine(context, beliefs, candidates, sampling, None if own is None else own.neighbours)


def _gcn(
    context: PublicContext, beliefs: Beliefs, imagined: Imagined, candidates: Candidates, desired: Goal
) -> OnImagined:
    return OnImagined(*margins_on_graphs(context, beliefs.hidden_degrees, imagined, candidates, desired))


def _gcn_logits(context: PublicContext, beliefs: Beliefs, imagined: Imagined, candidates: Candidates) -> Floats:
    return logits_on_imagined(context, beliefs.hidden_degrees, imagined, candidates)


def _module(
    context: PublicContext, beliefs: Beliefs, imagined: Imagined, candidates: Candidates, desired: Goal
) -> OnImagined:
    logits = _module_logits(context, beliefs, imagined, candidates)
    return OnImagined(margins_of(logits, desired), np.nan_to_num(logits[0]).argmax(axis=0))


def _module_logits(context: PublicContext, __: Beliefs, imagined: Imagined, candidates: Candidates) -> Floats:
    local = local_graphs(context, imagined, candidates, 1 + MODULE_GRAPHS)
    graphs = [PrivateGraph.from_pairs(pairs, local.features.shape[0]) for pairs in local.pairs]
    try:
        outcomes = evaluate_module_on_all(graphs, local, local.candidates, UNLIMITED)
    except ArithmeticError:  # The model's values are not finite, so nothing is believed to be valid.
        return np.full((len(candidates), context.number_of_classes, len(graphs)), np.nan, np.float32)
    return np.stack([one.logits.T for one in outcomes], axis=2)


class Rehearsed(NamedTuple):
    """How lists are evaluated on imagined graphs for one kind of model: margins, and logits where these are wanted."""

    margins: Callable[[PublicContext, Beliefs, Imagined, Candidates, Goal], OnImagined]
    logits: Callable[[PublicContext, Beliefs, Imagined, Candidates], Floats]


REHEARSED: Mapping[type[Model], Rehearsed] = {
    GCN: Rehearsed(_gcn, _gcn_logits),
    TorchModel: Rehearsed(_module, _module_logits),
}
