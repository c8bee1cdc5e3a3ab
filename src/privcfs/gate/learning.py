"""What a vault learns once from public data: beliefs, the doubt about margins, and the calibration of confidence.

Zone: gate
Claim: what is learned is a function of the public context and the owner's public settings.
Why: nothing here is given a private graph. A part of the public snapshot is hidden from the believer, and the whole
    snapshot plays the private graph on which answers are judged.
Check: tests/gate/test_learning.py::test_what_is_learned_is_the_same_whatever_the_private_graph
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.schema_trials import schema_trials, tuned
from privcfs.gate.sketch_trials import Stage, beliefs_with, stage_of
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.public.beliefs.belief import Belief, Calibration, log_odds
from privcfs.public.beliefs.imagined import Beliefs, Sampling
from privcfs.public.beliefs.learned import DEFAULT_DOUBT, DEFAULT_TRUST, Learned
from privcfs.public.beliefs.learning import LEAST_PAIRS, learn_beliefs
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN

Floats = NDArray[np.float64]
# The doubts that are tried.
DOUBTS = (0.35, 0.5, 0.8, 1.2)
# The probabilities of the snapshot as it is that are tried.
TRUSTS = (0.02, 0.1, 0.25)
# So many nodes are explained to try beliefs out, each on so many imagined graphs, at this price.
TARGETS, GRAPHS, PRICE = 600, 64, 1.0
# Doubt and trust differ from the defaults only if the guesses of another choice are better by so many standard errors:
# most choices are about equally good, and the best of many that are equal is the luckiest one.
CLEARLY = 2.0
# Strength of the prior that calibration leaves believed probabilities as they are, in answers. A trial is not quite the
# real thing: its graph has fewer pairs, and its believer has seen fewer.
PRIOR_ANSWERS = 50.0


def learned(context: PublicContext, worlds: Worlds) -> Learned:
    """What was learned for a context, from a file or now."""
    found = context.learned.get(worlds)
    if found is None:
        found = context.learned.setdefault(worlds, learn(context, worlds))
    assert isinstance(found, Learned)
    return found


def learn(context: PublicContext, worlds: Worlds, progress: Callable[[str], None] = lambda _: None) -> Learned:
    """Learns from public data: beliefs first, then how far they can be trusted.

    Args:
        context: The public context.
        worlds: The owner's settings.
        progress: Is told what is going on.

    Returns:
        The same for the same public data.
    """
    progress("learning which pairs are hidden")
    if context.sketch is not None:
        return _learn_with_sketch(context, worlds, progress)
    beliefs = learn_beliefs(context, worlds)
    if len(context.snapshot.others) < 2 * LEAST_PAIRS or not isinstance(context.model, GCN):
        return Learned(beliefs)
    progress("trying answers where a part of the snapshot is hidden")
    stage = stage_of(context, worlds)
    if context.schema is not None:
        return _tried_with_schema(beliefs, stage, stage.shown, stage.beliefs)
    return _best_in(_trials(stage, stage.shown, stage.beliefs), beliefs)


def _learn_with_sketch(context: PublicContext, worlds: Worlds, progress: Callable[[str], None]) -> Learned:
    """The same with a sketch; it is tried with a sketch of the same kind and price that is drawn from public data."""
    base = context.base
    assert base is not None
    beliefs = beliefs_with(context, learn_beliefs(base, worlds))
    if not isinstance(context.model, GCN):
        return Learned(beliefs)
    progress("trying answers with a sketch of public data")
    stage = stage_of(base, worlds)
    shown = stage.sketched(context.sketch.plan)
    believed = beliefs_with(shown, stage.beliefs)
    if context.schema is not None:
        return _tried_with_schema(beliefs, stage, shown, believed)
    trials = _trials(stage, shown, believed)
    found = _best_in(trials, beliefs)
    right = [trial.guess_is_valid(found.doubt, found.trust) for trial in trials]
    return replace(found, guessed=float(np.mean(right)) if right else None)


def _best_in(trials: "list[_Trial]", beliefs: Beliefs) -> Learned:
    """Settings and calibration that served best in trials."""
    best = _settings(trials)
    return Learned(beliefs, *best, _calibrated([trial.at(*best) for trial in trials], [one.valid for one in trials]))


def _tried_with_schema(beliefs: Beliefs, stage: Stage, shown: PublicContext, believed: Beliefs) -> Learned:
    """The same where features can be changed, for guesses and releases and, apart from these, for advice."""
    found = []
    for knows_own in (False, True):
        trials = schema_trials(stage, shown, believed, knows_own)
        best = tuned(trials)
        calibration = _calibrated([one.belief(best) for one in trials], [one.valid for one in trials])
        found.append(replace(best, calibration=calibration))
    guess, own = found
    return Learned(beliefs, guess.doubt, guess.trust, guess.calibration, blend=guess.blend, own=own)


class _Trial(NamedTuple):
    """One explained node: what is believed about its list, and which candidates are valid on the whole snapshot."""

    belief: Belief
    valid: NDArray[np.bool_]

    def at(self, doubt: float, trust: float) -> Belief:
        return Belief(self.belief.margins, self.belief.worth, self.belief.sizes, doubt, trust)

    def guess_is_valid(self, doubt: float, trust: float) -> bool:
        """Whether the public guess is valid."""
        return bool(self.valid[self.at(doubt, trust).guess()])


def _trials(stage: Stage, shown: PublicContext, beliefs: Beliefs) -> list[_Trial]:
    """Explains sampled nodes with beliefs that were learned from the shown part alone."""
    rng = np.random.default_rng([stage.whole.seed, 4])
    found = []
    for target in rng.permutation(shown.number_of_nodes)[:TARGETS].tolist():
        candidates = SmallSets().propose(shown, target)
        margins, _ = evaluate_on_imagined(shown, beliefs, candidates, Sampling(GRAPHS))
        belief = Belief(margins, np.ones(len(candidates), np.float32), candidates.sizes, DEFAULT_DOUBT)
        try:
            outcomes = evaluate(stage.graph, stage.whole, candidates, UNLIMITED)
        except ArithmeticError:
            continue
        found.append(_Trial(belief, outcomes.flips()))
    return found


def _settings(trials: list[_Trial]) -> tuple[float, float]:
    """Doubt and trust of the best guesses if they are clearly better than those of the defaults, else the defaults."""

    def guesses(doubt: float, trust: float) -> NDArray[np.int64]:
        return np.array([trial.guess_is_valid(doubt, trust) for trial in trials], np.int64)

    usual = DEFAULT_DOUBT, DEFAULT_TRUST
    gains = {one: guesses(*one) - guesses(*usual) for one in product(DOUBTS, TRUSTS)}
    best = max(gains, key=lambda one: gains[one].sum())
    is_clear = gains[best].sum() > CLEARLY * np.sqrt(np.abs(gains[best]).sum())
    return best if is_clear else usual


def _law(belief: Belief, valid: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats]:
    """The short list at PRICE, and the probability of each of its candidates where these candidates are valid."""
    chosen, _ = belief.short_list(PRICE)
    order = np.lexsort([chosen, belief.sizes[chosen], ~valid[chosen]])
    law = np.ones(len(chosen))
    law[order[0] if valid[chosen].any() else int(np.argmin(chosen))] = np.exp(PRICE)
    return chosen, law / law.sum()


def _calibrated(beliefs: list[Belief], valid: list[NDArray[np.bool_]]) -> Calibration:
    """Fits believed to observed validity of releases by logistic regression, with a prior that changes nothing."""
    believed, observed, weight = [], [], []
    for belief, is_valid in zip(beliefs, valid, strict=True):
        chosen, law = _law(belief, is_valid)
        believed += log_odds(belief.confidences(chosen, PRICE)).tolist()
        observed += is_valid[chosen].tolist()
        weight += law.tolist()
    columns = np.column_stack([np.ones(len(believed)), believed])
    parameters = np.array([0.0, 1.0])
    for _ in range(20):
        expected = 1 / (1 + np.exp(-columns @ parameters))
        gradient = columns.T @ (np.array(weight) * (np.array(observed) - expected))
        gradient -= PRIOR_ANSWERS * (parameters - [0.0, 1.0])
        curvature = columns.T @ (columns * (np.array(weight) * expected * (1 - expected))[:, None])
        parameters += np.linalg.solve(curvature + PRIOR_ANSWERS * np.eye(2), gradient)
    return Calibration(float(parameters[0]), float(max(parameters[1], 0.1)))
