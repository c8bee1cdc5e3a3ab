"""Link models: which nodes a hidden pair of a target is likely to lead to, judged by public data."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.beliefs.pool import Pool, class_probabilities, pool_of, profiles_of
from privcfs.public.context import PublicContext
from privcfs.tables.neighbours import places

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# Added to the probability of agreement before its logarithm is taken: pairs between classes exist, too.
LEAST_AGREEMENT = 0.02
# Strength of the quadratic penalty on the weights of a fitted model.
PENALTY = 1e-3
IMPOSSIBLE = np.float32(-1e9)
# The number of columns of evidence.
EVIDENCE = 5


class Evidence(NamedTuple):
    """What public data say of the pairs of a target with every node of a pool."""

    possible: NDArray[np.bool_]  # whether the pair may be hidden: neither the target itself nor a snapshot neighbour
    columns: Floats  # (nodes, 5): alike, surroundings alike, log agreement of classes, log degree, shared neighbours

    @classmethod
    def of(cls, context: PublicContext, target: int) -> "Evidence":
        """Compares a target with all nodes of its context's pool."""
        pool, neighbours = pool_of(context), np.array(context.snapshot.neighbours(target), np.int64)
        own, around = _target_profiles(context, pool, target)
        agreement = pool.probabilities @ class_probabilities(context, np.array([target]))[0]
        columns = np.empty((len(pool.nodes), 5), np.float32)
        columns[:, 0] = pool.profiles.own @ own
        columns[:, 1] = pool.profiles.around @ around
        columns[:, 2] = np.log(agreement + LEAST_AGREEMENT)
        columns[:, 3] = pool.log_degrees
        columns[:, 4] = _has_neighbour_in(context, pool, neighbours)
        possible = np.ones(len(pool.nodes), np.bool_)
        excluded = places(pool.nodes, np.append(neighbours, target))
        possible[excluded[excluded >= 0]] = False
        return cls(possible, columns)


class LinkModel(ABC):
    """Scores the pairs of a target: a higher score for a likelier pair."""

    @abstractmethod
    def log_weights(self, evidence: Evidence) -> Floats:
        """The logarithm of each node's weight, up to a constant, among the partners of a hidden pair."""


@final
@dataclass(frozen=True, slots=True)
class Anyone(LinkModel):
    """Hidden pairs lead anywhere, in proportion to public degrees plus one."""

    def log_weights(self, evidence: Evidence) -> Floats:
        return evidence.columns[:, 3]


@final
@dataclass(frozen=True, slots=True)
class LogLinear(LinkModel):
    """The log weight is a linear function of the evidence.

    Attributes:
        weights: One number for each column of `Evidence.columns`. The default was fitted on Cora; it is used where the
            snapshot holds too little to learn from.
    """

    weights: tuple[float, ...] = (3.0, 9.0, 0.8, 0.5, -1.5)

    def log_weights(self, evidence: Evidence) -> Floats:
        scores: Floats = evidence.columns @ np.array(self.weights, np.float32)
        return scores


def probabilities(model: LinkModel, evidence: Evidence) -> Floats:
    """The probability of each node among the partners of a hidden pair; zero for impossible ones."""
    scores = np.where(evidence.possible, model.log_weights(evidence), IMPOSSIBLE)
    weights = np.exp(scores - scores.max()) * evidence.possible
    chances: Floats = (weights / max(float(weights.sum()), 1e-30)).astype(np.float32)
    return chances


def fit_log_linear(evidence: Sequence[Evidence], partners: Numbers) -> LogLinear:
    """The weights under which the given partners, by position in the pool, are likeliest."""
    from scipy.optimize import minimize  # Takes long to import, and answers do not need it.

    columns = np.stack([one.columns for one in evidence])
    impossible = ~np.stack([one.possible for one in evidence])
    chosen = columns[np.arange(len(partners)), partners]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = np.where(impossible, IMPOSSIBLE, columns @ weights.astype(np.float32))
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        totals = exponentials.sum(axis=1, keepdims=True)
        value = np.log(totals[:, 0]) - scores[np.arange(len(partners)), partners]
        expected = np.matmul((exponentials / totals)[:, None], columns)[:, 0]
        gradient = (expected - chosen).mean(axis=0) + PENALTY * weights
        return float(value.mean() + PENALTY * weights @ weights / 2), gradient.astype(np.float64)

    start = np.zeros(columns.shape[2])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 40})
    return LogLinear(tuple(float(weight) for weight in found.x))


def mean_log_likelihood(model: LinkModel, evidence: Sequence[Evidence], partners: Numbers) -> float:
    """The mean logarithm of the probability of the given partners."""
    found = [probabilities(model, one)[partner] for one, partner in zip(evidence, partners, strict=True)]
    return float(np.log(np.maximum(found, 1e-12)).mean())


def _target_profiles(context: PublicContext, pool: Pool, target: int) -> tuple[Floats, Floats]:
    """The target's profiles as dense rows."""
    place = int(places(pool.nodes, np.array([target]))[0])
    if place >= 0:
        return _dense_row(pool.profiles.own, place), _dense_row(pool.profiles.around, place)
    profiles = profiles_of(context, np.array([target]), pool.feature_weights)
    return _dense_row(profiles.own, 0), _dense_row(profiles.around, 0)


def _dense_row(table: sp.csr_array, row: int) -> Floats:
    dense = np.zeros(table.shape[1], np.float32)
    entries = slice(table.indptr[row], table.indptr[row + 1])
    dense[table.indices[entries]] = table.data[entries]
    return dense


def _has_neighbour_in(context: PublicContext, pool: Pool, neighbours: Numbers) -> NDArray[np.bool_]:
    """Whether each node of the pool has a snapshot neighbour among the given ones."""
    _, two_steps_away = context.snapshot.neighbours_of(neighbours[: len(pool.nodes)])
    place = places(pool.nodes, two_steps_away)
    shared = np.zeros(len(pool.nodes), np.bool_)
    shared[place[place >= 0]] = True
    return shared
