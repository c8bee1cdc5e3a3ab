"""vault.toml: which graph is protected, what is public, how much may be spent, and by which method."""

import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from privcfs.errors import InputError, SettingsError
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
head = "head.json"               # the ledger's newest row, kept up to date: a lost or rolled-back ledger is refused

[method]
candidates = "one-hop"           # {rules}
utility = "gated"                # {utilities}
mechanism = "exponential"        # {mechanisms}
# answer_seconds = 0.5           # every new answer takes this long, so that its time says nothing about edges
"""
KEYS = {
    "graph": {"edges", "id", "simplify"},
    "public": {"features", "snapshot", "backbone", "node_ids", "backbone_from_snapshot"},
    "budget": {"ledger", "limit", "limit_per_analyst", "head"},
    "method": {"candidates", "utility", "mechanism", "answer_seconds"},
}


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
        graph, seconds = self.graph(context), self.tables["method"].get("answer_seconds")
        return Vault(graph, context, ledger=self.ledger(), method=self.method(), answer_seconds=seconds)

    def context(self) -> PublicContext:
        """The public side alone."""
        public = self.tables["public"]
        from_snapshot = self._flag("public", "backbone_from_snapshot")
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
        ledger = self._open(limit, self.known())
        self.remember(ledger.head())
        return ledger

    def ledger_as_it_is(self, known: Head | None = None) -> Ledger:
        """The existing account, whatever limit the file says: for changing it, or for exporting its head."""
        return self._open(None, known)

    def remember(self, head: Head) -> None:
        """Keeps the ledger's newest row where the vault file says."""
        if "head" in self.tables["budget"]:
            write_head(self._path("budget", "head"), head)

    def method(self) -> Method:
        """The public choices behind a release."""
        return Method(
            self._choice("candidates", RULES, "one-hop"),
            self._choice("utility", UTILITIES, "gated"),
            self._choice("mechanism", MECHANISMS, "exponential"),
        )

    def graph(self, context: PublicContext) -> PrivateGraph:
        """The secret edges alone."""
        path = self._path("graph", "edges")
        read = PrivateGraph.from_parquet if path.suffix == ".parquet" else PrivateGraph.from_csv
        simplify = self._flag("graph", "simplify")
        return read(path, number_of_nodes=context.number_of_nodes, node_ids=context.node_ids, simplify=simplify)

    def _open(self, limit: Limit | None, known: Head | None) -> Ledger:
        return open_ledger(self._ledger_url(), limit, graph_id=self._text("graph", "id"), known=known)

    def _ledger_url(self) -> str:
        url = self._text("budget", "ledger")
        return SQLITE + str(self.folder / url.removeprefix(SQLITE)) if url.startswith(SQLITE) else url

    def known(self) -> Head | None:
        """The head that the vault file says to trust; none before first use."""
        kept = self.kept_head()
        if kept is None and "head" in self.tables["budget"] and exists(Path(self._ledger_url().removeprefix(SQLITE))):
            path = self._path("budget", "head")
            raise SettingsError(
                f"head file {path} is missing, but the ledger exists; restore it, or trust the ledger as it is: "
                f"privcfs budget --export-head {path}."
            )
        return kept

    def kept_head(self) -> Head | None:
        """The head in the file that the vault file names, if both are there."""
        return read_head(self._path("budget", "head")) if "head" in self.tables["budget"] else None

    def _flag(self, table: str, key: str) -> bool:
        value = self.tables[table].get(key, False)
        if not isinstance(value, bool):
            raise SettingsError(f"vault file: {table}.{key} must be true or false, without quotes.")
        return value

    def _choice(self, key: str, table: Any, default: str) -> Any:
        name = self.tables["method"].get(key, default)
        if not isinstance(name, str) or name not in table:
            raise SettingsError(f"vault file: method.{key} is {name!r}; choose one of {', '.join(table)}.")
        return table[name]

    def _text(self, table: str, key: str) -> str:
        value = self.tables[table].get(key)
        if not isinstance(value, str) or not value:
            raise SettingsError(f"vault file: {table}.{key} must be text in quotes; see `privcfs init`.")
        return value

    def _path(self, table: str, key: str) -> Path:
        return self.folder / self._text(table, key)


def read_head(path: Path) -> Head | None:
    """The head that a file keeps, if the file exists."""
    try:
        return Head.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, InputError) as error:
        raise SettingsError(f"head file {path} cannot be read: {error}") from None


def exists(path: Path) -> bool:
    """Whether a file is there; a path that cannot even be looked up is the owner's mistake."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        raise SettingsError(f"path {str(path)[:80]!r} cannot be looked up: {error}.") from None


def write_head(path: Path, head: Head) -> None:
    """Replaces the file in one step, never by an older head: a crash or a second writer leaves one whole head."""
    kept = read_head(path)
    if kept is not None and kept.graph_id == head.graph_id and kept.position > head.position:
        return
    try:
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
        fresh.write_text(head.to_json() + "\n", encoding="utf-8")
        fresh.replace(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"head file {path} cannot be written: {error}.") from None


def load_settings(path: Path) -> Settings:
    """Reads and checks a vault file; a mistyped key is an error, not a silent default."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"vault file {path} does not exist; write one with `privcfs init`.") from None
    except (OSError, ValueError, RecursionError) as error:
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
