"""vault.toml: which graph is protected, what is public, how much may be spent, and by which method."""

import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from privcfs.errors import SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import SQLITE, open_ledger
from privcfs.gate.ledger.ledger import Head, Ledger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.vault import Method, Vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.public.assumptions import DEFAULT, Assumption
from privcfs.public.backbones.files import load_backbone
from privcfs.public.candidates import RULES
from privcfs.public.context import PublicContext

TEMPLATE = """\
# A privcfs vault. Paths are relative to this file.

[graph]                          # SECRET: nobody but the owner reads these files
edges = "edges.csv"              # rows source,target or source,target,weight (.csv or .parquet)
id = "{graph_id}"
                                 # random; ties this graph to one budget. Keep it as long as the graph lives.
# simplify = true                # drop self-loops and merge repeated rows instead of refusing them

[public]                         # KNOWN TO EVERYONE
features = "features.csv"        # one row per node: .csv, .npy, or .npz written by scipy.sparse.save_npz
snapshot = "public_edges.csv"    # pairs made public before, and independently of, the private edges
backbone = "gcn.safetensors"     # a frozen two-layer GCN (ours, or a PyTorch Geometric state dict)
# node_ids = "nodes.txt"         # one name per line, where nodes have names
# backbone_from_snapshot = true  # say so if the model was trained on the snapshot alone

[budget]
ledger = "sqlite:///budget.db"
limit = "10"                     # epsilon for all releases together
# limit_per_analyst = "2"
# head = "head.json"             # kept elsewhere by `privcfs budget --export-head`: refuses a rolled-back ledger

[method]
candidates = "one-hop"           # {rules}
utility = "gated"                # {utilities}
mechanism = "exponential"        # {mechanisms}
"""
KEYS = {
    "graph": {"edges", "id", "simplify"},
    "public": {"features", "snapshot", "backbone", "node_ids", "backbone_from_snapshot"},
    "budget": {"ledger", "limit", "limit_per_analyst", "head"},
    "method": {"candidates", "utility", "mechanism"},
}
Choice = TypeVar("Choice")


def template() -> str:
    """A commented vault.toml with a fresh random graph id."""
    return TEMPLATE.format(
        graph_id=secrets.token_hex(16),
        rules=", ".join(RULES),
        utilities=", ".join(UTILITIES),
        mechanisms=", ".join(MECHANISMS),
    )


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """One vault.toml, checked."""

    folder: Path
    tables: dict[str, dict[str, Any]]

    def vault(self) -> Vault:
        """Everything loaded: the graph, the context, the ledger."""
        context = self.context()
        return Vault(self._graph(context), context, ledger=self.ledger(), method=self.method())

    def context(self) -> PublicContext:
        """The public side alone."""
        public = self.tables["public"]
        from_snapshot = public.get("backbone_from_snapshot", False)
        trained = {Assumption.BACKBONE_FROM_SNAPSHOT} if from_snapshot else {Assumption.BACKBONE_PUBLIC}
        return PublicContext(
            self._path("public", "features"),
            self._path("public", "snapshot"),
            load_backbone(self._path("public", "backbone")),
            node_ids=self._path("public", "node_ids") if "node_ids" in public else None,
            assumptions=DEFAULT - {Assumption.BACKBONE_PUBLIC} | trained,
        )

    def ledger(self) -> Ledger:
        """The account, made on first use."""
        budget = self.tables["budget"]
        limit = Limit.of(self._text("budget", "limit"), budget.get("limit_per_analyst"))
        return self._open(limit)

    def ledger_as_it_is(self) -> Ledger:
        """The existing account, whatever the limit in the file says: for changing it."""
        return self._open(None)

    def method(self) -> Method:
        """The public choices behind a release."""
        return Method(
            self._choice("candidates", RULES, "one-hop"),
            self._choice("utility", UTILITIES, "gated"),
            self._choice("mechanism", MECHANISMS, "exponential"),
        )

    def _graph(self, context: PublicContext) -> PrivateGraph:
        path = self._path("graph", "edges")
        read = PrivateGraph.from_parquet if path.suffix == ".parquet" else PrivateGraph.from_csv
        simplify = bool(self.tables["graph"].get("simplify", False))
        return read(path, number_of_nodes=context.number_of_nodes, node_ids=context.node_ids, simplify=simplify)

    def _open(self, limit: Limit | None) -> Ledger:
        url = self._text("budget", "ledger")
        if url.startswith(SQLITE):
            url = SQLITE + str(self.folder / url.removeprefix(SQLITE))
        head = self._path("budget", "head") if "head" in self.tables["budget"] else None
        known = Head.from_json(head.read_text()) if head and head.exists() else None
        return open_ledger(url, limit, graph_id=self._text("graph", "id"), known=known)

    def _choice(self, key: str, table: Any, default: str) -> Any:
        name = self.tables["method"].get(key, default)
        if name not in table:
            raise SettingsError(f"vault file: method.{key} is {name!r}; choose one of {', '.join(table)}.")
        return table[name]

    def _text(self, table: str, key: str) -> str:
        value = self.tables[table].get(key)
        if not isinstance(value, str) or not value:
            raise SettingsError(f"vault file: {table}.{key} must be text in quotes; see `privcfs init`.")
        return value

    def _path(self, table: str, key: str) -> Path:
        return self.folder / self._text(table, key)


def load_settings(path: Path) -> Settings:
    """Reads and checks a vault file; a mistyped key is an error, not a silent default."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"vault file {path} does not exist; write one with `privcfs init`.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"vault file {path} cannot be read: {error}.") from None
    for table, keys in tables.items():
        if table not in KEYS or not isinstance(keys, dict):
            raise SettingsError(f"vault file: unknown table [{table}]; there are {', '.join(KEYS)}.")
        for key in keys:
            if key not in KEYS[table]:
                raise SettingsError(
                    f"vault file: unknown key {table}.{key}; there are {', '.join(sorted(KEYS[table]))}."
                )
    return Settings(path.resolve().parent, {table: tables.get(table, {}) for table in KEYS})
