"""The commented vault.toml that `privcfs init` writes, and the keys that a vault file may have.

Zone: owner
Claim: every graph gets a random id of its own, which is not computed from the graph.
Why: the id comes from the operating system's generator; nothing private is read here.
Check: tests/owner/test_vault_file.py::test_every_template_has_an_id_of_its_own
"""

import secrets

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.private.utilities import EXPLAINERS, UTILITIES
from privcfs.public.candidates import RULES

TEMPLATE = """\
# A privcfs vault. Paths are relative to this file.

[graph]                          # SECRET: nobody but the owner reads these files
edges = "edges.csv"              # rows source,target or source,target,weight (.csv or .parquet); for graphs larger
                                 # than memory a .store made by `privcfs import`, here and for features and snapshot
                                 # or columns by name: {{ file = "links.csv", source = "from", target = "to" }}
model = "gcn.safetensors"        # the frozen two-layer GCN that decides (ours, or a PyTorch Geometric state dict);
                                 # leave it and model_is out only if the public model below is the one that decides
model_is = "kept"                # kept: you do not publish it, and nothing is promised about it: answers tell about it,
                                 #   as its decisions do every day. It must owe nothing to the private edges, or its
                                 #   training must be entered into the ledger (privcfs enter).
                                 # secret: the promise covers it like the edges. Every answer then counts on the one
                                 #   account of the model, and a public model must guide the search (below).
# people_know_their_edges = true # say so if everyone knows all of their own edges, as one knows one's friendships and
                                 # contracts; people can then have advice about themselves, which costs nothing.
                                 # Never where edges are similarities, reports, or what others declare: if some are,
                                 # name a file of the others: people_know_their_edges = "friendships.csv"
# features = "own_features.csv"  # where features are secret too; the public table then holds what is public of them
id = "{graph_id}"
                                 # random; ties this graph to one budget. Keep it as long as the graph lives.
# simplify = true                # drop self-loops and merge repeated rows instead of refusing them

[public]                         # KNOWN TO EVERYONE
features = "{features}"        # one row per node: .csv, .npy, or .npz written by scipy.sparse.save_npz
                                 # or columns by name: {{ file = "clients.csv", nodes = "client" }} (docs/graphs.md)
snapshot = "public_edges.csv"    # pairs made public before, and independently of, the private edges
# model = "public_model.safetensors"  # for model_is = "secret": made from public data, it guides the search; make it
                                 # with `privcfs train`. Or the model that decides, if that is public.
# metadata = "known_pairs.csv"   # small-sets and ladders: public pairs that may be deleted, in the snapshot's place
# node_ids = "nodes.txt"         # one name per line, where nodes have names
# schema = "features.toml"       # names, units and ranges of features, and how people can change them: answers then
                                 # name changes, such as LoanDuration: 48 -> 24 months (docs/recourse.md)
# model_from_snapshot = true     # say so if this model decides and was trained on the snapshot alone
# prediction_disclosed = true    # say so if people know the decision about themselves
# snapshot_is_private = true     # say so if `privcfs snapshot` made the snapshot
# sketch = "sketch.bin"          # what `privcfs sketch` wrote: evidence about hidden pairs, paid once for everyone

[budget]
ledger = "sqlite:///budget.db"
limit = "10"                     # for all releases together: epsilon, or rho, or releases, as the contract counts.
                                 # A new ledger begins with it; later change the ledger's: privcfs budget --set-limit
# limit_per_analyst = "2"        # for each analyst; change it later with --set-analyst-limit
# limit_per_node = "2"           # for method.reads = "own-edges": each node has an account of its own, and `limit` is
                                 # for questions that read the whole graph; change it later with --set-node-limit
# period = "year"                # renews the accounts of nodes each year, or each "month"; the total is never renewed
# least_price = "0.01"           # questions below it are refused: time and load, too, should not be had for nothing
# contract = "zcdp"              # pure (epsilons add up), approximate (deltas too), zcdp (rhos), fixed (one price)
# delta = "0.000001"
# price = "1"                    # of every release, under a fixed contract
head = "head.json"               # the ledger's newest row, kept up to date: a lost or rolled-back ledger is refused

# [service]                      # privcfs serve
# database = "sqlite:///service.db"  # keys (as digests) and the log of requests
# log_days = 90                  # for how long the log is kept
# identity_header = "X-Forwarded-User"  # a reverse proxy that signs people in says who asks, in the place of a key
# identity_secret_file = "proxy.secret" # it proves itself with this in X-Privcfs-Proxy-Secret; without it, only
                                 # over the Unix socket of `privcfs serve --unix`
# people = "people.csv"          # rows identity,node or identity,node,role

[method]
candidates = "small-sets"        # {rules}
                                 # With a schema: recourse if left out; every other one is kept to the schema
utility = "gated"                # {utilities}
mechanism = "rehearsed"          # rehearsed (guided by imagined graphs), {mechanisms}
# reads = "own-edges"            # an answer reads the target's own edges and nobody else's, and its price counts for
                                 # the target alone; "whole-graph", if left out: it counts for everyone
# disclosed = 0.5                # rehearsed: the share of all pairs that the snapshot is thought to hold
# answer_seconds = 0.5           # every new answer takes this long, so that its time says nothing about edges;
                                 # "off" for none. Left out, `privcfs serve` chooses one and the command line has none.
# evaluation_seconds = 60        # the most counted work of an evaluation, 10^9 units a second; beyond it the answer is
                                 # drawn from public scores. Work is counted from sizes, never by a clock.

# [actionable]                   # what an answer may name (small-sets, ladders, and all candidates under a schema)
# immutable_nodes = ["7"]        # their pairs stay as they are
# immutable_features = [3]       # by number, or by the name in the schema or in the header of features
# partners = ["1", "2"]          # who may be joined to a target; anyone, if left out
# desired = 2                    # the class to reach, or several: [1, 2], or all but some: {{ not = [0] }}; any
                                 # other than the present one, if left out
# cost = {{ delete = 1, add = 2, mask = 1, most = 4 }}
"""
KEYS = {
    "graph": {"edges", "id", "simplify", "model", "model_is", "features", "people_know_their_edges"},
    "public": {
        *("features", "snapshot", "model", "metadata", "node_ids", "schema"),
        *("model_from_snapshot", "prediction_disclosed", "snapshot_is_private", "sketch"),
    },
    "budget": {
        *("ledger", "limit", "limit_per_analyst", "limit_per_node", "period"),
        *("least_price", "head", "contract", "delta", "price"),
    },
    "service": {"database", "log_days", "identity_header", "identity_secret_file", "people"},
    "method": {"candidates", "utility", "mechanism", "reads", "disclosed", "answer_seconds", "evaluation_seconds"},
    "actionable": {"immutable_nodes", "immutable_features", "partners", "desired", "cost"},
}
# Keys that version 0.1 wrote, and what they are called now: its vault files are still read.
FORMER_KEYS = {"public": {"backbone": "model", "backbone_from_snapshot": "model_from_snapshot"}}


def template(features: str = "features.csv") -> str:
    """A commented vault.toml with a fresh random graph id, for features in a file of this name."""
    return TEMPLATE.format(
        features=features,
        graph_id=secrets.token_hex(16),
        rules=", ".join(RULES),
        utilities=", ".join([*UTILITIES, *EXPLAINERS]),
        mechanisms=", ".join(MECHANISMS),
    )
