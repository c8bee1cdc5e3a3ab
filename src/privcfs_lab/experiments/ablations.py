"""The appendix's ablations: another rule, utility, mechanism or draw, beside the paper's number."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from privcfs.embedded import NAMES
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.method import Method
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.soft import Soft
from privcfs.private.utilities.utility import Utility
from privcfs.private.utilities.weights import Weights
from privcfs.public.candidates.pairs import LinkPredictor, OneHop, PairUniverse, TwoHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs_lab.experiments.cells import ARMS, BOTH_ARMS, EDGES, HOW, JOINT, ROW_ZERO, seeds_of, verdict
from privcfs_lab.experiments.fields import BESIDE_PAPER, Field, View, reported, table
from privcfs_lab.experiments.paper import ABLATIONS, SAME_OPERATIONS
from privcfs_lab.experiments.sameops import restricted
from privcfs_lab.figures.page import Page, Value
from privcfs_lab.measuring.study import Cell, Study
from privcfs_lab.measuring.summary import estimate
from privcfs_lab.variants.inert_masks import InertMasks

HEAVY = Weights(Fraction(9, 10), Fraction(1, 20), Fraction(1, 20))
LIGHT = Weights(Fraction(5, 10), Fraction(4, 10), Fraction(1, 10))
INERT = "inert masks"
SHOWN = (
    *("data", "ablation", "arm", "disclosed", "targets", "support", "near", "pairs that exist", "ceiling"),
    *("paper's ceiling", "verdict", "public guess", "@1", "@4", "@8", "paper @8", "verdict @8", "size @8", "empty @8"),
    "paper's empty @8",
)
HIDDEN = ("targeted @8", "collision @8", "regret @8", "guess size", "ours @8")


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """One row for each data set."""

    ablation: str
    arm: str
    method: Method
    disclosed: float = 0.5
    law: str = "one draw"
    one_seed: bool = False


def _both(ablation: str, utility: Utility, disclosed: float = 0.5, one_seed: bool = False) -> list[Variant]:
    return [
        Variant(ablation, arm, Method(method.candidates, utility), disclosed, one_seed=one_seed)
        for arm, method in ARMS.items()
    ]


def _supports(ablation: str, pairs: PairUniverse, features: TopInfluence, disclosed: float = 0.5) -> list[Variant]:
    rules = {
        EDGES: Product(pairs, most_features=0),
        JOINT: Product(pairs, features),
        INERT: InertMasks(Product(pairs, features)),
    }
    return [Variant(ablation, arm, Method(rule), disclosed) for arm, rule in rules.items()]


def _coins(disclosed: float) -> Variant:
    every_set = Product(most_pairs=12, most_features=0)
    return Variant(f"(h) one coin a pair, {disclosed:.1f} disclosed", EDGES, Method(every_set), disclosed, "per edge")


VARIANTS: list[Variant] = [
    Variant("(a) one draw, seed 0", EDGES, ARMS[EDGES], one_seed=True),
    Variant("(a) sequential, seed 0", EDGES, ARMS[EDGES], law="sequential", one_seed=True),
    Variant("(a) sequential", EDGES, ARMS[EDGES], law="sequential"),
    *_both("(b) weights .9 .05 .05, seed 0", Gated(HEAVY), one_seed=True),
    *_both("(b) weights .5 .4 .1, seed 0", Gated(LIGHT), one_seed=True),
    *_both("(b) weights .9 .05 .05", Gated(HEAVY)),
    *_both("(b) weights .5 .4 .1", Gated(LIGHT)),
    *_both("(c) gated, 0.7 disclosed", Gated(), 0.7),
    *_both("(c) soft, 0.7 disclosed", Soft(), 0.7),
    *_both("(d) 0.5 disclosed", Gated(), 0.5),
    *_both("(d) 1.0 disclosed", Gated(), 1.0),
    *_supports("(e) feature neighbours, no public graph", LinkPredictor(), TopInfluence(), 0.0)[:2],
    _coins(0.5),
    _coins(1.0),
    *_supports("(i) 12 pairs, 12 features", OneHop(), TopInfluence())[2:],
    *_supports("(i) 4 pairs, 4 features", OneHop(4), TopInfluence(4)),
    *_supports("(i) two hops", TwoHop(), TopInfluence()),
    *(Variant("permute-and-flip", arm, Method(m.candidates, mechanism=PermuteAndFlip())) for arm, m in ARMS.items()),
]
ELSEWHERE = {"(f) budget of heuristic output perturbation": "page post-mortem"}


def page(study: Study) -> Page:
    """All variants on borderline targets."""
    first = Study(study.seeds[:1], study.workers, study.folder, study.progress, study.most)
    plans = [(variant, _cell(name, variant)) for name in NAMES for variant in VARIANTS]
    measured = study.measure(cell for variant, cell in plans if not variant.one_seed)
    alone = first.measure(cell for variant, cell in plans if variant.one_seed)
    views = []
    for variant, cell in plans:
        printed = ABLATIONS.get((variant.ablation, variant.arm, cell.data), (None, None, None))
        found = (alone if variant.one_seed else measured)[cell]
        numbers = dict(zip(("ceiling", "@8", "empty"), printed, strict=True))
        views.append(View(cell, found, numbers, variant.ablation, variant.arm))
    extra: dict[str, Field] = {**BESIDE_PAPER, "paper's empty @8": (".1%", reported("empty"))}
    columns, rows = table(views, SHOWN, HIDDEN, extra)
    rows += _privatised_first(study, [column.name for column in columns])
    rows += [[None, title, where, *[None] * (len(columns) - 3)] for title, where in ELSEWHERE.items()]
    about = (
        f"Borderline targets, {seeds_of(study)}; (a) and (b) also for seed 0 alone, as in the paper. {HOW} {ROW_ZERO} "
        f"{BOTH_ARMS} The paper's numbers stand beside the edge-only rows and, in (i), beside the joint support with "
        "masks that do nothing (page edge-feature), since its empty rates need that support. `pairs that exist` is "
        "the share of the public pairs that are private edges; the paper prints about 0 for (e). (g) is on the page "
        "populations, (k) on the page edge-feature. (j) is at epsilon 7.2 for one edge, in the column @8; the page "
        "sameops says what it means. (h) deletes any number of up to 12 public pairs, so that its largest size is 12; "
        "the paper does not say on how many seeds its rates stand."
    )
    return Page("Ablations", about, columns, rows)


def _cell(name: str, variant: Variant) -> Cell:
    return Cell(name, "borderline", variant.disclosed, variant.method, variant.law)


def _privatised_first(study: Study, names: list[str]) -> list[list[Value]]:
    """(j): the best candidate of the identical list on a graph with Gaussian noise."""
    rows = []
    for (data, arm, noise, choice), found in restricted(study).items():
        if noise == "NaiveDP":
            ours, printed = estimate(found["valid"]), SAME_OPERATIONS[data][1]
            told = arm == EDGES and choice == "best utility"
            row: dict[str, Value] = {
                "data": data,
                "ablation": f"(j) graph privatised first, {choice}",
                "arm": arm,
                "disclosed": 0.5,
                "targets": len(found),
                "@8": ours,
                "paper @8": printed if told else None,
                "verdict @8": verdict(ours, printed) if told else None,
                "size @8": float(found["size"].mean()),
            }
            rows.append([row.get(name) for name in names])
    return rows
