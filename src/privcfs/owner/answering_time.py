"""Which public time every new answer of the service takes: the owner's, or one that a public rehearsal finds enough.

Zone: owner
Claim: the answering time is a function of the vault file and public data.
Why: the rehearsal evaluates candidate lists on the snapshot; it is handed no private graph and no secret.
Check: tests/owner/test_answering_time.py::test_the_rehearsal_reads_no_private_edge
"""

from math import ceil, floor, log10
from time import perf_counter

import numpy as np

from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.owner.vault_file import OFF, VaultFile
from privcfs.private.allowance import Allowance, Overrun
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext

VARIABLE = "PRIVCFS_ANSWER_SECONDS"
LEAST = 0.25  # seconds: some 70 times an evaluation by the fast evaluator, and 4 answers a second for each process
MARGIN = 4  # private neighbourhoods may be larger than public ones, and an evaluation may use 4/5 of the time
NODES = 4  # of the rehearsal, besides the public hub


def answering_time(file: VaultFile, vault: Vault) -> float | None:
    """Seconds, or none where the owner switched it off."""
    if "answer_seconds" in file.tables["method"]:
        return file.answer_seconds()
    return rounded_up(max(LEAST, MARGIN * slowest_evaluation(vault.context, vault.method)))


def slowest_evaluation(context: PublicContext, method: Method) -> float:
    """Seconds for the slowest of a few candidate lists, the public hub's among them, on the snapshot alone.

    No secret is read, be it edges, model or features: the time is public.
    """
    snapshot = PrivateGraph.from_snapshot(context.snapshot)
    hub = int(np.argmax(np.diff(context.snapshot.starts)))
    spread = (number * context.number_of_nodes // NODES for number in range(NODES))
    return max(_seconds(snapshot, context, method, node) for node in (hub, *spread))


def _seconds(snapshot: PrivateGraph, context: PublicContext, method: Method, node: int) -> float:
    """The shorter of two runs: the first one also loads libraries and fills caches."""
    candidates = method.candidates.propose(context, node)
    found = []
    for _ in range(2):
        started = perf_counter()
        try:
            method.utility.score(evaluate(snapshot, context, candidates, Allowance(method.evaluation_seconds)))
        except Overrun:
            return method.evaluation_seconds  # an answer has no more than that in any case
        found.append(perf_counter() - started)
    return min(found)


def rounded_up(seconds: float) -> float:
    """To two digits."""
    step = 10.0 ** (floor(log10(seconds)) - 1)
    return round(ceil(round(seconds / step, 6)) * step, 9)


def in_words(seconds: float | None) -> str:
    """What is in force, for the owner."""
    if seconds is None:
        return (
            "answer_seconds is off: the time of an answer depends on private edges, and analysts who measure it learn "
            "about them beyond what they pay for."
        )
    return f"Every new answer takes {seconds:g} seconds, whatever the edges; answers of one process follow one another."


def to_text(seconds: float | None) -> str:
    """For the environment of the worker processes."""
    return OFF if seconds is None else repr(seconds)


def from_text(text: str) -> float | None:
    """The reverse of `to_text`."""
    return None if text == OFF else float(text)
