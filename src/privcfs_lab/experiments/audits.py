"""The audit beyond the paper's: black box, worst cases, known attacks, many questions, side channels."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import log
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.method import GUIDED, Method
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.gated import Gated
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.candidates.pairs import OneHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.attacks import ATTACKS
from privcfs_lab.attacks.attack import success
from privcfs_lab.attacks.attacked import Attacked, guesses_of
from privcfs_lab.attacks.victims import BUDGET, VICTIMS, Released
from privcfs_lab.audit import composition, side_channels, trial
from privcfs_lab.audit.blackbox import second_opinion
from privcfs_lab.audit.composition import Composed, Question, accounted, plans, play
from privcfs_lab.audit.depth import FULL, Depth
from privcfs_lab.audit.distinguish import distinguish
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF, ONE_AGAINST_MANY, HostileWorld
from privcfs_lab.audit.twins import Overconfident
from privcfs_lab.audit.worst_case import ADJACENCIES, Climbed, exhaustive, list_ceiling
from privcfs_lab.experiments import (
    audit_accounts,
    audit_pairs,
    audit_sketches,
    audit_transcripts,
    certification,
    leakage,
    post_mortem,
)
from privcfs_lab.experiments.cells import seeds_of
from privcfs_lab.figures.attacks import draw_attacks
from privcfs_lab.figures.composition import draw_composition
from privcfs_lab.figures.page import Column, Estimate, Page, Picture, Value
from privcfs_lab.figures.style import NAMES as LABELS
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.study import Study

POPULATIONS = ("general", "borderline")
# Releases as vaults make them by default, at two prices, and a mechanism with half of the sensitivity that it needs.
GUIDED_AT = ("1", "8")
TWIN = Method(mechanism=Overconfident())
TWIN_AT = "4"
EIGHT = "8"
SMALL = Product(OneHop(3), TopInfluence(3), most_pairs=2, most_features=1)


def _holds(holds: bool | None) -> str | None:
    return None if holds is None else "yes" if holds else "no"


def _graphs(depth: Depth) -> str:
    return " and ".join(LABELS[name] for name in depth.data)


BLACK_BOX = (
    *(Column(name) for name in ("who", "kind", "checker")),
    Column("claimed epsilon"),
    Column("proven at least", ".2f"),
    Column("second opinion", ".2f"),
    Column("exact", ".2f"),
    Column("convicted"),
    Column("power at least", ".2f"),
    Column("seen"),
    Column("within"),
)


def black_box(study: Study, depth: Depth = FULL) -> Page:
    """Shipped mechanisms first, then every broken twin."""
    rows: list[list[Value]] = []
    for found in trial.acquittals(depth, study.progress, study.workers):
        who, bound = f"{found.mechanism}, {found.utility}, {found.graphs}", found.bound
        tests = [bound.epsilon, second_opinion(bound), found.truth, None, None, None]
        checker = f"black box, {depth.draws} draws a side"
        rows.append([who, "shipped", checker, found.claim, *tests, _holds(found.within)])
    for twin in trial.convictions(depth, study.progress, study.workers):
        told = f"{twin.convicted} of {twin.tried}"
        columns = [None, None, None, None, told, twin.power, twin.seen, _holds(twin.within)]
        rows.append([twin.twin, "broken twin", twin.checker, *columns])
    about = (
        "An auditor that only asks vaults: the same question many times on two private graphs that differ in one edge. "
        "An event is chosen on the first half of the draws and judged on the second: with 95 % confidence, epsilon is "
        "at least what stands under *proven*; a *second opinion* on the same counts is the package privacy-estimates; "
        "*exact* is the true value for these two graphs. The graphs are made to be hostile: one edge moves every score "
        "but the empty set's by the whole range. A shipped mechanism must stay at or below its claim; a broken twin "
        "must be convicted by the checker named for it in at least 95 % of the trials (certain checkers need one), "
        "while the honest part beside it passes. *Power at least* is the lower 95 % limit. A public guess is the same "
        "on both graphs: no number of questions proves anything about it."
    )
    return Page("Black-box audit and broken twins", about, BLACK_BOX, rows)


WORST = (
    *(Column(name) for name in ("search", "graphs", "differ in")),
    Column("pairs of graphs", "d"),
    Column("epsilon"),
    Column("mean loss", ".2f"),
    Column("largest loss", ".4f"),
    Column("share of epsilon", ".1%"),
    Column("ceiling of the list", ".4f"),
    Column("AUC at such pairs", ".3f"),
    Column("within"),
)


def worst_case(study: Study, depth: Depth = FULL) -> Page:
    """All graphs on five nodes, a construction, climbing on real graphs, and what the lists allow."""
    works = [Climbed(data, population) for data in depth.data for population in POPULATIONS]
    found = study.measure(works)
    rows = [*_every_graph(study, depth), *_constructed(), *_list_rows(), *_guided_climbs(study, depth)]
    for work, records in found.items():
        for number, adjacency in enumerate(ADJACENCIES):
            mine = records[records["adjacency"] == number]
            loss, ceiling = float(mine["loss"].max()), float(mine["ceiling"].max())
            within = bool((mine["loss"] <= mine["ceiling"] + 1e-9).all()) and loss <= 8
            where = f"{work.data}, {work.population}, {len(mine)} targets"
            told = [float(mine["loss"].mean()), loss, loss / 8, ceiling, float(mine["auc"].max())]
            rows.append(["climbing", where, adjacency, None, EIGHT, *told, _holds(within)])
        start = float(records["sampled"].max())
        where = f"{work.data}, {work.population}"
        rows.append(["sampling alone", where, "edge", None, EIGHT, None, start, start / 8, None, None, None])
    about = (
        f"{_graphs(depth)}, {seeds_of(study)}, half of the edges disclosed. *Loss* is the logarithm of the largest "
        "ratio of probabilities between two graphs; the promise is that it never exceeds epsilon. Small graphs are "
        "compared completely: all 1,024 graphs on five nodes with random models, every shipped utility and mechanism. "
        "Climbing starts from sixty sampled neighbours of the real graph and keeps every change that raises the loss, "
        "first in the surroundings that both graphs share, then at one node, then anywhere near the target. The same "
        "is done for releases as vaults make them by default, guided by what is believed, on borderline targets, and "
        "for a broken twin, whose loss must exceed what it claims. "
        "*Constructed*: a two-layer GCN around which one private edge moves every score but the empty set's by its "
        "whole range; with more candidates the loss tends to epsilon, so the bound cannot be improved in general. "
        "*Ceiling of the list* is proven: each candidate can move only within its own range (a larger candidate has a "
        "smaller one, the empty set almost none), so under the exponential mechanism and permute-and-flip the loss "
        "stays below epsilon by the slack shown; subset selection and the matched profile can use up all of epsilon. "
        "The paper's sampled pairs reached a ratio of 35.3, a loss of 3.56; the worst neighbours are far worse. A "
        "public guess does not move: its loss is 0."
    )
    return Page("Worst-case search", about, WORST, rows)


def _guided_climbs(study: Study, depth: Depth) -> Iterator[list[Value]]:
    """Bad pairs for today's default method, and for a twin that must be convicted by such a search."""
    guided = [Climbed(data, "borderline", GUIDED, price) for data in depth.data for price in GUIDED_AT]
    twins = [Climbed(data, "borderline", TWIN, TWIN_AT) for data in depth.data]
    for work, records in study.measure([*guided, *twins]).items():
        is_twin, claim = work.method == TWIN, float(work.epsilon)
        for number, adjacency in enumerate(ADJACENCIES):
            mine = records[records["adjacency"] == number]
            loss = float(mine["loss"].max())
            search = "climbing, broken twin: half the sensitivity" if is_twin else "climbing, guided release"
            where = f"{work.data}, {work.population}, {len(mine)} targets"
            ceiling = None if is_twin else float(mine["ceiling"].max())
            told = [float(mine["loss"].mean()), loss, loss / claim, ceiling, float(mine["auc"].max())]
            within = loss > claim if is_twin else loss <= claim + 1e-9
            yield [search, where, adjacency, None, work.epsilon, *told, _holds(within)]


