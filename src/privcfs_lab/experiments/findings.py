"""The seven findings of the paper's Sec. 4.3 and the figures in its appendix text, each with our number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.embedded import NAMES
from privcfs.gate.method import Method
from privcfs.public.candidates.pairs import OneHop, TwoHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs_lab.experiments.cells import HOW, ROW_ZERO, cell, seeds_of, verdict
from privcfs_lab.experiments.paper import FRONTIER, RETENTION
from privcfs_lab.figures.page import Column, Estimate, Page, Value
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.quality import regret_bound
from privcfs_lab.measuring.study import Cell, Study
from privcfs_lab.measuring.summary import estimate, guess, rate, retention, valid_if_not_empty

COMPARED = ("edge-only", "joint", "inert masks")
POPULATIONS = ("general", "borderline")
SHARES = (0.5, 0.7, 1.0)
FINDINGS = {
    "(i)": "(i) noise is the cheapest stage",
    "(ii)": "(ii) the public prior is a price list",
    "(iii)": "(iii) who is explained decides",
    "(iv)": "(iv) validity is stable, releases are not",
    "(v)": "(v) regret falls with epsilon",
    "(vi)": "(vi) any flip or the runner-up",
    "(vii)": "(vii) size is spent on validity",
    "appendix": "appendix",
}
Printed = float | tuple[float, float] | None
COLUMNS = (
    Column("finding"),
    Column("quantity"),
    Column("data"),
    *(Column(arm) for arm in COMPARED),
    Column("paper"),
    Column("paper agrees with"),
    Column("public guess"),
)


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """One number of the text: where it is read off, what the paper prints, and which row zero is of the same kind."""

    finding: str
    quantity: str
    population: str
    disclosed: float
    read: Callable[[Records], Estimate | None]
    printed: dict[str, Printed]
    zero: str | None = None
    names: tuple[str, ...] = NAMES


def at(name: str, price: str) -> Callable[[Records], Estimate]:
    """A quantity at a price."""
    return lambda found: rate(found, name, price)


def of(name: str) -> Callable[[Records], Estimate]:
    """A quantity of the target."""
    return lambda found: estimate(found[name].astype(np.float64))


def bound(found: Records) -> Estimate:
    """Theorem 2's bound on the regret of 95 % of the draws at epsilon 8."""
    return estimate(np.array([regret_bound(float(count), 8, 1.0) for count in found["support"]]))


def _table_claims() -> list[Claim]:
    claims = []
    for population in POPULATIONS:
        for share in SHARES:
            where = f"{population}, {share:.1f} disclosed"
            kept: dict[str, Printed] = {name: RETENTION[population, name, share] for name in NAMES}
            tops: dict[str, Printed] = {name: FRONTIER[population, name, share][0] for name in NAMES}
            last: dict[str, Printed] = {name: FRONTIER[population, name, share][-1] for name in NAMES}
            claims.append(Claim("(i)", f"retention @8, {where}", population, share, retention, kept))
            claims.append(Claim("(ii)", f"ceiling, {where}", population, share, of("ceiling"), tops, "guess"))
            claims.append(Claim("(iii)", f"valid rate @8, {where}", population, share, at("valid", "8"), last, "guess"))
    return claims


TARGETED = {0.5: (0.44, 0.29), 0.7: (0.53, 0.38), 1.0: (0.69, 0.41)}
CLAIMS = [
    *_table_claims(),
    Claim("(iii)", "mean margin, general", "general", 0.5, of("margin"), dict.fromkeys(NAMES, (0.69, 0.75))),
    Claim("(iii)", "mean margin, borderline", "borderline", 0.5, of("margin"), dict.fromkeys(NAMES, 0.008)),
    *(
        Claim("(iv)", f"{quantity} @8, {population}", population, 0.5, read, dict.fromkeys(NAMES, printed))
        for quantity, read, printed in (
            ("collision", at("collision", "8"), (0.002, 0.003)),
            ("empty rate", at("empty", "8"), (0.001, 0.004)),
        )
        for population in POPULATIONS
    ),
    *(
        Claim(
            "(iv)",
            f"validity of non-empty releases @8, {population}",
            population,
            0.5,
            valid_if_not_empty,
            {name: FRONTIER[population, name, 0.5][-1] for name in NAMES},
            "guess",
        )
        for population in POPULATIONS
    ),
    Claim(
        "(v)", "regret @0.5, 0.7 disclosed", "borderline", 0.7, at("regret", "0.5"), {"cora": 0.368}, names=("cora",)
    ),
    Claim("(v)", "regret @8, 0.7 disclosed", "borderline", 0.7, at("regret", "8"), {"cora": 0.164}, names=("cora",)),
    Claim("(v)", "regret that 95 % of the draws stay below @8", "borderline", 0.7, at("regret_95", "8"), {}),
    Claim("(v)", "its bound by Theorem 2 (utilities lie in 0 to 1)", "borderline", 0.7, bound, {}),
    Claim("(v)", "valid rate @0.1, near the uniform floor", "borderline", 0.7, at("valid", "0.1"), {}, "guess"),
    *(
        Claim(
            "(vi)",
            f"targeted rate @8, {share:.1f} disclosed",
            "borderline",
            share,
            at("targeted", "8"),
            dict(zip(NAMES, numbers, strict=True)),
            "guess_targeted",
        )
        for share, numbers in TARGETED.items()
    ),
    *(
        Claim(
            "(vii)",
            f"size @8, {population}",
            population,
            0.5,
            at("size", "8"),
            dict.fromkeys(NAMES, (3.1, 3.9)),
            "guess_size",
        )
        for population in POPULATIONS
    ),
    Claim("appendix", "support, borderline", "borderline", 0.5, of("support"), {"cora": 877.0, "citeseer": 947.0}),
    Claim("appendix", "nodes within two steps", "borderline", 0.5, of("near"), {"cora": 33.3, "citeseer": 11.2}),
]


