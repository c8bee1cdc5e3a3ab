"""Mechanisms: how one candidate is drawn. One file per mechanism, one line in the table.

Zone: gate
Claim: every mechanism in the table satisfies the contract of mechanism.py.
Why: the contract suite runs over this table.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from collections.abc import Mapping

from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.mechanisms.rank_profile import MatchedProfile, SubsetSelection
from privcfs.gate.mechanisms.uniform import Uniform

MECHANISMS: Mapping[str, Mechanism] = {
    item.name: item for item in (Exponential(), PermuteAndFlip(), SubsetSelection(), MatchedProfile(), Uniform())
}
