"""Broken twins of own-edge reading, accounts and advice, each before the check that must reject it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from privcfs.errors import PrivcfsError
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import Pure
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.questions.advice import AdviceQuestion, Personal
from privcfs.gate.questions.question import Asker, PublicSide
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.private.allowance import UNITS, Allowance
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs_lab.audit import conduct, own_twins
from privcfs_lab.audit.accounts import (
    Plan,
    Scene,
    attack,
    conduct_of_accounts,
    hostile_choice,
    hostile_scene,
    lonely_scene,
    population,
    release_turn,
    select_turn,
)
from privcfs_lab.audit.checks import Pairs
from privcfs_lab.audit.own_edges import (
    AUDITED,
    HONEST,
    Practice,
    advice_differences,
    advising,
    alike_at,
    compare_alike,
    every_graph,
    holds_for_any,
    law_of,
    own_variants,
    worst_of_any,
)
from privcfs_lab.audit.trial import Conviction
from privcfs_lab.audit.twins import SeededRandomness

Check = Callable[[], tuple[bool, str, bool]]  # the twin is rejected, what was seen, the honest part passes
TARGET, MEMBERS = 0, (0, 3)
SAME, ANY = "the same law on graphs that agree at the target", "e^epsilon for any two graphs"
DIFFERENTIAL, ATTACK = "differential run over advice", "attack on one edge after everyone has asked"
REPLAY, CONDUCT = "replay of the ledger's rows", "conduct of accounts"


def convictions(say: Callable[[str], None]) -> Iterator[Conviction]:
    """Each twin, and the honest part beside it; nothing is left to chance."""
    for twin, checker, check in _twins():
        say(f"{checker}: {twin}")
        rejected, seen, passes = check()
        yield Conviction(twin, checker, 1, int(rejected), seen, passes, certain=True)


def _twins() -> Iterator[tuple[str, str, Check]]:
    far_seeing: Any = own_twins.FarSeeingReader
    shared: Any = own_twins.SharedAllowance
    region = Practice(lambda graph: replace(AUDITED, candidates=own_twins.PrivateRegion(graph)))
    yield "a reader one hop too far", SAME, partial(_alike, Practice(reader=far_seeing))
    yield "a region from private neighbours, in the list", ANY, partial(_any, region)
    yield "a region from private neighbours, in the charge", ATTACK, partial(_attacked, own_twins.ChargesRegion)
    existing = partial(_attacked, own_twins.ChargesExistingEdges, lonely_scene)
    yield "a charge for existing edges only", ATTACK, existing
    yield "accounts that refuse nothing", ATTACK, partial(_attacked, _without_graph(own_twins.ForgetsAccounts))
    yield "a charge at one end only", ATTACK, _one_end
    yield "a charge at one end only", REPLAY, partial(_replayed, own_twins.ChargesOneEnd, _populations)
    yield "an over-ask that empties an account", CONDUCT, partial(_replayed, own_twins.EmptiesAccounts, _conduct)
    yield "an over-ask that empties an account", REPLAY, partial(_replayed, own_twins.EmptiesAccounts, _populations)
    yield "advice from the whole graph", DIFFERENTIAL, _advised_from_all
    yield "advice for a node that is not one's own", "asking for another's list", _for_anyone
    yield "advice in the ledger's chain", "rows of two ledgers", _in_the_chain
    yield "a plan made with own edges and kept", "what is prepared after advice", _kept_plan
    yield "a release that prints its own score", "differential run over releases", _prints
    yield "a time-out under another question's load", "law under load", partial(_loaded, Practice(allowance=shared))


def _alike(twin: Practice) -> tuple[bool, str, bool]:
    found, honest = (compare_alike(every_graph(1, 2), one) for one in (twin, HONEST))
    return bool(found.different), f"other laws within {found.pairs} pairs of graphs", not honest.different


def _any(twin: Practice) -> tuple[bool, str, bool]:
    ratios = [worst_of_any(every_graph(1), one)[1] for one in (twin, HONEST)]
    seen = "answers that one graph has and another lacks" if ratios[0] is None else f"ratio {float(ratios[0]):.3g}"
    return not holds_for_any(ratios[0]), seen, holds_for_any(ratios[1])


def _without_graph(twin: type[MemoryLedger]) -> Callable[[Limit, PrivateGraph], Ledger]:
    return lambda limit, _: twin(limit)


def _attacked(
    twin: Callable[[Limit, PrivateGraph], Ledger], where: Callable[[], Scene] = hostile_scene
) -> tuple[bool, str, bool]:
    scene = where()
    turns = [release_turn(node) for node in range(scene.context.number_of_nodes)]
    found, honest = attack(scene, Plan(turns, make=twin)), attack(scene, Plan(turns))
    balances = "" if found.balances_agree else "; balances show the edge"
    seen = f"loss {found.loss:.2f}, accounts {float(found.accounts):.2f}, limits {float(found.limits):.2f}{balances}"
    return not found.within, seen, honest.within


def _one_end() -> tuple[bool, str, bool]:
    scene, nodes = hostile_choice()
    turns = [select_turn(nodes)]
    found = attack(scene, Plan(turns, make=_without_graph(own_twins.ChargesOneEnd)))
    seen = f"loss {found.loss:.2f}, accounts {float(found.accounts):.2f}"
    return not found.within, seen, attack(scene, Plan(turns)).within


def _populations(open_ledger: Callable[[Limit], Ledger]) -> list[str]:
    return population(open_ledger, 0)


def _conduct(open_ledger: Callable[[Limit], Ledger]) -> list[str]:
    return conduct_of_accounts(open_ledger)


def _replayed(
    twin: type[MemoryLedger], check: Callable[[Callable[[Limit], Ledger]], list[str]]
) -> tuple[bool, str, bool]:
    """The shipped ledgers must pass what the twin does not."""
    broken = check(twin)
    with TemporaryDirectory() as folder:
        shipped = check(lambda limit: SqliteLedger(Path(folder) / "budget.db", limit))
    return bool(broken), "does not hold: " + "; ".join(broken), not shipped and not check(MemoryLedger)


def _advised_from_all() -> tuple[bool, str, bool]:
    context, graphs = _people()
    with own_twins.advice_from_all():
        found = advice_differences(context, MEMBERS, graphs)
    return bool(found), f"{len(found)} answers differ", not advice_differences(context, MEMBERS, graphs)


def _people() -> tuple[PublicContext, Sequence[Pairs]]:
    """Graphs that agree at all members of a coalition."""
    scene = hostile_scene()
    rng = np.random.default_rng(0)
    return scene.context, alike_at(scene.pairs, MEMBERS, scene.context.number_of_nodes, 8, rng)


def gives_anothers_list(context: PublicContext, pairs: Pairs) -> bool:
    """Whether a reader that was made for one person gives another's list."""
    reader = Reader(PrivateGraph.from_pairs(pairs, context.number_of_nodes), context, Allowance(60), (MEMBERS[0],))
    try:
        reader.own_list(MEMBERS[1], SmallSets(), context)
    except PrivcfsError:
        return False
    return True