def _every_graph(study: Study, depth: Depth) -> Iterator[list[Value]]:
    epsilon = "4"
    counts = {"edge": 5120, "node": 5 * 64 * 120, "any graph": 523_776}
    for utility in UTILITIES:
        method, losses, ceilings = Method(SMALL, UTILITIES[utility]), [], []
        for seed in range(depth.models):
            study.progress(f"all graphs on five nodes: {utility}, model {seed}")
            context = _five_nodes(seed)
            losses.append(exhaustive(context, 0, method, MECHANISMS, epsilon))
            candidates = SMALL.propose(context, 0)
            ceilings.append(
                {
                    name: list_ceiling(candidates, method.utility, one, Fraction(epsilon))
                    for name, one in MECHANISMS.items()
                }
            )
        for name, adjacency in losses[0]:
            seen = [one[name, adjacency] for one in losses]
            tops = [one[name] for one in ceilings]
            within = max(seen) <= float(epsilon) + 1e-9 and all(a <= b + 1e-9 for a, b in zip(seen, tops, strict=True))
            told = [float(np.mean(seen)), max(seen), max(seen) / float(epsilon), max(tops), None]
            where, pairs = f"five nodes, {utility}, {name}", depth.models * counts[adjacency]
            yield ["every graph", where, adjacency, pairs, epsilon, *told, _holds(within)]


