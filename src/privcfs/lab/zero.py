"""Row zero: what a guess from public data alone achieves, beside the release that must beat it."""

import numpy as np

from privcfs.embedded import NAMES, Dataset, load_dataset
from privcfs.lab.inspection import inspect
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext

PRICES = ("1", "8")


def zero_rows(most: int) -> list[tuple[str, ...]]:
    """One row per data set and backbone: ceiling, public guess, releases."""
    rows = []
    for data in map(load_dataset, NAMES):
        for trained_on, context in (("all edges", data.paper_context()), ("the snapshot", data.context())):
            rates = _rates(data, context, most)
            rows.append((data.name, trained_on, str(len(data.test[:most])), *(f"{rate:.3f}" for rate in rates)))
    return rows


def _rates(data: Dataset, context: PublicContext, most: int) -> list[float]:
    """Shares of flipped targets: any candidate, the public guess, releases at each price."""
    graph = data.private_graph()
    snapshot = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=context.number_of_nodes)
    rates = []
    for target in data.test[:most]:
        truth = inspect(graph, context, int(target))
        guess = int(np.argmax(inspect(snapshot, context, int(target)).utilities))
        chances = [float(truth.probabilities(price) @ truth.flips) for price in PRICES]
        rates.append([truth.flips.any(), truth.flips[guess], *chances])
    return [float(rate) for rate in np.mean(rates, axis=0)]
