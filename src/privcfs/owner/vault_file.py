"""vault.toml: which graph is protected, what is public, how much may be spent, and by which method.

Zone: owner
Claim: the public context is made from the files under [public] and, where the owner keeps the model without a promise
    about it, that model; a mistyped key is an error, not a silent default.
Why: `context` opens no other file of [graph], and refuses a snapshot that is the file of the private edges.
Check: tests/owner/test_vault_file.py::test_the_public_context_never_opens_a_secret_file
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, final

from privcfs.errors import ContextError, GraphError, SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import Contract, contract_from
from privcfs.gate.ledger import SQLITE
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import Method
from privcfs.gate.questions.question import checked_price
from privcfs.gate.vault import LEAST_PRICE, Vault
from privcfs.owner.account import Account
from privcfs.owner.kept_beliefs import NAME, recall_or_learn, silent
from privcfs.owner.kept_sketch import recall_or_believe
from privcfs.owner.method_choice import REHEARSED_DRAW, WHOLE_GRAPH, dearest_mechanism, method_of
from privcfs.owner.template import FORMER_KEYS, KEYS
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.public.assumptions import Assumption, hiding
from privcfs.public.context import PublicContext, names_of
from privcfs.public.epsilon import parse_epsilon
from privcfs.public.models.files import load_model
from privcfs.tables.features import read_features
from privcfs.tables.named_columns import Links, Table, columns_in
from privcfs.tables.names import read_node_ids
from privcfs.tables.store import PAIRS, SUFFIX, open_store

KEPT, SECRET = "kept", "secret"  # the status of a model that is not public
OFF = "off"  # the value of answer_seconds that switches the public answering time off
LOG_DAYS, LONGEST_LOG = 90, 36_500
# Keys that may name columns of a file, in the place of the file.
WITH_COLUMNS = {
    ("public", "features"),
    ("public", "snapshot"),
    ("graph", "edges"),
    ("graph", "people_know_their_edges"),
}
Columns = TypeVar("Columns", Table, Links)


def open_vault(path: str | Path, *, answer_seconds: float | None = None) -> Vault:
    """The vault that a vault file describes, with the same guards as on the command line.

    Args:
        path: The vault file, such as "vault.toml"; `privcfs init` writes one with comments.
        answer_seconds: The public time that every new answer takes, in seconds; by default the file's, or none.

    Returns:
        A vault whose ledger is tied to these edges and guarded by the head file, where the vault file names one.

    Raises:
        SettingsError: The file is missing or has a mistake, or the edges spend from another ledger.
        GraphError: The private edges cannot be read.
        ContextError: The public files cannot be read, or do not fit each other.
        LedgerError: The ledger is missing, altered, rolled back, or in use.
    """
    return read_vault_file(Path(path)).vault(answer_seconds)


def read_vault_file(path: Path) -> "VaultFile":
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
    return VaultFile(path.resolve(), {table: _known_keys(table, tables.get(table, {})) for table in KEYS})


def _known_keys(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """The keys of one table under their present names; an unknown key is refused, and so is one that is given twice."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = FORMER_KEYS.get(table, {}).get(key, key)
        if name not in KEYS[table]:
            raise SettingsError(f"vault file: unknown key {table}.{key}; there are {', '.join(sorted(KEYS[table]))}.")
        if name in found:
            raise SettingsError(f"vault file: {table}.{name} is given twice; {key} is a former name. Keep {name}.")
        found[name] = value
    return found


class ServiceSettings(NamedTuple):
    """Where the service keeps its keys and its log, for how many days, and how a reverse proxy says who asks.

    Attributes:
        database: A URL.
        log_days: For how many days the log is kept.
        identity_header: The header in which a proxy names who asks; None, the default, where only keys count.
        identity_secret: The file with the secret by which the proxy proves itself; None, the default, for none.
        people: The table of identities and nodes; None, the default, where there is no such header.
    """

    database: str
    log_days: int
    identity_header: str | None = None
    identity_secret: Path | None = None
    people: Path | None = None


