"""What a first answer takes, measured on public data before a vault serves, and which public time answers then take.

Zone: owner
Claim: the measurement, the answering time and every refusal here are functions of the vault file and public data.
Why: the rehearsal evaluates candidate lists on the snapshot; it is handed no private graph and no secret.
Check: tests/owner/test_answering_time.py::test_the_rehearsal_reads_no_private_edge
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10
from time import perf_counter
from typing import final

import numpy as np

from privcfs.errors import SettingsError
from privcfs.gate.method import Method
from privcfs.gate.vault import EVALUATION_SHARE, Vault
from privcfs.owner.vault_file import OFF, VaultFile
from privcfs.private.allowance import UNITS, Allowance, Overrun
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import PublicContext

VARIABLE = "PRIVCFS_ANSWER_SECONDS"
LEAST = 0.25  # seconds: some 70 times an evaluation by the fast evaluator, and 4 answers a second for each process
MARGIN = 4  # private neighbourhoods may be larger than public ones, and an evaluation may use 4/5 of the time
LITTLE = 2  # the owner is warned where private evaluations may take no more than this many times the public ones
NODES = 4  # of the rehearsal, besides the public hub
PRICE = Fraction(1)  # of the answer that is prepared; others take as long


@final
@dataclass(frozen=True, slots=True)
class AnswerTime:
    """What a first answer takes, measured on public data; public itself.

    Attributes:
        preparation: Seconds to prepare an answer about a node that was not asked about before.
        evaluation: Seconds of the slowest evaluation of a few candidate lists, the public hub's among them.
        work: The greatest counted work of these evaluations, in nominal seconds. At least this, if it is more than the
            method's `evaluation_seconds`: the evaluation was then given up.
    """

    preparation: float
    evaluation: float
    work: float

    def __str__(self) -> str:
        amounts = (self.preparation + self.evaluation, self.preparation, self.evaluation, self.work)
        whole, prepared, evaluated, counted = (f"{rounded_up(one):g}" for one in amounts)
        return (
            f"On public data, a first answer about a node takes {whole} seconds: {prepared} to prepare and {evaluated} "
            f"to evaluate (counted work: {counted} nominal seconds)."
        )

    def check(self, method: Method, answer_seconds: float | None) -> str:
        """Refuses settings under which public data cannot be evaluated; words of warning where little more can.

        Args:
            method: The vault's method, which limits counted work.
            answer_seconds: The public answering time, or None for none.

        Returns:
            A warning for the owner; empty where there is no need for one.

        Raises:
            SettingsError: The evaluation of public data passes `evaluation_seconds`, or `answer_seconds`.
        """
        limits = [("evaluation_seconds", method.evaluation_seconds, self.work, "counted work")]
        if answer_seconds is not None:
            limits.append(("answer_seconds", answer_seconds, self.work / EVALUATION_SHARE, "counted work"))
            limits.append(("answer_seconds", answer_seconds, self.evaluation, "time"))
        for setting, limit, needed, what in limits:
            if needed > limit:
                raise SettingsError(
                    f"{setting} is {limit:g}, but evaluating public data needs {rounded_up(needed):g} by its {what}; "
                    "raise it, or choose a rule that proposes fewer candidates."
                )
        close = [one for one in limits if LITTLE * one[2] > one[1]]
        return "".join(
            f"{setting} is {limit:g}, and evaluating public data needs {rounded_up(needed):g} by its {what} already; "
            "private neighbourhoods may be larger: raise it."
            for setting, limit, needed, what in close[:1]
        )


def rehearse_time(vault: Vault) -> AnswerTime:
    """Measures on public data what a first answer takes; costs nothing and reads no secret.

    Args:
        vault: The vault. Its public context and method are looked at, not its graph.

    Returns:
        Seconds of preparation and of evaluation, and the counted work.
    """
    return rehearsed(vault.context, vault.method)


def rehearsed(context: PublicContext, method: Method) -> AnswerTime:
    """Does what `rehearse_time` does, for a context and a method. No secret edge, model or feature is read."""
    snapshot = PrivateGraph.from_snapshot(context.snapshot)
    hub = int(np.argmax(np.diff(context.snapshot.starts)))
    spread = [number * context.number_of_nodes // NODES for number in range(NODES)]
    measured = [_evaluation(snapshot, context, method, node) for node in (hub, *spread)]
    seconds, work = (max(column) for column in zip(*measured, strict=True))
    started = perf_counter()
    if work <= method.evaluation_seconds:  # or the vault is refused anyway
        method.prepare(context, method.candidates.propose(context, spread[-1]), PRICE)
    return AnswerTime(perf_counter() - started, seconds, work)


def answering_time(file: VaultFile, measured: AnswerTime) -> float | None:
    """Seconds that every new answer takes, or none where the owner switched it off."""
    if "answer_seconds" in file.tables["method"]:
        return file.answer_seconds()
    return rounded_up(max(LEAST, MARGIN * measured.evaluation, MARGIN * measured.work))


def _evaluation(snapshot: PrivateGraph, context: PublicContext, method: Method, node: int) -> tuple[float, float]:
    """Seconds and counted work; the shorter time of two runs: the first one also loads libraries and fills caches."""
    candidates = method.candidates.propose(context, node)
    found = []
    for _ in range(2):
        allowance = Allowance(method.evaluation_seconds)
        started = perf_counter()
        try:
            method.utility.score(evaluate(snapshot, context, candidates, allowance))
        except Overrun:
            return perf_counter() - started, allowance.spent / UNITS
        found.append(perf_counter() - started)
    return min(found), allowance.spent / UNITS


def rounded_up(seconds: float) -> float:
    """Seconds, rounded up to two significant digits."""
    if seconds <= 0:
        return 0.0
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
    """The form in which worker processes find it in their environment."""
    return OFF if seconds is None else repr(seconds)


def from_text(text: str) -> float | None:
    """The reverse of `to_text`."""
    return None if text == OFF else float(text)
