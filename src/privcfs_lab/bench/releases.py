"""Whole releases: where their time goes, long lists, many targets."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from privcfs.embedded import Dataset
from privcfs.gate.accounting import Limit
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.learning import learned
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import Method
from privcfs.gate.questions import release as release_module
from privcfs.gate.vault import Vault
from privcfs.private import reader as reader_module
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.public.beliefs.imagined import Sampling, imagine
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs_lab.bench.kernel import TARGET, candidate_flops, fully_public
from privcfs_lab.bench.part import Extent, Part
from privcfs_lab.bench.timing import MATRIX, Spent, median, multiply, once, spent, stopwatch
from privcfs_lab.figures.bench import Split, draw_split
from privcfs_lab.figures.page import Picture

GUIDED = 50  # targets whose first guided release is timed


def releases_part(data: Dataset, extent: Extent) -> Part:
    """One release split into its steps, by the paper's method and by the default."""
    with threadpool_limits(1):
        public = fully_public(data, data.private_graph(), data.model("snapshot"))
        paper = _split("paper's list and mechanism", data, public, Method(), extent.repeats)
        guided = _split("guided, rehearsed before", data, data.context(), None, extent.repeats)
        first, (over, fixed) = _guided_first(data), _rehearsal_over_arithmetic(data)
        advice = _advice(data)
        long, seconds = _longest(data)
    rows = [
        ("release of the paper's list: propose", f"{paper.propose:.2f} ms", "-"),
        ("... charge, durable", f"{paper.charge:.2f} ms", "-"),
        ("... evaluate", f"{paper.evaluate:.2f} ms", "-"),
        ("... draw", f"{paper.draw:.2f} ms", "-"),
        ("... score, certificate, keeping it", f"{paper.rest:.2f} ms", "-"),
        ("... whole", f"{paper.whole:.1f} ms", "at most 15 ms"),
        ("the paper, one target, RTX 4090", "2,100 and 4,100 ms", "-"),
        ("guided release, first of a target and price", str(first), "at most 10 ms of work"),
        ("advice about a node, first and free", str(advice), "at most 15 ms"),
        ("rehearsal over its own arithmetic at the sgemm rate", f"{over:.1f}", "at most 5"),
        ("... what a rehearsal on one imagined graph takes, over the same", f"{fixed:.1f}", "-"),
        ("guided release, rehearsed before", f"{guided.whole:.1f} ms", "-"),
        (f"a list of {long:,} candidates: whole release", f"{seconds:.1f} s", "-"),
    ]
    words = "Where the time of a release goes: propose, charge, evaluate, draw, the rest."
    return Part(rows, [Picture(words, lambda: draw_split([paper, guided]))])


@contextmanager
def fresh_ledger() -> Iterator[Ledger]:
    """A ledger in a file of its own, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield open_ledger(f"sqlite:///{Path(folder) / 'bench.db'}", Limit.of("100000000"))


def _split(name: str, data: Dataset, context: PublicContext, method: Method | None, repeats: int) -> Split:
    with fresh_ledger() as ledger:
        vault = Vault(data.private_graph(), context, ledger=ledger, simulation=True, method=method)
        vault.release(TARGET, "1")
        spots = {
            "propose": (release_module, "lay_out"),
            "charge": (type(ledger), "charge_all"),
            "evaluate": (reader_module, "evaluate"),
            "draw": (Exponential if method else SubsetSelection, "draw"),
        }
        with stopwatch(spots) as seconds:
            whole = median(lambda: vault.release(TARGET, "1"), repeats)
        propose, charge, evaluate, draw = (1e3 * float(np.median(seconds[step])) for step in spots)
        return Split(name, propose, charge, evaluate, draw, 1e3 * whole)


def _guided_first(data: Dataset) -> Spent:
    """A guided release with its rehearsal: the first of a target and a price."""
    with fresh_ledger() as ledger:
        vault = Vault(data.private_graph(), data.context(), ledger=ledger, simulation=True)
        vault.release(0, "1")
        return Spent.median([spent(partial(vault.release, target, "1")) for target in data.test[:GUIDED].tolist()])


def _advice(data: Dataset) -> Spent:
    """Advice for persons who ask for the first time."""
    with fresh_ledger() as ledger:
        graph, context = data.private_graph(), data.context()
        vault = Vault(graph, context, ledger=ledger, simulation=True, people_know_their_edges=True)
        vault.advise(0)
        return Spent.median([spent(partial(vault.advise, target)) for target in data.test[:GUIDED].tolist()])


def _rehearsal_over_arithmetic(data: Dataset) -> tuple[float, float]:
    """A rehearsal over the arithmetic of each candidate by itself on each imagined graph, at the sgemm rate.

    The second number has the time on a single imagined graph over the same arithmetic. That is the limit of what is
    written in NumPy: the cost of calls, which does not grow with the number of graphs.
    """
    context, model, worlds = data.context(), data.model("snapshot"), Rehearsal().worlds
    beliefs, peak = learned(context, worlds).beliefs, 2 * MATRIX**3 / median(multiply(), 5)
    ratios = []
    for target in data.test[:: len(data.test) // GUIDED].tolist():
        candidates = SmallSets().propose(context, target)
        graphs = imagine(context, beliefs, candidates, Sampling(worlds.number))
        degree = len(graphs.neighbours) + len(graphs.own_row) / graphs.number
        arithmetic = len(candidates) * graphs.number * candidate_flops(degree, model) / peak
        rehearse = partial(evaluate_on_imagined, context, beliefs, candidates)
        ratios.append([median(partial(rehearse, Sampling(number)), 5) / arithmetic for number in (worlds.number, 1)])
    over, fixed = np.median(ratios, axis=0).tolist()
    return over, fixed


def _longest(data: Dataset) -> tuple[int, float]:
    """The largest of the lists that are worth enumerating, once, without a rehearsal."""
    method = Method(SmallSets(5, TwoHop(27)), mechanism=SubsetSelection(Fraction(1, 1000)))
    with fresh_ledger() as ledger:
        vault = Vault(data.private_graph(), data.context(), ledger=ledger, simulation=True, method=method)
        target = max(data.test.tolist(), key=lambda node: len(vault.context.snapshot.neighbours(node)))
        seconds = once(lambda: vault.release(target, "1"))
        return len(vault.propose(target)), seconds
