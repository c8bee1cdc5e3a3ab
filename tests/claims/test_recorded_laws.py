"""Renovations change no law: lists, prepared draws and exact probabilities are those that were recorded before them.

`python -m tests.claims.test_recorded_laws` adds the laws of parts that are new, and records anew those of the parts
that it is given by name, such as "rule one-hop": right only where a law is meant to change.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from privcfs.embedded import NAMES, Dataset, load_dataset
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.method import GUIDED, Method
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.public.candidates import RULES
from privcfs.public.candidates.product import Product

RECORDED = Path(__file__).with_name("recorded_laws.json")
PRICES = ("0.1", "1", "4")
TARGETS = 2  # of each data set
EXACT = 1000  # candidates; longer lists are recorded by probabilities in floating point
SHORT = Product(most_pairs=1, most_features=1)
load = cache(load_dataset)


@cache
def graph_of(name: str) -> PrivateGraph:
    return load(name).private_graph()


def methods() -> Iterator[tuple[str, Method]]:
    """The default, every rule and every utility with the paper's mechanism, and every mechanism on a short list."""
    yield "guided", GUIDED
    yield from ((f"rule {name}", Method(rule)) for name, rule in RULES.items())
    yield from ((f"utility {name}", Method(utility=utility)) for name, utility in UTILITIES.items())
    yield from ((f"mechanism {name}", Method(SHORT, mechanism=mechanism)) for name, mechanism in MECHANISMS.items())


def arithmetic() -> str:
    """Digest of a few products: machines whose floating point differs may plan a draw differently."""
    numbers = np.random.default_rng(0).normal(size=(64, 300)).astype(np.float32)
    return digest((numbers @ numbers.T).tobytes().hex(), np.exp(numbers).tobytes().hex())


def digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def law(data: Dataset, target: int, method: Method) -> str:
    """Of the public list in its order, the prepared draws, the scores, and every candidate's exact probability."""
    context = data.context()
    candidates = method.candidates.propose(context, target)
    scores = method.utility.score(evaluate(graph_of(data.name), context, candidates, UNLIMITED))
    parts = [*(one.in_numbers() for one in candidates), repr(scores.grid), str(scores.unseal().tolist())]
    for price in map(Fraction, PRICES):
        mechanism = method.prepare(context, candidates, price).mechanism
        parts.append(repr(mechanism))
        if len(candidates) <= EXACT:
            exact = mechanism.exact_probabilities(scores, price)
            parts += [f"{one.numerator:x}/{one.denominator:x}" for one in exact]
        else:
            parts += [one.hex() for one in mechanism.probabilities(scores, price).tolist()]
    return digest(*parts)


def laws(name: str, kind: str) -> dict[str, str]:
    data, method = load(name), dict(methods())[kind]
    return {f"{name} {target} {kind}": law(data, int(target), method) for target in data.test[:TARGETS]}


def recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(RECORDED.read_text())
    return found


def kinds_of(keys: Iterable[str]) -> list[str]:
    """The methods that have been recorded: a part that is new has no law that could have changed."""
    return list(dict.fromkeys(key.split(" ", 2)[2] for key in keys if key != "arithmetic"))


@pytest.mark.parametrize("kind", kinds_of(recorded()))
@pytest.mark.parametrize("name", NAMES)
def test_lists_draws_and_probabilities_are_the_recorded_ones(name: str, kind: str) -> None:
    before = recorded()
    if before["arithmetic"] != arithmetic():
        pytest.skip("needs a machine with the floating point of the recording: margins differ in their last bits here")
    assert laws(name, kind).items() <= before.items()


def test_no_recorded_part_is_gone_and_none_is_recorded_in_part() -> None:
    before = recorded()
    assert set(kinds_of(before)) <= dict(methods()).keys()
    assert len(before) == 1 + len(kinds_of(before)) * len(NAMES) * TARGETS


def test_another_law_has_another_digest() -> None:
    data = load("cora")
    target = int(data.test[0])
    paper = law(data, target, Method())
    assert paper == law(data, target, Method())
    assert paper != law(data, target, Method(mechanism=MECHANISMS["uniform"]))


if __name__ == "__main__":
    found = recorded()
    assert found["arithmetic"] == arithmetic(), "this machine's floating point is not that of the recording"
    kept = set(kinds_of(found)) - set(sys.argv[1:])
    for each in NAMES:
        for kind, _ in methods():
            found |= {} if kind in kept else laws(each, kind)
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
