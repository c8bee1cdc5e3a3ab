"""A candidate list on imagined graphs: which margins it leaves there. One function per kind of model, in a table.

Zone: gate
Claim: margins are a function of the public context, the beliefs and the candidates.
Why: nothing here is given a private graph; the graphs that are evaluated are imagined from public data.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators.generic import evaluate_module_on_all
from privcfs.private.graph import PrivateGraph
from privcfs.private.one_thread import one_thread
from privcfs.public.beliefs.belief import margins_of
from privcfs.public.beliefs.gcn_outcomes import logits_on_imagined
from privcfs.public.beliefs.imagined import Beliefs, Imagined, imagine
from privcfs.public.beliefs.local_graphs import local_graphs
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs.public.models.model import Model
from privcfs.public.models.torch_module import TorchModel
from privcfs.tables.store import resting

Floats = NDArray[np.float32]
# At most so many logits of candidates on graphs are kept, so that a long list is rehearsed on fewer graphs.
MOST_OUTCOMES, LEAST_GRAPHS = 1 << 22, 8
# A torch module is run on the snapshot and on at most so many imagined graphs.
MODULE_GRAPHS = 16
# A margin that is not finite says nothing of the candidate, which is then believed not to be valid.
HOPELESS = 1e6


def margins_on_imagined(
    context: PublicContext, beliefs: Beliefs, candidates: Candidates, number: int, desired: int | None
) -> Floats:
    """Margins (graphs, candidates) on the snapshot and on up to `number` imagined graphs.

    A margin is below 0 where a candidate is valid.
    """
    number = min(number, max(MOST_OUTCOMES // len(candidates), LEAST_GRAPHS))
    with one_thread(), resting(), np.errstate(all="ignore"):
        imagined = imagine(context, beliefs, candidates, number)
        logits = REHEARSED[type(context.model)](context, beliefs, imagined, candidates)
        margins = margins_of(logits, desired)
    finite: Floats = np.nan_to_num(margins, copy=False, nan=HOPELESS, posinf=HOPELESS, neginf=-HOPELESS)
    return finite


def _gcn(context: PublicContext, beliefs: Beliefs, imagined: Imagined, candidates: Candidates) -> Floats:
    return logits_on_imagined(context, beliefs.hidden_degrees, imagined, candidates)


def _module(context: PublicContext, __: Beliefs, imagined: Imagined, candidates: Candidates) -> Floats:
    local = local_graphs(context, imagined, candidates, 1 + MODULE_GRAPHS)
    graphs = [PrivateGraph.from_pairs(pairs, local.features.shape[0]) for pairs in local.pairs]
    try:
        outcomes = evaluate_module_on_all(graphs, local, local.candidates, UNLIMITED)
    except ArithmeticError:  # The model's values are not finite, so nothing is believed to be valid.
        return np.full((len(candidates), context.number_of_classes, len(graphs)), np.nan, np.float32)
    return np.stack([one.logits.T for one in outcomes], axis=2)


REHEARSED: Mapping[type[Model], Callable[[PublicContext, Beliefs, Imagined, Candidates], Floats]] = {
    GCN: _gcn,
    TorchModel: _module,
}
