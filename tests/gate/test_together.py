"""Several suggestions about one target, and how sure each is given all of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcfs import Intervention, Method, Vault
from privcfs.errors import InputError
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.gate.questions.release import Earlier, lay_out
from privcfs.private.graph import PrivateGraph
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.small_sets import SmallSets
from tests.worlds import World, random_world

FEW = Rehearsal(Worlds(6))
GUIDED = Method(SmallSets(), guide=FEW)
BY_OWN_EDGES = Method(SmallSets(), guide=OwnEdgeRehearsal(FEW, samples=4, each=2))


def vault_of(world: World, method: Method) -> Vault:
    return Vault(world.graph, world.context, ledger=MemoryLedger(), method=method)


@pytest.mark.parametrize("method", [GUIDED, BY_OWN_EDGES], ids=["guided", "own edges"])
def test_one_answer_alone_is_as_sure_as_it_says(method: Method) -> None:
    vault = vault_of(random_world(4), method)
    for target in range(5):
        release = vault.release(target, "2")
        assert vault.confidences([release]) == pytest.approx([release.confidence], abs=0.00051)


def test_several_answers_weight_imagined_graphs_by_the_laws_of_their_draws() -> None:
    vault = vault_of(random_world(4), GUIDED)
    first, second = vault.suggest(0, "4", 2)
    candidates = GUIDED.candidates.propose(vault.context, 0)
    belief = FEW.belief(vault.context, candidates, GUIDED.utility)
    stages = []
    for earlier in (Earlier(), Earlier([first.intervention])):
        mechanism = lay_out(GUIDED, vault.context, 0, Fraction(2), earlier)[1].mechanism
        assert isinstance(mechanism, SubsetSelection)
        stages.append(np.flatnonzero(mechanism.base))
    places = [
        stage.tolist().index(list(candidates).index(one.intervention))
        for stage, one in zip(stages, (first, second), strict=True)
    ]
    law = [belief.probabilities(stage, 2.0)[:, place] for stage, place in zip(stages, places, strict=True)]
    valid = [belief.drawn_and_valid(stage, 2.0)[:, place] for stage, place in zip(stages, places, strict=True)]
    both = sum(float(p * a * b) for p, a, b in zip(belief.likelihood, *law, strict=True))
    flips = sum(float(p * a * b) for p, a, b in zip(belief.likelihood, valid[0], law[1], strict=True))
    expected = float(belief.calibration(np.array([flips / both]))[0])
    assert vault.confidences([first, second])[0] == pytest.approx(expected, abs=1e-6)


def test_confidences_are_the_same_whatever_the_private_graph() -> None:
    world = random_world(4)
    found = vault_of(world, GUIDED).suggest(0, "9", 3)

    empty = Vault(
        PrivateGraph.from_edges([], number_of_nodes=world.graph.number_of_nodes),
        world.context,
        ledger=MemoryLedger(),
        method=GUIDED,
    )
    assert empty.confidences(found) == vault_of(world, GUIDED).confidences(found)


def test_no_change_never_flips_and_a_method_without_beliefs_believes_nothing() -> None:
    vault = vault_of(random_world(4, nodes=4), GUIDED)
    found = vault.suggest(0, "20", 20)
    assert found[-1].intervention == Intervention()
    assert vault.confidences(found)[-1] == 0
    plain = vault_of(random_world(4), Method())
    assert plain.confidences([plain.release(0, "1")]) == [None]


def test_what_was_not_drawn_together_is_refused() -> None:
    vault = vault_of(random_world(4), GUIDED)
    found = vault.suggest(0, "3", 3)
    with pytest.raises(InputError, match="one or several suggestions about one target"):
        vault.confidences([])
    with pytest.raises(InputError, match="one or several suggestions about one target"):
        vault.confidences([found[0], replace(found[1], target=1)])
    with pytest.raises(InputError, match="is none of these suggestions; give them all, in their order"):
        vault.confidences([found[0], found[0]])
