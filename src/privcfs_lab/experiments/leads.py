"""The two sentences with which a page of results opens: what it shows, and what its own rows say.

The first is fixed. The second is made from the rows each time a page is written, so it cannot outlive its numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import hypot
from typing import Any, NamedTuple

Rows = list[dict[str, Any]]
PRINTED = "paper's ceiling"


class Lead(NamedTuple):
    """What a page shows, and what makes its conclusion from its rows, as its JSON file has them."""

    shows: str
    concludes: Callable[[Rows], str]


def lead(name: str, rows: Rows) -> str:
    """The opening of the page of that name."""
    return f"{LEADS[name].shows} {LEADS[name].concludes(rows)}"


def mean(value: Any) -> float:
    """A number of a row, without its error."""
    return float(value["mean"] if isinstance(value, dict) else value)


def where(rows: Rows, **wanted: Any) -> Rows:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _range(values: Iterable[Any], form: str = ".2f") -> str:
    numbers = sorted(mean(value) for value in values if value is not None)
    low, high = (format(numbers[end], form) for end in (0, -1))
    return low if low == high else f"{low} to {high}"


def _gaps(rows: Rows, one: str, other: str) -> str:
    """How often one column is clearly above another, by two standard errors of independent values."""
    signs = Counter(_sign(row[one], row[other]) for row in rows)
    return f"above it in {signs[1]}, below it in {signs[-1]} and alike in {signs[0]} of {len(rows)} rows"


def _sign(one: Any, other: Any) -> int:
    gap = mean(one) - mean(other)
    return 0 if abs(gap) <= 2 * hypot(one["error"], other["error"]) else 1 if gap > 0 else -1


def _agreeing(rows: Rows, *columns: str) -> str:
    words = [row[column] for row in rows for column in columns if row[column]]
    return f"{sum(word == 'agrees' for word in words)} of {len(words)}"


def _judged(rows: Rows, column: str = "within", good: str = "yes") -> str:
    words = [row[column] for row in rows if row[column] is not None]
    return f"{sum(word == good for word in words)} of {len(words)}"


def _frontier(rows: Rows) -> str:
    half = where(rows, disclosed=0.5, arm="joint")
    return (
        "With half of the edges public and both kinds of change, a release at epsilon 8 flips "
        f"{_range(row['@8'] for row in half)} of them and the free guess "
        f"{_range(row['public guess'] for row in half)}, so at that price the release is "
        f"{_gaps(half, '@8', 'public guess')}."
    )


def _datasets(rows: Rows) -> str:
    return f"Of the printed accuracies {_agreeing(rows, 'verdict')} agree with ours within two standard deviations."


def _edge_feature(rows: Rows) -> str:
    masks, pairs = where(rows, arm="feature-only"), where(rows, arm="edge-only")
    return (
        f"Masks as they are defined flip {_range(row['ceiling'] for row in masks)} of the targets by themselves, "
        f"deletions {_range(row['ceiling'] for row in pairs)}, and the paper's joint ceilings are "
        f"{_range(row[PRINTED] for row in where(rows, arm='joint'))}: its masks did nothing."
    )


def _losses(rows: Rows) -> str:
    cells: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        if row["step"] is not None:
            cells.setdefault((row["data"], row["population"], row["arm"]), []).append(row)
    worst = Counter(min(steps, key=lambda row: mean(row["step"]))["stage"] for steps in cells.values())
    told = " and ".join(f"`{name}` in {count}" for name, count in worst.most_common())
    return f"The largest loss comes with {told} of {len(cells)} cases."


def _populations(rows: Rows) -> str:
    half = sorted(where(rows, disclosed=0.5, arm="joint"), key=lambda row: mean(row["@8"]))
    low, high = half[0], half[-1]
    return (
        f"With half of the edges public, a release at epsilon 8 flips between {mean(low['@8']):.2f} ({low['data']}, "
        f"{low['population']}) and {mean(high['@8']):.2f} ({high['data']}, {high['population']}): no rate means "
        "anything without its population."
    )


def _ablations(rows: Rows) -> str:
    agreeing = _agreeing(rows, "verdict", "verdict @8")
    return f"Of the printed ceilings and rates {agreeing} agree with ours within two standard errors."


def _findings(rows: Rows) -> str:
    printed = [row["paper agrees with"] for row in rows if row["paper agrees with"]]
    return (
        f"Of {len(printed)} printed numbers {sum(word != 'none' for word in printed)} agree with at least one of the "
        f"three arms, and {sum(word == 'none' for word in printed)} with none."
    )


def _compare(rows: Rows) -> str:
    hard = where(rows, population="borderline")
    ours = [row for row in hard if row["method"].startswith("ours") and row["operations"] == "edges and features"]
    return (
        f"On borderline targets, methods that certify nothing flip up to "
        f"{max(mean(row['CSR']) for row in where(hard, **{'certified for': 'nothing'})):.2f} and a certified release "
        f"{_range(row['CSR'] for row in ours)}, where the free guess flips "
        f"{_range(row['CSR'] for row in where(hard, method='row zero: public guess'))}."
    )


def _sameops(rows: Rows) -> str:
    return (
        f"With the paper's rule of choice, noise on the graph leaves "
        f"{_range(row['NaiveDP, best utility'] for row in rows)} of the targets flipped, with the rule of the free "
        f"guess {_range(row['NaiveDP, lowest margin'] for row in rows)}, and a release at epsilon 8 "
        f"{_range(row['@8'] for row in rows)}."
    )


def _readings(rows: Rows) -> str:
    words = Counter(row["holds"] for row in rows if row["holds"])
    told = ", ".join(f"`{word}` ({count})" for word, count in words.most_common())
    return f"With our numbers, the statements are judged as follows: {told}."


def _transfer(rows: Rows) -> str:
    joint = where(rows, disclosed=0.5, arm="joint")
    return (
        f"With half of the edges public, a release of both kinds of change at epsilon 8 flips "
        f"{_range(row['@8'] for row in joint)}, the free guess {_range(row['public guess'] for row in joint)}."
    )


def _certification(rows: Rows) -> str:
    return f"{_judged(rows, 'verdict', 'holds')} checks hold, the rejection of every broken twin among them."


def _audit_pairs(rows: Rows) -> str:
    return (
        f"{_judged(rows)} rows keep their bound: at epsilon 8 the average pair is told apart with an AUC of at most "
        f"{max(mean(row['mean AUC']) for row in rows):.3f}, the worst pair with "
        f"{max(mean(row['largest AUC']) for row in rows):.4f}."
    )


def _post_mortem(rows: Rows) -> str:
    deployed = where(rows, method="from scratch")
    return (
        f"As deployed, {_range((row['identical'] for row in deployed), '.0%')} of the vectors stay the same, and an "
        f"attack on the worst one reaches an AUC of {_range(row['largest AUC, vector'] for row in deployed)}: noise "
        "for a move of 1 an entry does not cover what moves."
    )


def _leakage(rows: Rows) -> str:
    noisy, ours = where(rows, method="RR-LDP"), where(rows, method="ours, exponential")
    return (
        f"The worst pair is told with an AUC of {_range((row['largest AUC'] for row in noisy), '.3f')} from a "
        f"randomised graph at 7.2 and of {_range((row['largest AUC'] for row in ours), '.3f')} from our release at 8; "
        "what each method proves stands beside it."
    )


def _zero(rows: Rows) -> str:
    return (
        f"Against the free guess, a release at epsilon 8 is {_gaps(rows, 'ours @8', 'public guess')}, and one at "
        f"epsilon 1 {_gaps(rows, 'ours @1', 'public guess')}."
    )


def _slice(_: Rows) -> str:
    return "Whoever gets the same bytes has the code and the weights of the other pages."


def _population(rows: Rows) -> str:
    chosen = where(rows, disclosed=0.5, total=max((row["total"] for row in rows), key=float))
    told = ", ".join(
        f"{row['data']} {mean(row['sketch']):.2f} of {mean(row['row zero']):.2f} to {mean(row['ceiling']):.2f}"
        for row in chosen
        if row["sketch"] is not None
    )
    return f"At the largest total, with half of the edges public, a sketch flips (of free guess to ceiling): {told}."


def _black_box(rows: Rows) -> str:
    shipped, twins = where(rows, kind="shipped"), where(rows, kind="broken twin")
    return (
        f"{_judged(shipped)} rows of shipped mechanisms keep their claim, and {_judged(twins)} broken twins are "
        "convicted."
    )


def _worst_case(rows: Rows) -> str:
    honest = [row for row in rows if row["largest loss"] is not None and "broken twin" not in row["search"]]
    top = max(honest, key=lambda row: row["share of epsilon"])
    return (
        f"{_judged(rows)} rows are as they must be, and the worst pair found uses {top['share of epsilon']:.1%} of "
        f"epsilon ({top['search']}, {top['graphs']}): the bound holds and can hardly be improved."
    )


def _attacks(rows: Rows) -> str:
    ours, bare = (
        max(mean(row["AUC"]) - row["public data alone, AUC"] for row in where(rows, victim=victim))
        for victim in ("ours, 7.2 in all", "CF-GNNExplainer")
    )
    return (
        f"Beyond what public data alone give, no attack gains more than {ours:+.2f} of AUC from our release at 7.2 for "
        f"all answers, while an unprotected explainer gives away up to {bare:+.2f}."
    )


def _questions(rows: Rows) -> str:
    split = [row for row in where(rows, questions=100) if row["total"] < 9]
    once = [row for row in where(rows, questions=1) if row["total"] > 7]
    return (
        f"{_judged(rows)} rows stay within the accounts, and a total of 8 in one answer tells up to "
        f"{max(mean(row['largest advantage']) for row in once):.2f}, in a hundred answers up to "
        f"{max(mean(row['largest advantage']) for row in split):.2f}."
    )


def _accounts(rows: Rows) -> str:
    shares = [row["share of the limits"] for row in rows if row["share of the limits"] is not None]
    return f"{_judged(rows)} rows hold, and the worst transcript found uses {max(shares):.1%} of the limits."


def _sketches(rows: Rows) -> str:
    attacks, twins = where(rows, kind="attack"), where(rows, kind="broken twin")
    most = max(row["share of what is stated"] or 0 for row in attacks)
    within, convicted = (sum(row["within"] == "yes" for row in some) for some in (attacks, twins))
    return (
        f"{within} of {len(attacks)} attacks stay within what is stated, of which the worst uses {most:.0%}, and "
        f"{convicted} of {len(twins)} broken twins are convicted."
    )


def _time(rows: Rows) -> str:
    free = [row for row in rows if row["answers"] == "as soon as possible" and not row["graphs"].startswith("broken")]
    return (
        f"Without a public answering time an AUC of up to {max(mean(row['AUC of time']) for row in free):.2f} is "
        f"reached, with one {_judged(rows)} judged rows hold."
    )


def _transcripts(rows: Rows) -> str:
    honest, twins = where(rows, kind="shipped"), where(rows, kind="broken twin")
    return (
        f"{_judged(honest)} rows of honest accounts stand however long they are watched, and {_judged(twins)} accounts "
        "that state half of what is lost are refuted."
    )


def _neighbours(rows: Rows) -> str:
    robust, greedy = (row for name in ("RoboGExp", "greedy") for row in rows if row["method"].startswith(name))
    stands = [name for name in robust if name.startswith("stands")]
    return (
        f"Robust witnesses stand any one deletion nearby for {_range(robust[name] for name in stands)} of the targets, "
        f"a greedy search does for {_range(greedy[name] for name in stands)}, and neither protects an edge."
    )


def _everyone(rows: Rows) -> str:
    joint = where(rows, disclosed=0.5, arm="joint")
    return (
        f"With half of the edges public and both kinds of change, a release at epsilon 8 flips "
        f"{_range((row['gain @8'] for row in joint), '+.3f')} more than the free guess."
    )


def _ground_truth(rows: Rows) -> str:
    ours, bare = where(rows, method="ours, epsilon 8"), where(rows, method="CF-GNNExplainer")
    return (
        f"A release at epsilon 8 leaves {_range(row['fidelity'] for row in ours)} of the targets unflipped, an "
        f"explainer without privacy {_range(row['fidelity'] for row in bare)}."
    )


def _recourse(rows: Rows) -> str:
    chosen = [row for row in rows if row["population"] != "borderline" and (row["cap"], row["disclosed"]) == (2, 0.5)]
    return (
        "With at most two changes and half of the edges public, a release closes "
        f"{_range((row['closed @1'] for row in chosen), '.0%')} of the gap between free guess and ceiling at epsilon 1 "
        f"and {_range((row['closed @8'] for row in chosen), '.0%')} at epsilon 8."
    )


def _levers(rows: Rows) -> str:
    losses: dict[str, list[float]] = {}
    for whole in where(rows, method="all of it"):
        for row in where(rows, data=whole["data"], population=whole["population"]):
            losses.setdefault(row["method"], []).append(mean(row["@4"]) - mean(whole["@4"]))
    single = {name: sum(gaps) / len(gaps) for name, gaps in losses.items() if name.startswith("no ")}
    worst = min(single, key=lambda name: single[name])
    return f"What is missed most at epsilon 4 is taken away in the row `{worst}`: {single[worst]:+.3f} on average."


def _beliefs(rows: Rows) -> str:
    told = [
        f"{one['data']} {mean(other['row zero']):.3f} to {mean(one['row zero']):.3f}"
        for one in where(rows, belief="everything learned")
        for other in where(rows, belief="the snapshot alone", data=one["data"])
    ]
    return f"Learning instead of believing the snapshot alone moves the free guess from and to: {', '.join(told)}."


def _confidence(rows: Rows) -> str:
    errors, perfect = ([row[name] for row in rows] for name in ("calibration error", "perfect forecaster"))
    return (
        f"A stated confidence is off by {_range(errors, '.3f')} on average, where a perfect forecaster would be off by "
        f"{_range(perfect, '.3f')} because bins are finite."
    )


def _advice(rows: Rows) -> str:
    half = where(rows, disclosed=0.5)
    return (
        "With half of the edges public, advice closes "
        f"{_range((row['above row zero'] for row in half), '.0%')} of the gap between free guess and ceiling, and "
        "costs no epsilon."
    )


def _loan(rows: Rows) -> str:
    told = "; ".join(
        f"by {row['what may change']} it is valid for {mean(row['valid']):.0%}, at {row['cost ratio']:.1f} times the "
        "cost of the cheapest valid change"
        for row in rows
        if row["answer"].startswith("advice")
    )
    return f"Of those whom some permitted change helps, advice at price 0 reaches most: {told}."


def _models(rows: Rows) -> str:
    return (
        f"A release at epsilon 8 flips {_range(row['@8'] for row in rows)} by model, the free guess "
        f"{_range(row['row zero'] for row in rows)}, of ceilings of {_range(row['ceiling'] for row in rows)}."
    )


def _scale(rows: Rows) -> str:
    made = where(rows, graph="made")
    return (
        f"From {made[0]['nodes']:,} to {made[-1]['nodes']:,} nodes of one degree a release takes "
        f"{_range((row['whole release, ms'] for row in made), '.1f')} ms, so the number of nodes does not matter."
    )


def _bench(rows: Rows) -> str:
    values = {row["what"]: row["value"] for row in rows}
    fast = values["fast evaluator, one core"]
    return f"The fast evaluator takes {fast}; what was asked for stands beside each value."


LEADS: Mapping[str, Lead] = {
    "datasets": Lead(
        "The graphs on which all is measured, with the accuracy of the models that are explained.", _datasets
    ),
    "frontier-general": Lead(
        "How many publicly drawn targets flip, by price and by how many edges are public.", _frontier
    ),
    "frontier-borderline": Lead(
        "How many targets of lowest margin flip, by price and by how many edges are public.", _frontier
    ),
    "edge-feature": Lead(
        "Which kind of change carries the result: deleted pairs, masked features, or both.", _edge_feature
    ),
    "losses": Lead("Where validity is lost between a free explainer and a private release, stage by stage.", _losses),
    "populations": Lead("How far a release reaches, by who is explained.", _populations),
    "ablations": Lead("Each choice of the paper's method changed in turn, on borderline targets.", _ablations),
    "findings": Lead("The seven findings of the paper's text, number by number.", _findings),
    "compare": Lead("The systems of the paper's comparison on borderline targets, and what each certifies.", _compare),
    "compare-full": Lead(
        "Every compared system on both populations: what flips, at which price, and what is certified.", _compare
    ),
    "sameops": Lead("The same list of changes with noise on the graph instead of on the answer.", _sameops),
    "readings": Lead("The three readings that the paper gives its comparison, derived again from our rows.", _readings),
    "transfer": Lead("Whether the frontier carries over to larger graphs.", _transfer),
    "certification": Lead(
        "Checks of support, sensitivity and ratio on small graphs, each with a broken twin.", _certification
    ),
    "audit-pairs": Lead("How well the best attack tells neighbouring real graphs apart from one answer.", _audit_pairs),
    "post-mortem": Lead("How far the heuristic's answer moves between graphs that differ in one pair.", _post_mortem),
    "leakage": Lead("What the best attack gains beside what is valid, for each place of the noise.", _leakage),
    "zero": Lead(
        "What a guess from public data flips on every test node, beside the release that must beat it.", _zero
    ),
    "slice": Lead("A part of the borderline frontier that the tests compute again, byte by byte.", _slice),
    "population": Lead(
        "What it achieves to explain everyone at one total price, by the ways that a vault has.", _population
    ),
    "audit-black-box": Lead(
        "An auditor who only asks, before every shipped mechanism and every broken twin.", _black_box
    ),
    "audit-worst-case": Lead(
        "The worst pairs of graphs that enumeration, climbing and construction find.", _worst_case
    ),
    "audit-attacks": Lead("Known attacks on our release, on other protections, and on none.", _attacks),
    "audit-questions": Lead("What an adaptive analyst learns from many answers.", _questions),
    "audit-transcripts": Lead(
        "Whether the account of many questions is right, by bets that may be stopped at any moment.", _transcripts
    ),
    "audit-accounts": Lead("Whether accounts of nodes and advice keep what they promise.", _accounts),
    "audit-sketches": Lead("What a sketch tells about one edge, alone and with paid answers.", _sketches),
    "audit-time": Lead("What the time of an answer gives away, with and without a public answering time.", _time),
    "neighbours": Lead("What each method protects or certifies, and how often it flips a decision.", _neighbours),
    "everyone": Lead("The frontier over every test node, ten seeds and five data sets.", _everyone),
    "ground-truth": Lead(
        "Explanations of graphs whose reasons are known, with the field's four measures.", _ground_truth
    ),
    "recourse": Lead("How many targets at most a few changes flip, at each price and size.", _recourse),
    "levers": Lead("What each part of a guided release is worth, left out in turn.", _levers),
    "beliefs": Lead("What each belief about hidden pairs is worth, on held-out pairs and in use.", _beliefs),
    "confidence": Lead("Whether the confidence on an answer is right.", _confidence),
    "advice": Lead(
        "What a person's own edges are worth, in advice to her and in releases that read nothing else.", _advice
    ),
    "loan": Lead("What permitted changes of named features achieve for refused loans.", _loan),
    "models": Lead("Models other than the paper's, and whole graphs with a known reason.", _models),
    "scale": Lead("What one release costs as the graph grows.", _scale),
    "bench": Lead("Speed and memory of evaluators, releases and large graphs, in one run on one machine.", _bench),
}