def _for_anyone() -> tuple[bool, str, bool]:
    scene = hostile_scene()
    with own_twins.advice_for_anyone():
        found = gives_anothers_list(scene.context, scene.pairs)
    return found, "another person's list is read", not gives_anothers_list(scene.context, scene.pairs)


def rows_after_advice(context: PublicContext, graphs: Sequence[Pairs]) -> list[list[tuple[object, ...]]]:
    """What the chain of a ledger holds after free and paid advice to one person, with the same random numbers."""
    found = []
    for pairs in graphs:
        with TemporaryDirectory() as folder:
            ledger = SqliteLedger(Path(folder) / "budget.db", Limit.of("10"))
            vault = advising(PrivateGraph.from_pairs(pairs, context.number_of_nodes), context, ledger)
            vault._randomness = SeededRandomness()  # type: ignore[assignment]
            vault.advise(TARGET)
            vault.advise(TARGET, epsilon="1", request_id="one")
            rows = [tuple(row[name] for name in ("kind", "cost", "total", "body")) for row in ledger.rows()]
            found.append(rows[1:])  # the first row has the random name of the ledger
    return found


def _in_the_chain() -> tuple[bool, str, bool]:
    context, graphs = _other_selves()
    with own_twins.advice_in_the_chain():
        first, *others = rows_after_advice(context, graphs)
    rejected = any(other != first for other in others)
    first, *others = rows_after_advice(context, graphs)
    return rejected, "rows differ with her edges", all(other == first for other in others) and len(first) == 2


