"""A vault over embedded real data in a folder, as an owner would lay it out: for trials of commands and service."""

from pathlib import Path

from privcfs.embedded import load_dataset

SETTINGS = """
[graph]
edges = "edges.csv"
id = "0123456789abcdef0123456789abcdef"

[public]
features = "features.npz"
snapshot = "public_edges.csv"
model = "gcn.safetensors"
model_from_snapshot = true

[budget]
ledger = "{ledger}"
limit = "{limit}"
head = "head.json"

[method]
candidates = "{candidates}"
utility = "gated"
mechanism = "{mechanism}"
{more}"""


def write_vault(
    folder: Path,
    ledger: str,
    limit: str,
    *,
    candidates: str = "small-sets",
    mechanism: str = "rehearsed",
    answer_seconds: str | None = "off",
    limit_per_node: str | None = None,
) -> None:
    """Cora with its simulated snapshot; without a public answering time, unless the service is to choose one (None).

    With a limit per node, answers read own edges alone and are paid from accounts of nodes.
    """
    load_dataset("cora").write(folder)
    more = "" if answer_seconds is None else f'answer_seconds = "{answer_seconds}"\n'
    more += "" if limit_per_node is None else 'reads = "own-edges"\n'
    settings = SETTINGS.format(ledger=ledger, limit=limit, candidates=candidates, mechanism=mechanism, more=more)
    if limit_per_node is not None:
        settings = settings.replace("[budget]\n", f'[budget]\nlimit_per_node = "{limit_per_node}"\n')
    (folder / "vault.toml").write_text(settings)
