"""DiCE (Mothilal, Sharma and Tan, FAT* 2020), by its authors' package: changes of features alone, and not private.

It asks the model as often as it likes, with all edges of the private graph, so its answers tell about these without a
bound.
"""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import MissingDependency
from privcfs.public.context import PublicContext
from privcfs.public.interventions import FeatureChange, Intervention
from privcfs.public.schema.feature import Feature, Level
from privcfs.public.schema.of_node import present_levels
from privcfs.public.schema.rules import Levels
from privcfs.public.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
OUTCOME = "decision is the desired class"


def is_installed() -> bool:
    """Whether the package is here; it is in the extra `dice`."""
    return find_spec("dice_ml") is not None


class Question(NamedTuple):
    """What DiCE is told: everything public, the edges that decide, the client, the class she wants, and a seed."""

    context: PublicContext
    pairs: NDArray[np.int64]
    node: int
    desired: int
    seed: int


def alternatives(question: Question, number: int) -> list[Intervention]:
    """At most so many answers of its random search, within the ranges of the schema; rules it cannot be told.

    Numbers between two steps are taken to the nearest step. Answers come with the fewest changes first.
    """
    if not is_installed():
        raise MissingDependency("DiCE needs its package; run: pip install 'privcfs[dice]'.")
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    schema, present = _schema(question), present_levels(question.context, question.node)
    free = [one for one in schema.features if one.reachable(present.get(one.name)) and one.name in present]
    if not free:
        return []
    model = dice_ml.Model(model=_Model(question, free), backend="sklearn", model_type="classifier")
    np.random.seed(question.seed)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        explainer = dice_ml.Dice(_data(question, free), model, method="random")
        try:
            found = explainer.generate_counterfactuals(
                _frame([{one.name: _word(one, present[one.name]) for one in free}]),
                total_CFs=number,
                desired_class=1,
                permitted_range={one.name: _range(one, present[one.name]) for one in free},
                random_seed=question.seed,
            )
        except UserConfigValidationException:  # Nothing was found.
            return []
    table = found.cf_examples_list[0].final_cfs_df_sparse
    rows = [] if table is None else table[[one.name for one in free]].to_dict("records")
    answers = [_intervention(free, present, row) for row in rows]
    return sorted((one for one in answers if one.size), key=lambda one: one.size)


class _Model:
    """The decision about one client as a function of her features, in the form that DiCE wants."""

    def __init__(self, question: Question, free: Sequence[Feature]) -> None:
        self._question, self._free = question, free
        self._row = question.context.features[[question.node]].toarray()[0]

    def predict_proba(self, frame: "pd.DataFrame") -> Floats:
        rows = np.repeat(self._row[None], len(frame), axis=0)
        for feature in self._free:
            encoded = {word: feature.encoded(_level(feature, word)) for word in set(frame[feature.name])}
            rows[:, list(feature.columns)] = [encoded[word] for word in frame[feature.name]]
        asked = self._question
        logits = asked.context.model.responses(asked.context.features, asked.pairs, asked.node, rows)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        wanted = shares[:, asked.desired] / shares.sum(axis=1)
        return np.column_stack([1 - wanted, wanted])

    def predict(self, frame: "pd.DataFrame") -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.predict_proba(frame).argmax(axis=1)
        return found


def _schema(question: Question) -> Schema:
    assert question.context.schema is not None
    return question.context.schema


def _data(question: Question, free: Sequence[Feature]) -> Any:
    """The features of all clients, and a made-up outcome: the package wants one, and does not use it here."""
    import dice_ml

    context, rows = question.context, []
    for node in range(context.number_of_nodes):
        levels = present_levels(context, node)
        rows.append({one.name: _word(one, levels[one.name]) for one in free})
    frame = _frame(rows)
    frame[OUTCOME] = np.arange(len(frame)) % 2
    numbers = [one.name for one in free if one.kind == "number"]
    return dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name=OUTCOME)


def _frame(rows: Sequence[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows)


def _word(feature: Feature, level: Level) -> int | float | str:
    """A level as DiCE has it: a number, or the name of an option."""
    if feature.kind != "number":
        return feature.show(level)
    return int(level) if level.denominator == 1 else float(level)


def _level(feature: Feature, word: Any) -> Level:
    """The level that DiCE means; a number between two steps stays between them."""
    if feature.kind == "number":
        return Fraction(str(word))
    level = feature.parse(str(word))
    assert level is not None
    return level


def _range(feature: Feature, present: Level) -> list[Any]:
    """What DiCE may choose from: a client's present value and what she can reach."""
    levels = sorted({present, *feature.reachable(present)})
    if feature.kind == "number":
        return [_word(feature, levels[0]), _word(feature, levels[-1])]
    return [feature.show(one) for one in levels]


def _intervention(free: Sequence[Feature], present: Levels, row: dict[str, Any]) -> Intervention:
    changes = []
    for feature in free:
        level = _level(feature, row[feature.name])
        nearest = min(feature.levels, key=lambda one: abs(one - level))
        if level != present[feature.name] and nearest != present[feature.name]:
            changes.append(FeatureChange(feature.name, feature.show(nearest)))
    return Intervention(change=tuple(changes))
