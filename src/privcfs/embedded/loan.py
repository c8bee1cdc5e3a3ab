"""A made-up bank: 240 clients who asked for a loan, and links between them. No person is behind any row.

Everything is drawn here, by a fixed seed: incomes, loans, savings, and at which of 24 made-up employers somebody works.
A loan is paid back if a client's income, savings and guarantor weigh more than its amount and its length, for herself
and on average for the clients whom she is linked to, because these help each other. Links join clients of one employer,
and some others who sent each other money; these links play the secret. Half of them are the public snapshot, drawn from
the secret ones, so it protects nobody. The model was trained on the snapshot (tools/build_embedded.py). The data belong
to this package and come under its licence, Apache-2.0.
"""

import csv
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.beliefs.learned import learned_from
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.models.files import load_model, save_model
from privcfs.public.models.gcn import GCN
from privcfs.public.schema.reading import schema_from_text
from privcfs.public.schema.schema import Schema

Numbers = NDArray[np.int64]
SEED, CLIENTS, EMPLOYERS = 23, 240, 24
CLASSES = ("refused", "granted")
REFUSED, GRANTED = 0, 1
SAVINGS, HOUSING = ("none", "some", "plenty"), ("rents", "owns")
WITHIN, TRANSFERS = 0.35, 90  # the share of pairs of one employer that are linked, and the number of other links
TRAINED, TESTED = 0.6, 0.3  # shares of clients
FILES = ("clients.csv", "links.csv", "public_links.csv", "features.toml", "gcn.safetensors", "labels.csv")
COLUMNS = ("MonthlyIncome", "LoanAmount", "LoanDuration", "Savings", "Guarantor", "Age", "Housing")
SCHEMA = """\
# What the features of a client are called, and what she can change. Columns are those that the model reads.
columns = ["income", "amount", "duration", "savings_some", "savings_plenty", "guarantor", "age", "owns"]

[features.MonthlyIncome]
kind = "number"
column = "income"
unit = "EUR"
low = 1000
high = 8000
step = 200
direction = "up"
largest_change = 600
cost = 4
cost_per_step = 2
scale = 1450
offset = 3600

[features.LoanAmount]
kind = "number"
column = "amount"
unit = "EUR"
low = 1000
high = 40000
step = 1000
direction = "down"
largest_change = 8000
cost = 1
cost_per_step = 1
scale = 8400
offset = 16000

[features.LoanDuration]
kind = "number"
column = "duration"
unit = "months"
low = 6
high = 84
step = 6
largest_change = 24
cost = 1
cost_per_step = 1
scale = 21
offset = 39

[features.Savings]
kind = "category"
options = { none = [], some = "savings_some", plenty = ["savings_some", "savings_plenty"] }
direction = "up"
cost = 3
cost_per_step = 2

[features.Guarantor]
kind = "flag"
column = "guarantor"
direction = "up"
cost = 3

[features.Age]
kind = "number"
column = "age"
unit = "years"
low = 18
high = 100
step = 1
change = false
scale = 14
offset = 44

[features.Housing]
kind = "category"
options = { rents = [], owns = "owns" }
change = false

[[rules]]
if_rises = "LoanDuration"  # a longer loan is no reason for new savings on the same day
may_not_rise = "Savings"
"""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """The made-up clients.

    Attributes:
        rows: What `clients.csv` holds, one row for each client, in the order of COLUMNS.
        names: What clients are called.
        labels: Whether each loan was paid back, as a class.
        snapshot: The public pairs.
        train: The clients whose label the model was trained on.
        test: Clients whose label it has not seen.
        kinds: Of each pair of `pairs`, "employer" or "transfer".
        pairs: The pairs that play the secret, unsealed.
    """

    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    labels: Numbers
    snapshot: Numbers
    train: Numbers
    test: Numbers
    kinds: tuple[str, ...]
    pairs: Numbers

    @property
    def schema(self) -> Schema:
        """What clients can change."""
        return schema_from_text(SCHEMA, "features.toml")

    @property
    def features(self) -> NDArray[np.float64]:
        """What the model reads."""
        schema = self.schema
        return np.array([_encoded(schema, row) for row in self.rows])

    def context(self, model: GCN | None = None) -> PublicContext:
        """Everything public; what is learned from it once is shipped with the package."""
        context = PublicContext(
            self.features,
            self.snapshot,
            model or self.model(),
            node_ids=self.names,
            assumptions=SIMULATED,
            schema=self.schema,
        )
        text = (files(__package__) / "loan-beliefs.json").read_text(encoding="utf-8")
        if model is None and (lesson := learned_from(text, context, Worlds())) is not None:
            context.learned[Worlds()] = lesson
        return context

    def model(self) -> GCN:
        """The frozen model that decides, trained on the snapshot."""
        with as_file(files(__package__) / "loan-gcn.safetensors") as path:
            return load_model(path)

    def private_graph(self) -> PrivateGraph:
        """A private graph of the links."""
        return PrivateGraph.from_edges(self.pairs, number_of_nodes=len(self.names))

    def write(self, folder: Path) -> None:
        """Lays the data out as people have them: FILES, each CSV file with a header.

        Args:
            folder: Where; files of these names are replaced.
        """
        named = [
            (*(self.names[node] for node in pair), kind) for pair, kind in zip(self.pairs, self.kinds, strict=True)
        ]
        shown = [tuple(self.names[node] for node in pair) for pair in self.snapshot.tolist()]
        answers = [(name, CLASSES[label]) for name, label in zip(self.names, self.labels.tolist(), strict=True)]
        clients = [(name, *row) for name, row in zip(self.names, self.rows, strict=True)]
        _write(folder / "clients.csv", ("client", *COLUMNS), clients)
        _write(folder / "links.csv", ("from", "to", "kind"), named)
        _write(folder / "public_links.csv", ("from", "to"), shown)
        _write(folder / "labels.csv", ("node", "class"), [answers[node] for node in self.train.tolist()])
        (folder / "features.toml").write_text(SCHEMA, encoding="utf-8")
        save_model(self.model(), folder / "gcn.safetensors", {})


