"""How far margins on imagined graphs can be trusted where features have a schema: tried on changes of features too.

With a schema, answers change features and pairs. A change of a person's own features counts little beside many
neighbours, so margins are small, and what is believed of other people's hidden pairs may be wrong for all candidates
of a list alike. Therefore three numbers are tried: the doubt about margins, the trust in the snapshot as it is, and how
far the logits of every imagined graph are drawn towards those of the snapshot. They are tried twice: with imagined own
pairs, as for guesses and releases, and with known ones, as for advice.

Zone: gate
Claim: what is tuned is a function of public data.
Why: everything is judged on a stage, where the public snapshot plays the private graph; no private graph is given.
Check: tests/gate/test_learning.py::test_what_is_learned_with_a_schema_is_the_same_whatever_the_private_graph
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.sketch_trials import Stage
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.imagined import logits_of_imagined
from privcfs.private.own_reading import personal_list
from privcfs.public.beliefs.belief import EDGE, Belief, margins_of
from privcfs.public.beliefs.imagined import Beliefs, Sampling
from privcfs.public.beliefs.learned import Tuned, drawn_together
from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.context import PublicContext

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
# Whose lists are tried: those of features alone, and of features and pairs.
RULES: tuple[CandidateRule, ...] = (Recourse(pairs=False), Recourse(most=2))
# The numbers that are tried.
DOUBTS, TRUSTS = (0.05, 0.1, 0.2, 0.3, 0.45, 0.7), (0.02, 0.25, 0.5)
BLENDS = (0.0, 0.25, 0.5, 0.75, 1.0)
# So many nodes are explained, each on so many imagined graphs.
TARGETS, GRAPHS = 200, 32
# Guesses of one choice are clearly worse than those of another if they are by so many standard errors.
CLEARLY = 2.0


class SchemaTrial(NamedTuple):
    """One explained node: the logits of its list (candidates, classes, graphs), and what is valid on the stage."""

    logits: Floats
    sizes: NDArray[np.int64]
    valid: Bools

    def belief(self, tuned: Tuned) -> Belief:
        """What would be believed with these numbers."""
        margins = np.nan_to_num(margins_of(drawn_together(self.logits, tuned.blend)))
        worth = np.ones(len(self.sizes), np.float32)
        return Belief(margins, worth, self.sizes, tuned.doubt, tuned.trust)


def schema_trials(stage: Stage, shown: PublicContext, beliefs: Beliefs, knows_own: bool) -> list[SchemaTrial]:
    """Explains sampled nodes; with `knows_own`, by all pairs that they have on the stage, as a person could.

    Args:
        stage: The public play of the private graph.
        shown: What the believer sees.
        beliefs: What the believer learned from that.
        knows_own: Whether the own pairs of each node are known, or imagined too.

    Returns:
        One trial for each node that can be evaluated.
    """
    rng, found = np.random.default_rng([stage.whole.seed, 8]), []
    graph = stage.graph
    for number, target in enumerate(rng.permutation(shown.number_of_nodes)[:TARGETS].tolist()):
        rule, own = RULES[number % len(RULES)], graph.own(target) if knows_own else None
        candidates = rule.propose(shown, target) if own is None else personal_list(own, rule, shown)
        logits = logits_of_imagined(shown, beliefs, candidates, Sampling(GRAPHS), own)
        try:
            outcomes = evaluate(graph, stage.whole, candidates, UNLIMITED)
        except ArithmeticError:
            continue
        found.append(SchemaTrial(logits, candidates.sizes, outcomes.flips()))
    return found


def tuned(trials: list[SchemaTrial]) -> Tuned:
    """The numbers under which what was observed is likeliest, among those whose guesses are not clearly worse."""
    settings = [Tuned(*one) for one in product(DOUBTS, TRUSTS, BLENDS)]
    right, likelihood = np.zeros((len(settings), len(trials))), np.zeros(len(settings))
    for number, trial in enumerate(trials):
        for blend, doubt in product(BLENDS, DOUBTS):
            valid = trial.belief(Tuned(doubt, 0.0, blend)).valid
            snapshot, imagined = valid[0], valid[1:].mean(axis=0) if len(valid) > 1 else valid[0]
            for trust in TRUSTS:
                place = settings.index(Tuned(doubt, trust, blend))
                chances = trust * snapshot + (1 - trust) * imagined
                right[place, number] = trial.valid[np.argmax(chances)]
                likelihood[place] += _log_score(chances[1:], trial.valid[1:])
    behind = right[right.sum(axis=1).argmax()] - right
    is_worse = behind.sum(axis=1) > CLEARLY * np.sqrt(np.abs(behind).sum(axis=1))
    return settings[int(np.where(is_worse, -np.inf, likelihood).argmax())]


def _log_score(chances: NDArray[np.floating], valid: Bools) -> float:
    """The mean log-likelihood of what was observed of one list; 0 for a list without a candidate."""
    inner = np.clip(np.where(valid, chances, 1 - chances), EDGE, 1)
    return float(np.log(inner).mean()) if len(inner) else 0.0
