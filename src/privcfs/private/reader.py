"""What one question may read of the private graph: all of it, or the own edges of the nodes at which it is paid.

Zone: private
Claim: a question that is paid at nodes gets outcomes of these nodes' own edges, and of nothing else.
Why: the reader cuts own edges out of the graph before an evaluator sees them, refuses nodes that were not paid for, and
    refuses to read the whole graph for a question that was paid at nodes.
Check: tests/private/test_reader.py::test_a_question_paid_at_nodes_reads_their_own_edges_alone
"""

from dataclasses import replace
from typing import final

from privcfs.errors import SealedError
from privcfs.private.allowance import Allowance
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.own_reading import FarGraphs, OwnOutcomes, evaluate_own, personal_list
from privcfs.private.sealed import Sealed
from privcfs.private.secrets import Secrets
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.context import PublicContext, Readable


@final
class Reader(Sealed):
    """Reads for one question, within one allowance of counted work.

    Args:
        graph: The private graph.
        readable: The features and the model that decide.
        allowance: The counted work that all evaluations of the question may take together.
        nodes: The nodes whose own edges may be read; by default none, and the whole graph may be read instead.
    """

    __slots__ = ("_allowance", "_graph", "_nodes", "_readable")

    def __init__(
        self, graph: PrivateGraph, readable: Readable, allowance: Allowance, nodes: tuple[int, ...] = ()
    ) -> None:
        self._graph, self._readable, self._allowance, self._nodes = graph, readable, allowance, nodes

    def whole(self, candidates: Candidates) -> Outcomes:
        """What the model says under every candidate, exactly."""
        if self._nodes:
            raise SealedError("a question that is paid at nodes cannot read the whole graph; charge it in full.")
        return evaluate(self._graph, self._readable, candidates, self._allowance)

    def own_list(self, node: int, rule: CandidateRule, context: PublicContext) -> Candidates:
        """The list of one node for its own person; it depends on the node's own edges."""
        self._refuse_unpaid(node)
        return personal_list(self._graph.own(node), rule, context)

    def own(self, candidates: Candidates, far: FarGraphs) -> OwnOutcomes:
        """What is believed under every candidate, given the target's own edges; a secret model or table decides."""
        self._refuse_unpaid(candidates.target)
        if isinstance(self._readable, Secrets):
            far = replace(far, context=self._readable.deciding(far.context))
        return evaluate_own(self._graph.own(candidates.target), far, candidates, self._allowance)

    def _refuse_unpaid(self, node: int) -> None:
        if node not in self._nodes:
            raise SealedError("a question cannot read the own edges of a node at which it is not paid.")