@final
@dataclass(frozen=True, slots=True)
class VaultFile:
    """One vault.toml, checked. Nothing else is opened until a method asks for it."""

    path: Path
    tables: dict[str, dict[str, Any]]

    def vault(self, answer_seconds: float | None = None, progress: Callable[[str], None] = silent) -> Vault:
        """Everything loaded: the graph, the context, the ledger. `answer_seconds` takes the place of the file's.

        What is learned from public data is kept beside the vault file; `progress` is told if it is learned now.
        """
        context = self.context(progress)
        method = self.believing_method(context, progress)
        graph = self.graph(context)
        return Vault(
            graph,
            context,
            ledger=self.account.open(graph),
            least_price=self._least_price,
            method=method,
            answer_seconds=self.answer_seconds() if answer_seconds is None else answer_seconds,
            secrets=self.secrets(context),
            people_know_their_edges=self._known_edges(context),
        )

    @property
    def account(self) -> Account:
        """The ledger that the file names, with its limits and its head file; nothing is opened yet."""
        head = HeadFile(self._path("budget", "head")) if "head" in self.tables["budget"] else None
        return Account(
            self._in_folder(self._text("budget", "ledger")),
            self._text("graph", "id"),
            self._path("graph", "edges"),
            self._first_limit(),
            head,
            self.path,
        )

    def answer_seconds(self) -> float | None:
        """The public answering time that the file names; none where it names none or switches it off."""
        named: float | str | None = self.tables["method"].get("answer_seconds")
        return None if named == OFF else cast("float | None", named)  # Vault checks the number

    def context(self, progress: Callable[[str], None] = silent) -> PublicContext:
        """The public side alone, with the sketch that it names."""
        base = self.context_without_sketch()
        if "sketch" not in self.tables["public"]:
            return base
        return recall_or_believe(base, self._path("public", "sketch"), progress)

    def context_without_sketch(self) -> PublicContext:
        """The public side that a sketch is made for."""
        public = self.tables["public"]
        if _same(self._path("public", "snapshot"), self._path("graph", "edges")):
            raise SettingsError("vault file: snapshot and edges are the same; private edges are not public.")
        return PublicContext(
            self._columns("public", "features", Table),
            self._columns("public", "snapshot", Links),
            load_model(self._path("graph" if self._model_is_kept() else "public", "model")),
            node_ids=self._path("public", "node_ids") if "node_ids" in public else None,
            assumptions=self._assumptions(),
            schema=self._path("public", "schema") if "schema" in public else None,
        )

    def _assumptions(self) -> frozenset[Assumption]:
        graph = self.tables["graph"]
        is_kept = self._model_is_kept()
        assumptions = hiding(
            model="model" in graph and not is_kept,
            kept_model=is_kept,
            features="features" in graph,
            snapshot=self._flag("public", "snapshot_is_private"),
        )
        if self._flag("public", "model_from_snapshot"):
            if "model" in graph and not is_kept:
                raise SettingsError("vault file: model_from_snapshot is for a public model that decides; drop one.")
            assumptions = assumptions - {Assumption.BACKBONE_PUBLIC} | {Assumption.BACKBONE_FROM_SNAPSHOT}
        if self._flag("public", "prediction_disclosed"):
            assumptions |= {Assumption.PREDICTION_DISCLOSED}
        return assumptions

    def _model_is_kept(self) -> bool:
        """Whether the model is kept unpublished without a promise about it; version 0.1 knew secret ones only."""
        graph = self.tables["graph"]
        status = graph.get("model_is", SECRET)
        if status not in (KEPT, SECRET) or ("model_is" in graph and "model" not in graph):
            raise SettingsError("vault file: graph.model_is must be 'kept' or 'secret', and needs graph.model.")
        if status == KEPT and "model" in self.tables["public"]:
            raise SettingsError("vault file: a kept model guides its own search; drop public.model, or say 'secret'.")
        return bool(status == KEPT)

    def public_files(self) -> tuple[Path | Table, Path | Links, Path | None, Path | None]:
        """Features, snapshot and, where there are files of their own, node ids and schema; no file is opened."""
        snapshot = self._path("public", "snapshot")
        if "edges" in self.tables["graph"] and snapshot.resolve() == self._path("graph", "edges").resolve():
            raise SettingsError("vault file: snapshot and edges are the same; private edges are not public.")
        public = self.tables["public"]
        names, schema = (self._path("public", key) if key in public else None for key in ("node_ids", "schema"))
        return self._columns("public", "features", Table), self._columns("public", "snapshot", Links), names, schema

    def secrets(self, context: PublicContext) -> Secrets | None:
        """The secret model and features, where there are any."""
        graph = self.tables["graph"]
        secret = {"model", "features"} & set(graph) - ({"model"} if self._model_is_kept() else set())
        if not secret:
            return None
        model = load_model(self._path("graph", "model")) if "model" in secret else None
        return Secrets(context, model=model, features=self._path("graph", "features") if "features" in graph else None)

    def checked_price(self, epsilon: str | None) -> Fraction:
        """A price that is not below the least; 1 where none is given, or the least price where that is more."""
        least = parse_epsilon(self._least_price)
        return max(Fraction(1), least) if epsilon is None else checked_price(epsilon, least)

    @property
    def _least_price(self) -> str:
        least: str = self.tables["budget"].get("least_price", LEAST_PRICE)
        return least

    def _first_limit(self) -> Limit:
        budget = self.tables["budget"]
        return Limit.of(
            self._text("budget", "limit"),
            budget.get("limit_per_analyst"),
            self._contract(),
            per_node=budget.get("limit_per_node"),
            period=budget.get("period", ""),
        )

    def _contract(self) -> Contract:
        """What the limit counts."""
        budget = self.tables["budget"]
        named = {"kind": "contract", "delta": "delta", "epsilon": "price"}
        fields = {field: str(budget[key]) for field, key in named.items() if key in budget}
        if fields.get("kind") == "fixed":
            fields["mechanism"] = str(self.tables["method"].get("mechanism", REHEARSED_DRAW))
        return contract_from(fields)

    def method(self, context: PublicContext) -> Method:
        """The public choices behind a release."""
        metadata = self._path("public", "metadata") if "metadata" in self.tables["public"] else None
        return method_of(self.tables["method"], self.tables["actionable"], metadata, context)

    def believing_method(self, context: PublicContext, progress: Callable[[str], None] = silent) -> Method:
        """The same choices, for a context that is given what was learned for it."""
        method = self.method(context)
        recall_or_learn(self.path.parent / NAME, context, method, progress)
        return method

    def refuse_limit_per_node(self) -> None:
        """Accounts of nodes are for a method that reads own edges; with another one, a vault could not be opened."""
        if self.tables["method"].get("reads", WHOLE_GRAPH) == WHOLE_GRAPH:
            raise SettingsError(
                "a limit per node is for answers that read own edges alone, and this vault file reads the whole graph; "
                "set method.reads = 'own-edges' first. No limit was changed."
            )

    def dearest_mechanism(self) -> Mechanism:
        """The mechanism by which a release costs most."""
        return dearest_mechanism(self.tables["method"])

    def graph(self, context: PublicContext) -> PrivateGraph:
        """The secret edges alone."""
        return self._edges(context.number_of_nodes, context.node_ids)

    def graph_without_context(self) -> tuple[PrivateGraph, tuple[str, ...] | None]:
        """The secret edges and the names of nodes, before there is a snapshot or a model."""
        features = self._columns("public", "features", Table)
        source = self._path("public", "node_ids") if "node_ids" in self.tables["public"] else None
        if isinstance(features, Table):
            found = names_of(features, source)
            names = None if found is None else read_node_ids(found, ContextError)
            return self._edges(len(features.cells(ContextError).rows), names), names
        names = None if source is None else read_node_ids(source, ContextError)
        return self._edges(int(read_features(features, ContextError).shape[0]), names), names

    def _known_edges(self, context: PublicContext) -> bool | PrivateGraph:
        """Whether people know their own edges: all, none, or those that a file lists."""
        key = "people_know_their_edges"
        named = self.tables["graph"].get(key, False)
        if isinstance(named, str | dict):
            try:
                return self._edges(context.number_of_nodes, context.node_ids, key)
            except GraphError as error:
                raise GraphError(f"vault file: graph.{key} names {self._text('graph', key)}, where {error}") from None
        if not isinstance(named, bool):
            raise SettingsError(
                f"vault file: graph.{key} must be true or false, or the file of the edges that people know."
            )
        return named

    def _edges(self, nodes: int, names: tuple[str, ...] | None, key: str = "edges") -> PrivateGraph:
        source, path = self._columns("graph", key, Links), self._path("graph", key)
        if path.suffix == SUFFIX:
            return PrivateGraph.from_store(path, number_of_nodes=nodes)
        named: dict[str, Any] = {"number_of_nodes": nodes, "node_ids": names}
        if path.suffix == ".parquet":
            return PrivateGraph.from_parquet(path, **named, simplify=self._flag("graph", "simplify"))
        return PrivateGraph.from_csv(source, **named, simplify=self._flag("graph", "simplify"))

    def service(self) -> ServiceSettings:
        """The table [service], checked as a whole."""
        table = self.tables["service"]
        days = table.get("log_days", LOG_DAYS)
        if isinstance(days, bool) or not isinstance(days, int) or not 0 < days <= LONGEST_LOG:
            raise SettingsError(f"vault file: service.log_days is {days!r}; give a number from 1 to {LONGEST_LOG}.")
        named = [key for key in ("identity_header", "people", "identity_secret_file") if key in table]
        if named and not {"identity_header", "people"} <= set(named):
            raise SettingsError("vault file: service.identity_header and service.people belong together; give both.")
        return ServiceSettings(
            self._in_folder(str(table.get("database", f"{SQLITE}service.db"))),
            days,
            self._text("service", "identity_header") if named else None,
            self._path("service", "identity_secret_file") if "identity_secret_file" in named else None,
            self._path("service", "people") if named else None,
        )

    def _in_folder(self, url: str) -> str:
        """SQLite's files are relative to the vault file."""
        return SQLITE + str(self.path.parent / url.removeprefix(SQLITE)) if url.startswith(SQLITE) else url

    def _flag(self, table: str, key: str) -> bool:
        value = self.tables[table].get(key, False)
        if not isinstance(value, bool):
            raise SettingsError(f"vault file: {table}.{key} must be true or false, without quotes.")
        return value

    def _text(self, table: str, key: str) -> str:
        value = self.tables[table].get(key)
        if isinstance(value, dict) and (table, key) in WITH_COLUMNS:
            key, value = f"{key}.file", value.get("file")
        if not isinstance(value, str) or not value:
            raise SettingsError(f"vault file: {table}.{key} must be text in quotes; see `privcfs init`.")
        return value

    def _path(self, table: str, key: str) -> Path:
        return self.path.parent / self._text(table, key)

    def _columns(self, table: str, key: str, what: type[Columns]) -> Path | Columns:
        """A file, or some columns of one."""
        given, path = self.tables[table].get(key), self._path(table, key)
        return columns_in(given, path, what, f"{table}.{key}") if isinstance(given, dict) else path


def _same(one: Path, other: Path) -> bool:
    """Whether two edge lists are one file, or stores of the same pairs."""
    if one.suffix == other.suffix == SUFFIX and one.exists() and other.exists():
        first, second = (open_store(path, PAIRS, SettingsError).checksums for path in (one, other))
        return first == second
    return one.resolve() == other.resolve()
