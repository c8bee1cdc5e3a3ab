"""The appendix's ablations that need nothing but another rule, utility, mechanism or population."""

from collections.abc import Callable
from fractions import Fraction

from privcfs.embedded import NAMES
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.vault import Method
from privcfs.lab.experiments.frontier import cell, with_error
from privcfs.lab.experiments.table import Table
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.soft import Soft
from privcfs.private.utilities.weights import Weights
from privcfs.public.candidates.pairs import OneHop, TwoHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence

Progress = Callable[[str], None]
EDGES = Product(most_features=0)
ABOUT = (
    "Half of the edges disclosed (simulated), seeds 0 to 2, exact expectations, mean over targets pooled over seeds, "
    "± standard error. Valid rates are drawn with the paper's range (1; soft 4/5). The public guess (epsilon 0) is "
    "the best candidate of the same support on the snapshot graph. The paper's own ablations correspond to edge "
    "interventions alone, so edge-only rows stand beside joint ones."
)
HEADINGS = (
    "data",
    "population",
    "variant",
    "support",
    "ceiling",
    "public guess",
    "@1",
    "@4",
    "@8",
    "size @8",
    "empty @8",
)
METHODS: dict[str, Method] = {
    "(b) weights .7 .2 .1, joint": Method(),
    "(b) weights .9 .05 .05, joint": Method(utility=Gated(Weights(Fraction(9, 10), Fraction(1, 20), Fraction(1, 20)))),
    "(b) weights .5 .4 .1, joint": Method(utility=Gated(Weights(Fraction(5, 10), Fraction(4, 10), Fraction(1, 10)))),
    "(c) soft, joint": Method(utility=Soft()),
    "(c) gated, edge-only": Method(candidates=EDGES),
    "(c) soft, edge-only": Method(candidates=EDGES, utility=Soft()),
    "(i) 4 pairs, 4 features, joint": Method(candidates=Product(OneHop(4), TopInfluence(4))),
    "(i) 8 pairs, 8 features, joint": Method(candidates=Product(OneHop(8), TopInfluence(8))),
    "(i) two hops, joint": Method(candidates=Product(pairs=TwoHop())),
    "(i) two hops, edge-only": Method(candidates=Product(pairs=TwoHop(), most_features=0)),
    "permute-and-flip, joint": Method(mechanism=PermuteAndFlip()),
    "permute-and-flip, edge-only": Method(candidates=EDGES, mechanism=PermuteAndFlip()),
}


def variants(progress: Progress) -> Table:
    """Weights, utilities, supports and mechanisms on borderline targets."""
    plan = [(name, "borderline", label, method) for name in NAMES for label, method in METHODS.items()]
    return _table("Ablations on borderline targets", plan, progress)


def populations(progress: Progress) -> Table:
    """The same release on three populations: who is explained decides how far it reaches."""
    methods = {"edge-only": Method(candidates=EDGES), "joint": Method()}
    plan = [
        (name, population, label, method)
        for name in NAMES
        for population in ("general", "stratified", "borderline")
        for label, method in methods.items()
    ]
    return _table("Population sweep", plan, progress)


def _table(title: str, plan: list[tuple[str, str, str, Method]], progress: Progress) -> Table:
    rows = []
    for name, population, label, method in plan:
        progress(f"{name}, {population}, {label}")
        found = cell(name, population, 0.5, method)
        rates = found.valid.mean(axis=0)
        rows.append(
            (
                name,
                population,
                label,
                f"{found.support.mean():.0f}",
                with_error(found.ceiling),
                f"{found.guess.mean():.3f}",
                *(f"{rates[column]:.3f}" for column in (2, 4, 5)),
                f"{found.size.mean():.2f}",
                f"{found.empty.mean():.1%}",
            )
        )
    return Table(title, ABOUT, HEADINGS, tuple(rows))
