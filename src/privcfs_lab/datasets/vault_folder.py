"""A vault over embedded real data in a folder, as an owner would lay it out: for trials of commands and service."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from privcfs.embedded import load_dataset
from privcfs.public.models.files import save_model

SETTINGS = """
[graph]
edges = "edges.csv"
id = "0123456789abcdef0123456789abcdef"

[public]
features = "features.npz"
snapshot = "snapshot.csv"
model = "model.safetensors"
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
) -> None:
    """Cora with its simulated snapshot; without a public answering time, unless the service is to choose one (None)."""
    data = load_dataset("cora")
    np.savetxt(folder / "edges.csv", data.edges(), "%d", ",")
    np.savetxt(folder / "snapshot.csv", data.snapshot, "%d", ",")
    sp.save_npz(folder / "features.npz", data.features)
    save_model(data.model("snapshot"), folder / "model.safetensors", {})
    more = "" if answer_seconds is None else f'answer_seconds = "{answer_seconds}"\n'
    settings = SETTINGS.format(ledger=ledger, limit=limit, candidates=candidates, mechanism=mechanism, more=more)
    (folder / "vault.toml").write_text(settings)
