"""Every rule in the table: empty set first, no duplicates, within caps, deterministic, reads no edge."""

import inspect

import pytest

from privcfs import PublicContext
from privcfs.public import nearby
from privcfs.public.candidates import RULES, partners
from privcfs.public.candidates.candidates import CandidateRule
from tests.worlds import random_world

each = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


@each
@pytest.mark.parametrize("large", [False, True], ids=["whole graph", "part of a large one"])
@pytest.mark.parametrize("seed", range(3))
def test_a_rule_proposes_a_proper_list(
    rule: CandidateRule, seed: int, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(nearby, "MOST_KEPT", 0)
        monkeypatch.setattr(nearby, "HUB", 2)
        monkeypatch.setattr(partners, "MOST_PAIRS", 12)
    context = random_world(seed, nodes=12).context
    for target in range(4):
        proposed = rule.propose(context, target)
        items = list(proposed)
        assert items[0].size == 0
        assert len(set(items)) == len(items) == len(proposed)
        assert max(len(item.delete) + len(item.add) for item in items) <= rule.caps.pairs
        assert max(len(item.mask) for item in items) <= rule.caps.features
        assert proposed.caps == rule.caps
        assert proposed == rule.propose(context, target), "the same list every time"


@each
def test_a_rule_is_given_public_data_alone(rule: CandidateRule) -> None:
    signature = inspect.signature(type(rule).propose)
    assert list(signature.parameters) == ["self", "context", "target"]
    assert signature.parameters["context"].annotation is PublicContext


@each
def test_a_rule_describes_itself_for_the_digest(rule: CandidateRule) -> None:
    assert type(rule).__name__ in repr(rule)
    assert " at 0x" not in repr(rule)
