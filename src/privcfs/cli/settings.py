"""vault.toml: which graph is protected, what is public, how much may be spent, and by which method."""

import re
import secrets
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, final

from privcfs.cli.ties import enlist, refuse_second_budget, tie
from privcfs.errors import ContextError, InputError, LedgerMissing, SettingsError
from privcfs.files import EdgeListReader, read_features, read_node_ids
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import Contract, contract_from
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.ledger import POSTGRES, SQLITE, open_ledger
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.records import describe
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import DEAREST, Method
from privcfs.gate.questions.question import checked_price
from privcfs.gate.vault import LEAST_PRICE, Vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.private.utilities import EXPLAINERS, UTILITIES
from privcfs.private.utilities.gated import Gated
from privcfs.public.assumptions import Assumption, hiding
from privcfs.public.backbones.files import load_backbone
from privcfs.public.candidates import RULES
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.costs import Costs
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.pairs import Listed
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.guidance.worlds import Worlds
from privcfs.public.head import Head
from privcfs.store import PAIRS, SUFFIX, open_store

REHEARSED = "rehearsed"
OFF = "off"  # answer_seconds: no public answering time
LOG_DAYS, LONGEST_LOG = 90, 36_500
TEMPLATE = """\
# A privcfs vault. Paths are relative to this file.

[graph]                          # SECRET: nobody but the owner reads these files
edges = "edges.csv"              # rows source,target or source,target,weight (.csv or .parquet); for graphs larger
                                 # than memory a .store made by `privcfs import`, here and for features and snapshot
model = "gcn.safetensors"        # the frozen two-layer GCN that decides (ours, or a PyTorch Geometric state dict);
                                 # leave it out only if the public model below is the one that decides
# features = "own_features.csv"  # where features are secret too; the public table then holds what is public of them
id = "{graph_id}"
                                 # random; ties this graph to one budget. Keep it as long as the graph lives.
# simplify = true                # drop self-loops and merge repeated rows instead of refusing them

[public]                         # KNOWN TO EVERYONE
features = "features.csv"        # one row per node: .csv, .npy, or .npz written by scipy.sparse.save_npz
snapshot = "public_edges.csv"    # pairs made public before, and independently of, the private edges
backbone = "guide.safetensors"   # a model made from public data, which guides the search: privcfs train
# metadata = "known_pairs.csv"   # small-sets and ladders: public pairs that may be deleted, in the snapshot's place
# node_ids = "nodes.txt"         # one name per line, where nodes have names
# backbone_from_snapshot = true  # say so if this model decides and was trained on the snapshot alone
# prediction_disclosed = true    # say so if people know the decision about themselves
# snapshot_is_private = true     # say so if `privcfs snapshot` made the snapshot

[budget]
ledger = "sqlite:///budget.db"
limit = "10"                     # for all releases together: epsilon, or rho, or releases, as the contract counts.
                                 # A new ledger begins with it; later change the ledger's: privcfs budget --set-limit
# limit_per_analyst = "2"        # likewise: --set-analyst-limit
# least_price = "0.01"           # questions below it are refused: time and load, too, should not be had for nothing
# contract = "zcdp"              # pure (epsilons add up), approximate (deltas too), zcdp (rhos), fixed (one price)
# delta = "0.000001"
# price = "1"                    # of every release, under a fixed contract
head = "head.json"               # the ledger's newest row, kept up to date: a lost or rolled-back ledger is refused

# [service]                      # privcfs serve
# database = "sqlite:///service.db"  # keys (as digests) and the log of requests
# log_days = 90                  # for how long the log is kept

[method]
candidates = "small-sets"        # {rules}
utility = "gated"                # {utilities}
mechanism = "rehearsed"          # rehearsed (guided by imagined graphs), {mechanisms}
# disclosed = 0.5                # rehearsed: the share of all pairs that the snapshot is thought to hold
# answer_seconds = 0.5           # every new answer takes this long, so that its time says nothing about edges;
                                 # "off" for none. Left out, `privcfs serve` chooses one and the command line has none.

# [actionable]                   # what an answer may name (small-sets and ladders)
# immutable_nodes = ["7"]        # their pairs stay as they are
# immutable_features = [3]
# partners = ["1", "2"]          # who may be joined to a target; anyone, if left out
# desired = 2                    # the class to reach; any other than the present one, if left out
# cost = {{ delete = 1, add = 2, mask = 1, most = 4 }}
"""
KEYS = {
    "graph": {"edges", "id", "simplify", "model", "features"},
    "public": {
        *("features", "snapshot", "backbone", "metadata", "node_ids"),
        *("backbone_from_snapshot", "prediction_disclosed", "snapshot_is_private"),
    },
    "budget": {"ledger", "limit", "limit_per_analyst", "least_price", "head", "contract", "delta", "price"},
    "service": {"database", "log_days"},
    "method": {"candidates", "utility", "mechanism", "disclosed", "answer_seconds"},
    "actionable": {"immutable_nodes", "immutable_features", "partners", "desired", "cost"},
}