def _other_selves() -> tuple[PublicContext, list[Pairs]]:
    """Graphs that differ at the target."""
    scene = hostile_scene()
    return scene.context, list(own_variants(scene.context, TARGET, scene.pairs, np.random.default_rng(0)).values())


def prepared_after_advice(rule: Callable[[], CandidateRule]) -> list[tuple[str, ...]]:
    """For graphs that differ at the target, what is prepared for releases about it after advice to its person."""
    context, graphs = _other_selves()
    found = []
    for pairs in graphs:
        method = replace(AUDITED, candidates=rule())
        vault = advising(PrivateGraph.from_pairs(pairs, context.number_of_nodes), context, method=method)
        vault.advise(TARGET)
        vault.advise(TARGET, epsilon="1")
        question = ReleaseQuestion(vault._side, Asker("auditor", "one"), TARGET, "1")
        answers = [question.answer(position) for position in range(len(question.candidates))]
        found.append((repr(question.candidates), repr(question.mechanism), repr(vault.guess(TARGET)), *answers))
    return found


def _kept_plan() -> tuple[bool, str, bool]:
    found, honest = (prepared_after_advice(rule) for rule in (own_twins.KeepsPlans, SmallSets))
    return len(set(found)) > 1, "the public list of a release follows her edges", len(set(honest)) == 1


def release_differences() -> list[str]:
    """What stands beside the draw of a release by own edges, compared between graphs that differ at the target."""
    context, graphs = _other_selves()

    def opened(pairs: Pairs) -> Any:
        graph = PrivateGraph.from_pairs(pairs, context.number_of_nodes)
        return advising(graph, context, MemoryLedger(Limit.of("10", per_node="5")), AUDITED)

    first, *others = graphs
    found = [conduct.differences(partial(opened, first), partial(opened, other), TARGET) for other in others]
    return sorted({name for one in found for name in one})


def _prints() -> tuple[bool, str, bool]:
    with own_twins.prints_its_score():
        found = release_differences()
    return conduct.RELEASE in found, "answered differently: " + ", ".join(found), not release_differences()


def same_under_load(practice: Practice) -> bool:
    """Whether a law, with just the work that it needs, is the same after other questions have been answered."""
    scene = hostile_scene()
    own_twins.SharedAllowance.together[0] = 0
    needed = law_of(scene.context, TARGET, scene.pairs).work / UNITS
    alone = law_of(scene.context, TARGET, scene.pairs, practice, needed)
    for other in range(1, scene.context.number_of_nodes):
        law_of(scene.context, other, scene.pairs, practice)
    return law_of(scene.context, TARGET, scene.pairs, practice, needed) == alone and not alone.given_up


def _loaded(twin: Practice) -> tuple[bool, str, bool]:
    return not same_under_load(twin), "given up because of other questions", same_under_load(HONEST)


def advice_paid_alike() -> bool:
    """Whether everything that stands in a ledger about paid advice is the same on graphs that differ at the target."""
    context, graphs = _other_selves()
    side, found = PublicSide(context, AUDITED, Pure(), Limit.of("1").total), set()
    for pairs in graphs:
        reader = Reader(PrivateGraph.from_pairs(pairs, context.number_of_nodes), context, Allowance(60), (TARGET,))
        asked = AdviceQuestion(Asker("auditor", "one"), Personal(side, TARGET, reader), "1").priced
        found.add(repr((asked.terms, asked.counted, asked.room)))
    return len(found) == 1