def _five_nodes(seed: int) -> PublicContext:
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((5, 4)) < 0.7).astype(np.float32))
    model = GCN(*(rng.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 3))))
    return PublicContext(features, [(0, 1), (0, 2), (0, 3)], model)


def _constructed() -> Iterator[list[Value]]:
    for leaves in (1, 20, 60, 200):
        world = HostileWorld(1, leaves)
        laws = [
            inspect(world.graph(*missing), world.context, world.target, Method(world.rule)).probabilities(EIGHT)
            for missing in ((), (world.secret,))
        ]
        told = distinguish(*laws)
        loss = log(told.ratio)
        candidates = world.rule.propose(world.context, world.target)
        ceiling = list_ceiling(candidates, Gated(), Exponential(), Fraction(EIGHT))
        within = loss <= ceiling + 1e-9 and abs(loss - log(world.ratio(8))) < 1e-6
        where = f"a GCN, {leaves + 2} candidates"
        yield ["constructed", where, "edge", 1, EIGHT, loss, loss, loss / 8, ceiling, told.auc, _holds(within)]


def _list_rows() -> Iterator[list[Value]]:
    """The longest list of the paper's setting: twelve pairs and twelve features."""
    longest = Candidates(
        0, Caps(2, 3), tuple((0, n) for n in range(1, 13)), (), tuple(range(12)), subsets(12, 2), subsets(12, 3)
    )
    for utility in UTILITIES:
        for name, mechanism in MECHANISMS.items():
            loss = list_ceiling(longest, UTILITIES[utility], mechanism, Fraction(EIGHT))
            where = f"{len(longest):,} candidates, {utility}, {name}"
            row = ["ceiling of the list", where, "any graph", None, EIGHT, None, None, None, loss, None]
            yield [*row, _holds(loss <= 8 + 1e-9)]


NUMBERS = "denoised numbers"
ATTACKED = (
    *(Column(name) for name in ("data", "attack", "victim", "price")),
    Column("guesses", "d"),
    Column("AUC"),
    Column("advantage"),
    Column("public data alone, AUC", ".3f"),
    Column("largest AUC", ".3f"),
    Column("ceiling of any attack", ".3f"),
    Column("within"),
)


