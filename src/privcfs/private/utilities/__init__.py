"""Utilities: how candidates are scored. One file per utility, one line in the table.

Zone: private
Claim: every utility in the tables satisfies the contract of utility.py.
Why: the contract suite runs over both.
Check: tests/contracts/test_utilities.py::test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span
"""

from collections.abc import Mapping

from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.objective import OBJECTIVES, Objective
from privcfs.private.utilities.soft import Soft
from privcfs.private.utilities.utility import Utility

UTILITIES: Mapping[str, Utility] = {"gated": Gated(), "soft": Soft()}
EXPLAINERS: Mapping[str, Utility] = {name: Objective(name) for name in OBJECTIVES}