def page(study: Study) -> Page:
    """Every claim with both arms, the arm of inert masks and row zero."""
    keys = {(n, p, s, arm): cell(n, p, s, arm) for n in NAMES for p in POPULATIONS for s in SHARES for arm in COMPARED}
    measured = study.measure(keys.values())
    rows: list[list[Value]] = []
    for claim in CLAIMS:
        for name in claim.names:
            found = [measured[keys[name, claim.population, claim.disclosed, arm]] for arm in COMPARED]
            rows.append(_row(claim, name, found))
    rows += _breadth(study)
    rows.sort(key=lambda row: list(FINDINGS.values()).index(str(row[0])))
    about = (
        f"{seeds_of(study).capitalize()}. {HOW} {ROW_ZERO} It is that of the joint list, and of the row's kind: "
        "targeted beside targeted, size beside size. Beside the two arms stands the joint support with masks that do "
        "nothing (page edge-feature). Half of the edges are disclosed unless a row says otherwise. The paper agrees "
        "with an arm if its number, or the nearest end of its range, is within two standard errors. Its support and "
        "sizes can only come from the joint list, most of its rates only from deletions; targeted rates and Cora's "
        "empty and collision rates fit no arm well."
    )
    return Page("The findings of the text", about, COLUMNS, rows)


def _row(claim: Claim, name: str, found: list[Records]) -> list[Value]:
    values = [claim.read(records) for records in found]
    printed = claim.printed.get(name)
    zero = guess(found[1], claim.zero) if claim.zero else None
    return [FINDINGS[claim.finding], claim.quantity, name, *values, _text(printed), _agreeing(values, printed), zero]


def _agreeing(values: list[Estimate | None], printed: Printed) -> str | None:
    """The arms whose number is within two standard errors of the printed one, or of the nearest end of a range."""
    if printed is None:
        return None
    found = []
    for arm, value in zip(COMPARED, values, strict=False):
        near = float(np.clip(value.mean, *printed)) if value and isinstance(printed, tuple) else printed
        if value and isinstance(near, float) and verdict(value, near) == "agrees":
            found.append(arm)
    return ", ".join(found) or "none"


def _text(printed: Printed) -> str | None:
    if printed is None:
        return None
    return f"{printed[0]:g} to {printed[1]:g}" if isinstance(printed, tuple) else f"{printed:g}"


def _breadth(study: Study) -> list[list[Value]]:
    """(ii) again: what a smaller and a wider support do to the ceiling."""
    rows: list[list[Value]] = []
    plans = (
        ("change of the ceiling by two hops", TwoHop(), TopInfluence(), {"cora": 0.067, "citeseer": 0.100}),
        ("change of the ceiling by 4 pairs and 4 features", OneHop(4), TopInfluence(4), {"cora": 0.0, "citeseer": 0.0}),
    )
    for title, pairs, features, printed in plans:
        edges, joint = Method(Product(pairs, most_features=0)), Method(Product(pairs, features))
        for name in NAMES:
            cells = [Cell(name, "borderline", 0.5, method) for method in (edges, joint)]
            before = [cell(name, "borderline", 0.5, arm) for arm in COMPARED[:2]]
            measured = study.measure([*cells, *before])
            gains: list[Estimate | None] = [
                estimate(measured[a]["ceiling"] - measured[b]["ceiling"]) for a, b in zip(cells, before, strict=True)
            ]
            rows.append(
                [
                    FINDINGS["(ii)"],
                    title,
                    name,
                    *gains,
                    None,
                    _text(printed[name]),
                    _agreeing(gains, printed[name]),
                    None,
                ]
            )
    return rows