def attacks(study: Study, depth: Depth = FULL) -> Page:
    """Every attack on every victim."""
    works = [Attacked(data, attack, victim) for data in depth.data for attack in ATTACKS for victim in VICTIMS]
    found = study.measure(works)
    reached = {work: success(guesses_of(records)) for work, records in found.items()}
    rows: list[list[Value]] = []
    for work, made in reached.items():
        zero = reached[Attacked(work.data, work.attack, "public data alone")].auc
        victim = VICTIMS[work.victim]
        judged: list[Value] = [None, None, None]
        if work.attack == "likelihood ratio":
            worst = float(found[work]["score"].max())
            ceiling = (1 + Exponential().advantage(Fraction(BUDGET))) / 2 if isinstance(victim, Released) else None
            judged = [worst, ceiling, _holds(None if ceiling is None else worst <= ceiling + 1e-9)]
        auc, advantage = Estimate(made.auc, made.auc_error), Estimate(made.advantage, made.advantage_error)
        told: list[Value] = [len(found[work]), auc, advantage, zero]
        rows.append([work.data, work.attack, work.victim, victim.price, *told, *judged])
    control = max(
        reached[Attacked(data, NUMBERS, "CF-GNNExplainer")].auc
        - reached[Attacked(data, NUMBERS, "public data alone")].auc
        for data in depth.data
    )
    about = (
        f"{_graphs(depth)}, {seeds_of(study)}, half of the edges disclosed, ± half of a 95 % interval over targets. "
        "Every attack sees what its victim releases at the price that the compared systems quote, 7.2. *Reading the "
        "names* takes each pair that an answer names for an edge; *ExplainSim* takes nodes with similar answers for "
        "neighbours; *LinkTeller* asks again as if the other node had no features, which no real analyst can do; these "
        "three guess private edges that the snapshot lacks against random pairs, and so does *denoised numbers*, after "
        "PrivX (2605.03388) and ReconXF (2506.02134): the attacker rehearses model, explainer and mechanism on the "
        "snapshot, of which she hides a half from herself, takes the posterior mean of every noisy number, and learns "
        "from the rehearsal how answers, together with all public data, give edges away; *and names* also reads which "
        "pairs are named. PrivX's diffusion network and ReconXF's graph learner are not rebuilt, since of "
        "neither was code public. *Likelihood ratio* knows everything but one pair near the target (exact; mean over "
        "test nodes, and the largest). *Reconstruction* knows everything but four pairs at the target and weighs all "
        "sixteen graphs by many answers. The threshold of an advantage is chosen on half of the targets and judged on "
        "the other half. Public data alone is row zero: the snapshot, the features and what the model says of them; "
        "who has an answer has that too, so an attack below it is one that uses too little. Ours is shown at 7.2 for "
        "each answer and at 7.2 for all answers of an attack together. The outsider sees what a friend of the target, "
        "who is at no end of a guessed pair, was told in advice. A sketch is drawn once for all questions and protects "
        "one edge, which means little at 7.2. PrivCF-out with half of its noise, and with none, are controls. "
        "PrivCF-out certifies nothing: the list of its entries names the private pairs; reconstruction is kind to it "
        "and looks only at entries that all sixteen graphs share. RR-LDP certifies one edge, and at 7.2 it reports "
        "each pair rightly with probability 0.9993; its graph is explained with 100 epochs. CF-GNNExplainer is what no "
        "protection gives away; beyond public data, its numbers without names give the denoising attack "
        f"{control:+.3f} of AUC at most, so what is said of features is an echo of what is public, with noise or not."
    )
    picture = Picture(
        "AUC of every attack on every victim, with intervals; 0.5 is a blind guess",
        partial(draw_attacks, {(work.data, work.attack, work.victim): made for work, made in reached.items()}),
    )
    return Page("Known attacks", about, ATTACKED, rows, (picture,))


COMPOSED = (
    *(Column(name) for name in ("graphs",)),
    Column("pairs of graphs", "d"),
    Column("questions", "d"),
    Column("price of one", ".2f"),
    Column("total", ".0f"),
    Column("mean advantage"),
    Column("largest advantage"),
    Column("accounted: prices add up", ".3f"),
    Column("accounted: zCDP", ".3f"),
    Column("within"),
)


def many_questions(study: Study, depth: Depth = FULL) -> Page:
    """The adaptive analyst on constructed and on real neighbours."""
    rows, shown = list(_hostile_plays()), {}
    found = study.measure(Composed(data, population) for data in depth.data for population in POPULATIONS)
    for work, records in found.items():
        name = f"{work.data}, {work.population}"
        shown[name] = records
        for questions, price in plans():
            mine = records[(records["questions"] == questions) & np.isclose(records["price"], price)]
            worst = mine[mine["advantage"].argmax()]
            mean = Estimate(float(mine["advantage"].mean()), float(np.sqrt((mine["error"] ** 2).sum()) / len(mine)))
            top = Estimate(float(worst["advantage"]), float(worst["error"]))
            rows.append([name, len(mine), *_played(questions, price, mean, top)])
    picture = Picture(
        "Advantage of the adaptive analyst against the number of questions, at a total of 8 and at 1 each, with what "
        "the books allow",
        partial(draw_composition, shown),
    )
    about = (
        f"{_graphs(depth)}, {seeds_of(study)}, half of the edges disclosed, six targets of each population, each with "
        "the sampled neighbour that one answer tells apart best. An analyst who knows both graphs asks about the "
        "target or its neighbours, each time what is expected to leave the least doubt, 1, 10 or 100 times; the "
        f"advantage is measured over {composition.RUNS:,} runs on either graph, ± standard error. Two plans: a total "
        "of 8 divided by all questions, or 1 for each. Prices add up (total epsilon E allows tanh(E/2)); beside it "
        "what zCDP accounting would prove for the exponential mechanism, price x sqrt(questions) / 4. At the same "
        "total, many small answers give away far less than one large one. The analyst looks one answer ahead, so a "
        "cleverer one may gain more, within the books. An analyst with public data alone has no advantage, however "
        "often the question is asked."
    )
    return Page("Many questions", about, COMPOSED, rows, (picture,))