def template() -> str:
    """A commented vault.toml with a fresh random graph id."""
    return TEMPLATE.format(
        graph_id=secrets.token_hex(16),
        rules=", ".join(RULES),
        utilities=", ".join([*UTILITIES, *EXPLAINERS]),
        mechanisms=", ".join(MECHANISMS),
    )


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """One vault.toml, checked."""

    folder: Path
    tables: dict[str, dict[str, Any]]
    file: Path

    def vault(self, answer_seconds: float | None = None) -> Vault:
        """Everything loaded: the graph, the context, the ledger. `answer_seconds` stands in for one in the file."""
        context = self.context()
        graph = self.graph(context)
        return Vault(
            graph,
            context,
            ledger=self.ledger(graph),
            least_price=self.tables["budget"].get("least_price", LEAST_PRICE),
            method=self.method(context),
            answer_seconds=self.answer_seconds() if answer_seconds is None else answer_seconds,
            secrets=self.secrets(context),
        )

    def answer_seconds(self) -> float | None:
        """The public answering time that the file names; none where it names none or switches it off."""
        named: float | str | None = self.tables["method"].get("answer_seconds")
        return None if named == OFF else cast("float | None", named)  # Vault checks the number

    def context(self) -> PublicContext:
        """The public side alone."""
        public, graph = self.tables["public"], self.tables["graph"]
        assumptions = hiding(
            model="model" in graph,
            features="features" in graph,
            snapshot=self._flag("public", "snapshot_is_private"),
        )
        if self._flag("public", "backbone_from_snapshot"):
            if "model" in graph:
                raise SettingsError("vault file: backbone_from_snapshot is for a public model that decides; drop one.")
            assumptions = assumptions - {Assumption.BACKBONE_PUBLIC} | {Assumption.BACKBONE_FROM_SNAPSHOT}
        if self._flag("public", "prediction_disclosed"):
            assumptions |= {Assumption.PREDICTION_DISCLOSED}
        if _same(self._path("public", "snapshot"), self._path("graph", "edges")):
            raise SettingsError("vault file: snapshot and edges are the same; private edges are not public.")
        return PublicContext(
            self._path("public", "features"),
            self._path("public", "snapshot"),
            load_backbone(self._path("public", "backbone")),
            node_ids=self._path("public", "node_ids") if "node_ids" in public else None,
            assumptions=assumptions,
        )

    def public_files(self) -> tuple[Path, Path, Path | None]:
        """Where features, snapshot and, if nodes have names, node ids are; no file is opened."""
        snapshot = self._path("public", "snapshot")
        if "edges" in self.tables["graph"] and snapshot.resolve() == self._path("graph", "edges").resolve():
            raise SettingsError("vault file: snapshot and edges are the same; private edges are not public.")
        named = "node_ids" in self.tables["public"]
        return self._path("public", "features"), snapshot, self._path("public", "node_ids") if named else None

    def secrets(self, context: PublicContext) -> Secrets | None:
        """The secret model and features, where there are any."""
        graph = self.tables["graph"]
        if not {"model", "features"} & set(graph):
            return None
        model = load_backbone(self._path("graph", "model")) if "model" in graph else None
        return Secrets(context, model=model, features=self._path("graph", "features") if "features" in graph else None)

    def ledger(self, graph: PrivateGraph | None = None) -> Ledger:
        """The account, made on first use with the limits of the vault file; afterwards the ledger's own limits hold.

        With the graph that will be read, edges that spend from another ledger are refused before anything is made.
        """
        limit, edges, known, there = (
            self.first_limit(),
            self._path("graph", "edges"),
            self.known(),
            self._ledger_exists(),
        )
        if known is None and not there:
            refuse_second_budget(edges, graph)
        ledger = self._open(None if there or known is not None else limit, known)
        if ledger.limit.contract != limit.contract:
            raise SettingsError(
                f"vault file: the contract differs from the ledger's, which counts {ledger.limit.contract.unit}; a "
                "ledger keeps its contract."
            )
        if graph is not None:
            url = self._ledger_url()
            enlist(edges, graph, ledger, url if url.startswith(SQLITE) else "a ledger in PostgreSQL")
            tie(edges, ledger)
        return ledger

    def other_limit(self, ledger: Ledger) -> str:
        """A sentence where the vault file names other limits than the ledger's, which hold; otherwise nothing."""
        if self.first_limit() == ledger.limit:
            return ""
        return (
            f"The limits in {self.file.name} are for a new ledger; those of this one hold: {describe(ledger.limit)}. "
            "Change them with: privcfs budget --set-limit or --set-analyst-limit."
        )

    def checked_price(self, epsilon: str | None) -> Fraction:
        """A price that is not below the least; 1 where none is given, or the least price where that is more."""
        least = parse_epsilon(self.tables["budget"].get("least_price", LEAST_PRICE))
        return max(Fraction(1), least) if epsilon is None else checked_price(epsilon, least)

    def cap_of(self, analyst: str) -> Fraction | None:
        """The most that the service's keys allow to an analyst, where all of this analyst's keys have a cap."""
        url = self.service_database()
        if url.startswith(SQLITE) and not exists(Path(url.removeprefix(SQLITE))):
            return None
        try:
            from privcfs.service.keys import Keys, caps_of_analysts
        except ImportError:  # no service here
            return None
        return caps_of_analysts(Keys(url, self.log_days()).all()).get(analyst)

    def write_limit(self, limit: Limit) -> None:
        """Brings the limits in the vault file up to date, where each stands in a line of its own."""
        text = self.file.read_text(encoding="utf-8")
        for key, value in (("limit", limit.total), ("limit_per_analyst", limit.per_analyst)):
            line = re.compile(rf'^({key}\s*=\s*)"[^"]*"', re.MULTILINE)
            if value is not None and len(line.findall(text)) == 1:
                text = line.sub(rf'\g<1>"{show(value)}"', text)
        with suppress(OSError):  # the ledger's limits hold whatever the file says
            self.file.write_text(text, encoding="utf-8")

    def first_limit(self) -> Limit:
        """What a new ledger begins with."""
        each = self.tables["budget"].get("limit_per_analyst")
        return Limit.of(self._text("budget", "limit"), each, self.contract())

    def ledger_as_it_is(self, known: Head | None = None, trusting: HeadFile | None = None) -> Ledger:
        """The existing account, whatever limit the file says: for changing it, or for exporting its head.

        A lost head file is an error unless the owner writes that very file anew (`trusting`).
        """
        own = self.head_file()
        if own is None or trusting is None or own.path.resolve() != trusting.path.resolve():
            self.known()
        return self._open(None, known)

    def contract(self) -> Contract:
        """What the limit counts."""
        budget = self.tables["budget"]
        named = {"kind": "contract", "delta": "delta", "epsilon": "price"}
        fields = {field: str(budget[key]) for field, key in named.items() if key in budget}
        if fields.get("kind") == "fixed":
            fields["mechanism"] = str(self.tables["method"].get("mechanism", REHEARSED))
        return contract_from(fields)

    def method(self, context: PublicContext) -> Method:
        """The public choices behind a release."""
        allowed, desired, costs = self._actionable(context)
        rule = self._choice("candidates", RULES, "small-sets")
        utility = self._choice("utility", {**UTILITIES, **EXPLAINERS}, "gated")
        if isinstance(rule, SmallSets | Ladders):
            rule = replace(rule, allowed=allowed, deletions=self._deletions(context) or rule.deletions)
        elif self.tables["actionable"] or "metadata" in self.tables["public"]:
            raise SettingsError(
                "vault file: [actionable] and metadata need candidates that are sets or ladders, such as small-sets."
            )
        if isinstance(rule, SmallSets):
            rule = replace(rule, partners=replace(rule.partners, desired=desired))
        if desired is not None:
            if not isinstance(utility, Gated):
                raise SettingsError("vault file: actionable.desired needs the utility gated.")
            utility = replace(utility, desired=desired)
        mechanism = self._choice("mechanism", {REHEARSED: None} | dict(MECHANISMS), REHEARSED)
        if mechanism is not None:
            return Method(rule, utility, mechanism)
        disclosed = self.tables["method"].get("disclosed", Worlds().disclosed)
        if isinstance(disclosed, bool) or not isinstance(disclosed, int | float):
            raise SettingsError("vault file: method.disclosed must be a number from 0 to 1, without quotes.")
        return Method(rule, utility, guide=Rehearsal(Worlds(disclosed=disclosed), costs=costs))

    def _deletions(self, context: PublicContext) -> Listed | None:
        """The pairs of a public graph of metadata, where there is one."""
        if "metadata" not in self.tables["public"]:
            return None
        listed = EdgeListReader("metadata", ContextError, context.nodes).read(self._path("public", "metadata"))
        return Listed(tuple((u, w) for u, w in listed.tolist()))

    def dearest_mechanism(self) -> Mechanism:
        """What a release costs at most: under a guide, the dearest of the mechanisms that it may prepare."""
        mechanism: Mechanism | None = self._choice("mechanism", {REHEARSED: None} | dict(MECHANISMS), REHEARSED)
        return mechanism or DEAREST

    def _actionable(self, context: PublicContext) -> tuple[Actionability, int | None, Costs]:
        """What an answer may name, which class it should reach, and what its elements cost."""
        table = self.tables["actionable"]
        try:
            immutable, partners = (
                None if key not in table else frozenset(context.node(str(node)) for node in table[key])
                for key in ("immutable_nodes", "partners")
            )
            features = frozenset(int(feature) for feature in table.get("immutable_features", ()))
            desired = None if "desired" not in table else range(context.number_of_classes)[int(table["desired"])]
            costs = Costs(**{str(key): int(value) for key, value in dict(table.get("cost", {})).items()})
        except (TypeError, ValueError, IndexError, InputError) as error:
            raise SettingsError(f"vault file: [actionable] cannot be read: {error}") from None
        return Actionability(immutable or frozenset(), features, partners), desired, costs

    def graph(self, context: PublicContext) -> PrivateGraph:
        """The secret edges alone."""
        return self._edges(context.number_of_nodes, context.node_ids)

    def graph_without_context(self) -> tuple[PrivateGraph, tuple[str, ...] | None]:
        """The secret edges and the names of nodes, before there is a snapshot or a model."""
        count = read_features(self._path("public", "features"), ContextError).shape[0]
        named = "node_ids" in self.tables["public"]
        names = read_node_ids(self._path("public", "node_ids"), ContextError) if named else None
        return self._edges(int(count), names), names

    def _edges(self, nodes: int, names: tuple[str, ...] | None) -> PrivateGraph:
        path = self._path("graph", "edges")
        if path.suffix == SUFFIX:
            return PrivateGraph.from_store(path, number_of_nodes=nodes)
        read = PrivateGraph.from_parquet if path.suffix == ".parquet" else PrivateGraph.from_csv
        return read(path, number_of_nodes=nodes, node_ids=names, simplify=self._flag("graph", "simplify"))

    def _open(self, limit: Limit | None, known: Head | None) -> Ledger:
        return open_ledger(
            self._ledger_url(), limit, graph_id=self._text("graph", "id"), known=known, head_file=self.head_file()
        )

    def service_database(self) -> str:
        """Where the service keeps keys and its log."""
        return self._in_folder(str(self.tables["service"].get("database", f"{SQLITE}service.db")))

    def log_days(self) -> int:
        """For how many days the service keeps its log."""
        days = self.tables["service"].get("log_days", LOG_DAYS)
        if isinstance(days, bool) or not isinstance(days, int) or not 0 < days <= LONGEST_LOG:
            raise SettingsError(f"vault file: service.log_days is {days!r}; give a number from 1 to {LONGEST_LOG}.")
        return days

    def _ledger_url(self) -> str:
        return self._in_folder(self._text("budget", "ledger"))

    def _in_folder(self, url: str) -> str:
        """SQLite's files are relative to the vault file."""
        return SQLITE + str(self.folder / url.removeprefix(SQLITE)) if url.startswith(SQLITE) else url

    def known(self) -> Head | None:
        """The head that the vault file says to trust; none before first use."""
        kept = self.kept_head()
        if kept is None and "head" in self.tables["budget"] and self._ledger_exists():
            path = self._path("budget", "head")
            raise SettingsError(
                f"head file {path} is missing, but the ledger exists; restore it, or trust the ledger as it is: "
                f"privcfs budget --export-head {path}."
            )
        return kept

    def _ledger_exists(self) -> bool:
        url = self._ledger_url()
        try:
            return exists(Path(url.removeprefix(SQLITE))) or (url.startswith(POSTGRES) and bool(open_ledger(url)))
        except LedgerMissing:
            return False

    def kept_head(self) -> Head | None:
        """The head in the file that the vault file names, if both are there."""
        file = self.head_file()
        return None if file is None else file.read()

    def head_file(self) -> HeadFile | None:
        """Where the vault file wants the ledger's newest row to be kept."""
        return HeadFile(self._path("budget", "head")) if "head" in self.tables["budget"] else None

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


def _same(one: Path, other: Path) -> bool:
    """Whether two edge lists are one file, or stores of the same pairs."""
    if one.suffix == other.suffix == SUFFIX and one.exists() and other.exists():
        first, second = (open_store(path, PAIRS, SettingsError).checksums for path in (one, other))
        return first == second
    return one.resolve() == other.resolve()


def exists(path: Path) -> bool:
    """Whether a file is there; a path that cannot even be looked up is the owner's mistake."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        raise SettingsError(f"path {str(path)[:80]!r} cannot be looked up: {error}.") from None


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
    return Settings(path.resolve().parent, {table: tables.get(table, {}) for table in KEYS}, path.resolve())
