"""What a sketch would be worth, tried on public data before it is paid, and what may be believed once it is there.

Zone: gate
Claim: everything here is a function of the public context and the owner's public settings.
Why: no private graph is given to it. A part of the snapshot is hidden and plays the private edges, or, where too little
    is disclosed, pairs that are imagined from public beliefs; a sketch of these is drawn with a public seed.
Check: tests/gate/test_sketching.py::test_a_rehearsal_is_the_same_whatever_the_private_graph
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from privcfs.gate.coins import Coins
from privcfs.gate.sketching import draw_sketch
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.private.graph import PrivateGraph
from privcfs.public.beliefs.belief import Belief
from privcfs.public.beliefs.imagined import Beliefs, Sampling
from privcfs.public.beliefs.learned import DEFAULT_DOUBT, DEFAULT_TRUST
from privcfs.public.beliefs.learning import LEAST_PAIRS, learn_beliefs, part_of, split_snapshot
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.sketches.knowing import believing, posterior_given
from privcfs.public.sketches.likeliest import Likeliest
from privcfs.public.sketches.meaning import covered_by
from privcfs.public.sketches.posterior import imagined_pairs, residual_law
from privcfs.public.sketches.sketch import Sketch, SketchPlan

# So many nodes are explained to say what a sketch would buy, each on so many imagined graphs.
TARGETS, GRAPHS = 200, 64


@final
class Stage(NamedTuple):
    """A public play of the private graph.

    Attributes:
        shown: The context of the believer.
        whole: The context whose snapshot plays the private graph.
        beliefs: What the believer has learned from what is shown.
        worlds: What the believer is told about the share that is shown.
    """

    shown: PublicContext
    whole: PublicContext
    beliefs: Beliefs
    worlds: Worlds

    @property
    def graph(self) -> PrivateGraph:
        """What plays the private graph."""
        return PrivateGraph.from_snapshot(self.whole.snapshot)

    def sketched(self, plan: SketchPlan) -> PublicContext:
        """The believer's context with a sketch of the play, drawn with a public seed."""
        seed, shown = bytes.fromhex(self.shown.digest), self.shown
        universe = Likeliest.of(shown, self.beliefs, plan.partners) if plan.is_listed and plan.responses else None
        parts = draw_sketch(self.graph, shown, plan, lambda use: Coins(seed, f"rehearsal: {plan.name} {use}"), universe)
        sketch = Sketch(plan, shown.digest, self.worlds, shown.number_of_nodes, shown.number_of_classes, *parts)
        return believing(shown, sketch, posterior_given(shown, self.beliefs, sketch))


def stage_of(base: PublicContext, worlds: Worlds) -> Stage:
    """A stage for a context without a sketch: a part of its snapshot is hidden, or pairs are imagined."""
    if len(base.snapshot.others) >= 2 * LEAST_PAIRS:
        split = split_snapshot(base, worlds.disclosed)
        told = replace(worlds, disclosed=split.share)
        return Stage(split.shown, split.whole, learn_beliefs(split.shown, told), told)
    base = part_of(base)
    beliefs = learn_beliefs(base, worlds)
    hidden = imagined_pairs(base, beliefs, np.random.default_rng([base.seed, 6]))
    every = np.concatenate([base.snapshot.pairs, hidden])
    whole = PublicContext(base.features, every, base.model, assumptions=base.assumptions, schema=base.schema)
    return Stage(base, whole, beliefs, worlds)


def beliefs_with(context: PublicContext, beliefs: Beliefs) -> Beliefs:
    """Beliefs for a context that knows a sketch: hidden degrees are those that the sketch leaves open."""
    assert context.posterior is not None
    return replace(beliefs, hidden_degrees=residual_law(context.posterior))


@final
class Worth(NamedTuple):
    """What a sketch would buy, on a stage: shares of explained nodes whose decision flips.

    Attributes:
        plan: The sketch.
        without: The public guess without it.
        with_it: The public guess with it.
        ceiling: Some candidate of the list without it.
        targets: How many nodes were explained.
        covered: The share of hidden pairs that the sketch covers on the stage: 1 where it covers all pairs, and None
            where it cannot be estimated. Of a graph that is larger than the stage it covers less.
    """

    plan: SketchPlan
    without: float
    with_it: float
    ceiling: float
    targets: int
    covered: float | None


def rehearse_sketch(
    base: PublicContext,
    worlds: Worlds,
    plans: list[SketchPlan],
    progress: Callable[[str], None] = lambda _: None,
) -> list[Worth]:
    """What each of some sketches would buy, judged on public data alone.

    Args:
        base: The public context, without a sketch.
        worlds: What the owner believes of hidden pairs.
        plans: The sketches to try.
        progress: Is told what is going on.

    Returns:
        One result for each plan, in their order.
    """
    stage = stage_of(base, worlds)
    targets = np.random.default_rng([base.seed, 7]).permutation(stage.shown.number_of_nodes)[:TARGETS].tolist()
    progress("guessing without a sketch")
    without = [_guess(stage, stage.shown, stage.beliefs, target) for target in targets]
    found = []
    for plan in plans:
        progress(f"guessing with a {plan.name}")
        context = stage.sketched(plan)
        beliefs = beliefs_with(context, stage.beliefs)
        flips = [_guess(stage, context, beliefs, target)[0] for target in targets]
        before, ceiling = np.mean(without, axis=0).tolist()
        covered = covered_by(context.sketch)
        found.append(Worth(plan, before, float(np.mean(flips)), ceiling, len(targets), covered))
    return found


def _guess(stage: Stage, context: PublicContext, beliefs: Beliefs, target: int) -> tuple[bool, bool]:
    """Whether the public guess flips the decision in the play, and whether any candidate does."""
    candidates = SmallSets().propose(context, target)
    margins, _ = evaluate_on_imagined(context, beliefs, candidates, Sampling(GRAPHS))
    worth = np.ones(len(candidates), np.float32)
    guess = Belief(margins, worth, candidates.sizes, DEFAULT_DOUBT, DEFAULT_TRUST).guess()
    try:
        flips = evaluate(stage.graph, stage.whole, candidates, UNLIMITED).flips()
    except ArithmeticError:
        return False, False
    return bool(flips[guess]), bool(flips.any())
