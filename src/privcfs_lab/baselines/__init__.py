"""Compared methods: one file each, one interface, one line here; what each certifies stands in its header."""

from collections.abc import Mapping

from privcfs.gate.method import Method
from privcfs.public.candidates import RULES
from privcfs_lab.baselines.baseline import Baseline, Operations
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.combinex import Combinex
from privcfs_lab.baselines.dp_sgd import DPSGD
from privcfs_lab.baselines.gap import GAP
from privcfs_lab.baselines.greedy import Greedy
from privcfs_lab.baselines.lap_dp import LapDP
from privcfs_lab.baselines.naive_dp import AnalyticNaiveDP, NaiveDP
from privcfs_lab.baselines.pns import PNS
from privcfs_lab.baselines.privcf_out import PrivCFOut
from privcfs_lab.baselines.privcf_sgd import PrivCFSGD
from privcfs_lab.baselines.rc_explainer import RCExplainer
from privcfs_lab.baselines.restricted import RULES_OF_CHOICE, Restricted
from privcfs_lab.baselines.robo_gexp import RoboGExp
from privcfs_lab.baselines.rr_ldp import RRLDP

_EDGES = Operations.EDGES
BASELINES: Mapping[str, Baseline] = {
    "CF-GNNExplainer": CFGNNExplainer(epochs=300),
    "CF-GNNExplainer, small": CFGNNExplainer(epochs=300, size_weight=0.01),
    "CF-GNNExplainer, edges": CFGNNExplainer(_EDGES),
    "PNS": PNS(),
    "PNS, edges": PNS(_EDGES),
    "RCExplainer": RCExplainer(),
    "RCExplainer, edges": RCExplainer(_EDGES),
    "COMBINEX": Combinex(),
    "COMBINEX, edges": Combinex(_EDGES),
    "greedy search": Greedy(),
    "greedy search, edges": Greedy(_EDGES),
    "NaiveDP, as printed": NaiveDP(),
    "NaiveDP, calibrated": AnalyticNaiveDP(),
    "LapDP": LapDP(),
    "RR-LDP": RRLDP(),
    "RR-LDP, edges": RRLDP(_EDGES),
    **{
        f"restricted {name}, {rule}{words}": Restricted(noise, Method(RULES[candidates]), rule, operations)
        for name, noise in (("NaiveDP", AnalyticNaiveDP()), ("RR-LDP", RRLDP()))
        for rule in RULES_OF_CHOICE
        for words, candidates, operations in (("", "one-hop", Operations.BOTH), (", edges", "edges-only", _EDGES))
    },
    "DP-SGD backbone": DPSGD(),
    "DP-SGD backbone, edges": DPSGD(_EDGES),
    "GAP backbone": GAP(),
    "PrivCF-out (heuristic)": PrivCFOut(),
    "PrivCF-out (heuristic), edges": PrivCFOut(_EDGES),
    "PrivCF-SGD": PrivCFSGD(),
    "PrivCF-SGD, edges": PrivCFSGD(_EDGES),
}
# Methods whose explanations are to withstand changes of the graph: the page neighbours measures what that is worth.
ROBUST: Mapping[str, Baseline] = {"RoboGExp, one deletion": RoboGExp()}