def load_bank() -> Bank:
    """The made-up clients, the same on every machine: only whole and uniform random numbers are drawn."""
    rng = np.random.default_rng(SEED)
    employer, wages = rng.integers(0, EMPLOYERS, CLIENTS), rng.integers(0, 13, EMPLOYERS)
    income = 1200 + 200 * (wages[employer] + rng.integers(0, 13, CLIENTS))
    amount, duration = 1000 * rng.integers(2, 31, CLIENTS), 6 * rng.integers(1, 13, CLIENTS)
    savings, guarantor = rng.integers(0, 3, CLIENTS), rng.integers(0, 4, CLIENTS) == 0
    age, housing = rng.integers(20, 70, CLIENTS), rng.integers(0, 2, CLIENTS)
    means = income / 1450 + 0.8 * savings + 1.2 * guarantor - amount / 8400 - duration / 30
    order, pairs = rng.permutation(CLIENTS), _pairs(employer, rng)
    score = means + _mean_of_linked(means, pairs) + rng.random(CLIENTS)
    together = employer[pairs[:, 0]] == employer[pairs[:, 1]]
    chosen = np.sort(rng.permutation(len(pairs))[: len(pairs) // 2])
    words = [list(map(str, one)) for one in (income, amount, duration)]
    words += [[SAVINGS[one] for one in savings], [("no", "yes")[int(one)] for one in guarantor]]
    words += [list(map(str, age)), [HOUSING[one] for one in housing]]
    first, last = int(TRAINED * CLIENTS), int((1 - TESTED) * CLIENTS)
    return Bank(
        rows=tuple(zip(*words, strict=True)),
        names=tuple(f"client-{number:03}" for number in range(1, CLIENTS + 1)),
        labels=(score > np.median(score)).astype(np.int64),
        snapshot=pairs[chosen],
        train=np.sort(order[:first]),
        test=np.sort(order[last:]),
        kinds=tuple("employer" if one else "transfer" for one in together),
        pairs=pairs,
    )


def _mean_of_linked(values: NDArray[np.float64], pairs: Numbers) -> NDArray[np.float64]:
    """The mean over the other ends of each client's links; 0 without any."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    sums = np.bincount(both[:, 0], values[both[:, 1]], CLIENTS)
    found: NDArray[np.float64] = sums / np.maximum(np.bincount(both[:, 0], minlength=CLIENTS), 1)
    return found


def _pairs(employer: Numbers, rng: np.random.Generator) -> Numbers:
    """Links within employers, and some between any two clients."""
    one, other = np.triu_indices(CLIENTS, 1)
    linked = (employer[one] == employer[other]) & (rng.random(len(one)) < WITHIN)
    linked[rng.permutation(len(one))[:TRANSFERS]] = True
    return np.column_stack([one[linked], other[linked]]).astype(np.int64)


def _encoded(schema: Schema, row: tuple[str, ...]) -> list[float]:
    found = [0.0] * sum(len(one.columns) for one in schema.features)
    for feature, text in zip(schema.features, row, strict=True):
        level = feature.parse(text)
        assert level is not None
        for column, number in zip(feature.columns, feature.encoded(level), strict=True):
            found[column] = number
    return found


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