def _hostile_plays() -> Iterator[list[Value]]:
    rng = np.random.default_rng(0)
    worlds = {"one against many": ONE_AGAINST_MANY, "half against half": HALF_AGAINST_HALF}
    for name, world in worlds.items():
        for questions, price in plans():
            found = [
                inspect(world.graph(*missing), world.context, world.target, Method(world.rule))
                for missing in ((), (world.secret,))
            ]
            menu = [Question.of(*(one.probabilities(f"{price:.9f}") for one in found))]
            gain, error, _ = play(menu, questions, composition.RUNS, rng)
            both = Estimate(gain, error), Estimate(gain, error)
            yield [f"constructed, {name}", 1, *_played(questions, price, *both)]


def _played(questions: int, price: float, mean: Estimate, top: Estimate) -> Sequence[Value]:
    books = accounted(questions, price)
    within = top.mean - 4 * top.error <= min(books.values())
    return [questions, price, questions * price, mean, top, *books.values(), _holds(within)]


TIMED = (
    *(Column(name) for name in ("graphs", "answers")),
    Column("first, ms", ".2f"),
    Column("second, ms", ".2f"),
    Column("AUC of time"),
    Column("advantage", ".3f"),
    Column("first, MB", ".2f"),
    Column("second, MB", ".2f"),
    Column("within"),
)


def timing(study: Study, depth: Depth = FULL) -> Page:
    """Every case as it is and with a public answering time; the dawdling twin last."""
    rows: list[list[Value]] = []
    cases = [*side_channels.cases(), ("broken twin: dawdles on one graph", side_channels.dawdling_twin())]
    for name, case in cases:
        memory = side_channels.peak_memory(case)
        for seconds in (None, side_channels.WAIT):
            study.progress(f"time: {name}, {'as it is' if seconds is None else 'fixed'}")
            found = side_channels.timing(case, depth.answers, seconds)
            words = "as soon as possible" if seconds is None else f"after {seconds * 1000:.0f} ms"
            within = found.hidden
            if seconds is None:
                within = found.hidden is False if name.startswith("broken twin") else None
            told: list[Value] = [found.first, found.second, Estimate(found.auc, found.error), found.advantage]
            rows.append([name, words, *told, *memory, _holds(within)])
    (hub,) = (case for name, case in cases if "neighbours" in name)
    first, second, failures = side_channels.crowd(hub, side_channels.WAIT)
    words = f"8 at once after {side_channels.WAIT * 1000:.0f} ms each, {failures} failed: how late the last is"
    rows.append(["Cora, the same hub", words, first, second, None, None, None, None, None])
    about = (
        f"{depth.answers} answers of each of two vaults in random order, epsilon 1, accounts in memory. The AUC is "
        "that of telling the two private graphs apart by the time of one answer, by a rule fixed on the first half, ± "
        "the standard error of a time that tells nothing; the advantage is that of the same rule. Answering as soon as "
        "possible gives away degrees and failures; with a public answering time (`answer_seconds`) the channel shrinks "
        "to what is measured here, on one machine under whatever load it had. A fixed-time row holds if its AUC is "
        f"surely (95 %) at most {side_channels.ALLOWED}; it is left open where the answers are too few to say. The "
        "twin must be told apart as it is. Megabytes are the peak of one answer: memory is for the owner's eyes only. "
        "A public guess reads no edge and takes the same time on both graphs: AUC 0.5."
    )
    return Page("Side channels", about, TIMED, rows)


def run(depth: Depth, workers: int, keep: Path, say: Callable[[str], None]) -> dict[str, Page]:
    """Every part of the audit at this depth."""
    study = Study(depth.seeds, workers, keep, say, most=depth.targets)
    parts: dict[str, Callable[[], Page]] = {
        "certification": lambda: certification.page_of(certification.checks(depth.graphs, study), depth.graphs),
        "audit-pairs": lambda: audit_pairs.page(study),
        "audit-black-box": lambda: black_box(study, depth),
        "audit-worst-case": lambda: worst_case(study, depth),
        "audit-attacks": lambda: attacks(study, depth),
        "audit-questions": lambda: many_questions(study, depth),
        "audit-transcripts": lambda: audit_transcripts.page(study, depth),
        "audit-accounts": lambda: audit_accounts.page(study, depth),
        "audit-sketches": lambda: audit_sketches.page(study, depth),
        "audit-time": lambda: timing(study, depth),
    }
    if depth is FULL:
        parts |= {"post-mortem": lambda: post_mortem.page(study), "leakage": lambda: leakage.page(study)}
    return {name: make() for name, make in parts.items()}
