"""Stores hold what the files held, in bounded memory; broken ones are refused."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privcfs import PrivateGraph, PublicContext, Vault
from privcfs.embedded import load_dataset
from privcfs.errors import ContextError, GraphError, PrivcfsError
from privcfs.gate.method import Method
from privcfs.tables import edges, features, importing, store
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import read_features
from privcfs.tables.importing import import_features, import_pairs
from privcfs.tables.names import Nodes
from privcfs.tables.store import FEATURES, check_store, open_store

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)


def as_csv(path: Path, rows: list[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def as_parquet(path: Path, columns: dict[str, list[object]]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def reader(count: int, *, simplify: bool = False, names: tuple[str, ...] = ()) -> EdgeListReader:
    nodes = Nodes(count, {name: number for number, name in enumerate(names)} if names else None)
    return EdgeListReader("edges", GraphError, nodes, simplify, may_simplify=True)


def lists(graph: PrivateGraph) -> list[list[int]]:
    return [graph.neighbours(node).tolist() for node in range(graph.number_of_nodes)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and blocks of a few pairs, so that small graphs are sorted on disk and merged too."""
    for module, name, value in (
        (importing, "RUN", 16),
        (importing, "BLOCK", 7),
        (edges, "READ_BYTES", 64),
        (edges, "NAMED_BYTES", 64),
        (edges, "STREAMED_CELLS", 20),
        (features, "READ_BYTES", 64),
        (features, "CELLS", 20),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=150, deadline=None)
@given(rows=ROWS, simplify=st.booleans(), header=st.booleans())
def test_a_store_holds_the_same_graph_as_the_file(
    rows: list[tuple[int, int]], simplify: bool, header: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store")
    lines: list[tuple[object, ...]] = [("source", "target")] if header else []
    path = as_csv(folder / "edges.csv", lines + list(rows))
    plain = outcome(lambda: PrivateGraph.from_csv(path, number_of_nodes=10, simplify=simplify))
    assert outcome(lambda: stored(path, folder / "edges.store", reader(10, simplify=simplify))) == plain
    assert {item.name for item in folder.iterdir()} <= {"edges.csv", "edges.store"}, "nothing is left behind"


def outcome(read: Callable[[], PrivateGraph]) -> list[list[int]] | str:
    try:
        return lists(read())
    except GraphError as error:
        return str(error).split(";")[1]


def stored(source: Path, out: Path, how: EdgeListReader) -> PrivateGraph:
    import_pairs(source, out, how)
    check_store(out, GraphError)
    return PrivateGraph.from_store(out, number_of_nodes=how.nodes.count)


def test_a_store_holds_a_real_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in ((importing, "RUN", 2000), (importing, "BLOCK", 500), (edges, "STREAMED_CELLS", 1000)):
        monkeypatch.setattr(module, name, value)
    data = load_dataset("cora")
    pairs = data.edges()
    source = as_parquet(tmp_path / "edges.parquet", {"source": pairs[:, 1].tolist(), "target": pairs[:, 0].tolist()})
    graph = stored(source, tmp_path / "edges.store", reader(len(data.features.indptr) - 1))
    assert lists(graph) == lists(data.private_graph())


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "parquet"])
def test_features_of_every_kind_are_the_same_table(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = (rng.random((13, 4)) * (rng.random((13, 4)) < 0.5)).astype(np.float32)
    path = tmp_path / f"features.{kind}"
    write_features(path, table)
    assert import_features(path, tmp_path / "features.store") == 13
    check_store(tmp_path / "features.store", ContextError)
    assert (read_features(tmp_path / "features.store", ContextError).toarray() == table).all()


def write_features(path: Path, table: NDArray[np.float32]) -> None:
    if path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".npz":
        sp.save_npz(path, sp.csr_array(table))
    elif path.suffix == ".csv":
        as_csv(path, [("a", "b", "c", "d"), *(tuple(row) for row in table.tolist())])
    else:
        as_parquet(path, {name: table[:, number].tolist() for number, name in enumerate("abcd")})


def test_a_vault_on_stores_is_the_vault_on_files(tmp_path: Path) -> None:
    data = load_dataset("cora")
    count = data.features.shape[0]
    sp.save_npz(tmp_path / "features.npz", data.features)
    import_features(tmp_path / "features.npz", tmp_path / "features.store")
    for name, pairs in (("edges", data.edges()), ("snapshot", data.snapshot)):
        import_pairs(as_csv(tmp_path / f"{name}.csv", pairs.tolist()), tmp_path / f"{name}.store", reader(count))
    model = data.model("snapshot")
    stored_context = PublicContext(tmp_path / "features.store", tmp_path / "snapshot.store", model)
    plain_context = PublicContext(data.features, data.snapshot, model)
    assert stored_context.digest == plain_context.digest
    graph = PrivateGraph.from_store(tmp_path / "edges.store", number_of_nodes=count)
    for method in (None, Method()):
        url = f"sqlite:///{tmp_path / 'budget.db'}"
        vault = Vault(graph, stored_context, ledger=url, limit="1000000", method=method)
        target = int(data.test[0])
        exact = Vault(
            data.private_graph(), plain_context, ledger=f"sqlite:///{tmp_path / 'other.db'}", limit="9", method=method
        )
        assert vault.digest == exact.digest
        assert vault.propose(target) == exact.propose(target)
        assert vault.guess(target) == exact.guess(target)
        vault.release(target, "1")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,x", "line 2 names an unknown node in '1,x'"),
        ("1,2,3,4", "line 2 has 4 columns"),
        ("1", "line 2 has 1 columns"),
        ("1,10", "line 2 names node 10, but nodes are 0 to 9"),
        ("-1,2", "line 2 names node -1"),
        ("1,", "line 2 names an unknown node in '1,'"),
        ("3,3", "line 2 joins node 3 to itself"),
        ("0,1", "lists the pair 0, 1 more than once"),
    ],
)
def test_bad_lines_are_refused(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(f"0,1\n{line}\n")
    with pytest.raises(GraphError, match=words):
        import_pairs(path, tmp_path / "edges.store", reader(10))
    assert [item.name for item in tmp_path.iterdir()] == ["edges.csv"]


def test_weights_and_names_mean_what_they_mean_in_files(tmp_path: Path) -> None:
    names = ("ann", "bob", "cy")
    path = as_csv(tmp_path / "edges.csv", [("ann", " bob", 1), ("bob", "cy", 0)])
    assert lists(stored(path, tmp_path / "edges.store", reader(3, names=names))) == [[1], [0], []]
    for weight in ("nan", "", "x"):
        as_csv(path, [("ann", "bob", weight)])
        with pytest.raises(GraphError, match=f"line 1 has the weight '{weight}'; write a finite number"):
            import_pairs(path, tmp_path / "other.store", reader(3, names=names))
    as_csv(path, [("ann", "dora", 1)])
    with pytest.raises(GraphError, match="line 1 names an unknown node in 'ann,dora'"):
        import_pairs(path, tmp_path / "other.store", reader(3, names=names))


def test_numbers_as_names_in_parquet_are_names(tmp_path: Path) -> None:
    path = as_parquet(tmp_path / "edges.parquet", {"source": [70, 80], "target": [80, 90]})
    assert lists(stored(path, tmp_path / "edges.store", reader(3, names=("70", "80", "90")))) == [[1], [0, 2], [1]]
    as_parquet(path, {"source": [0.0], "target": [1.0]})
    with pytest.raises(GraphError, match="column 'source' holds double values; use node numbers"):
        import_pairs(path, tmp_path / "other.store", reader(3))


def test_missing_files_and_features_are_refused(tmp_path: Path) -> None:
    for name in ("edges.csv", "edges.parquet"):
        with pytest.raises(GraphError, match="does not exist"):
            import_pairs(tmp_path / name, tmp_path / "edges.store", reader(3))
    for name in ("features.npy", "features.csv", "features.parquet", "features.npz"):
        with pytest.raises(ContextError, match="does not exist"):
            import_features(tmp_path / name, tmp_path / "features.store")
    np.save(tmp_path / "features.npy", np.array([[1.0], [np.nan]]))
    with pytest.raises(ContextError, match=r"infinite value \(nan\) in row 1, column 0"):
        import_features(tmp_path / "features.npy", tmp_path / "features.store")


def broken(store: Path, how: str) -> None:
    manifest = json.loads((store / "store.json").read_text())
    if how == "cut":
        (store / "values.bin").write_bytes((store / "values.bin").read_bytes()[:-4])
    elif how == "lost":
        (store / "numbers.bin").unlink()
    elif how == "changed":
        content = bytearray((store / "values.bin").read_bytes())
        content[0] ^= 1
        (store / "values.bin").write_bytes(content)
    elif how == "version":
        (store / "store.json").write_text(json.dumps(manifest | {"version": 7}))
    elif how == "kind":
        (store / "store.json").write_text(json.dumps(manifest | {"kind": "pairs"}))
    elif how == "words":
        (store / "store.json").write_text("[]")
    else:
        (store / "store.json").write_text(json.dumps(manifest | {"rows": 3}))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("cut", "incomplete"),
        ("lost", "incomplete"),
        ("rows", "incomplete"),
        ("version", "version 7, this is 1"),
        ("kind", "a store of pairs"),
        ("words", "is not a store"),
        ("changed", "has changed"),
    ],
)
def test_a_broken_store_is_refused(how: str, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.eye(4, dtype=np.float32))
    store = tmp_path / "features.store"
    import_features(tmp_path / "features.npy", store)
    broken(store, how)
    if how == "changed":
        with pytest.raises(PrivcfsError, match=words):
            check_store(store, ContextError)
    else:
        with pytest.raises(PrivcfsError, match=words):
            open_store(store, FEATURES, ContextError)


def test_a_store_is_the_owners_alone_and_is_not_written_over(tmp_path: Path) -> None:
    store = tmp_path / "edges.store"
    import_pairs(as_csv(tmp_path / "edges.csv", [(0, 1)]), store, reader(3))
    assert store.stat().st_mode & 0o077 == 0
    with pytest.raises(GraphError, match="exists already"):
        import_pairs(tmp_path / "edges.csv", store, reader(3))
    with pytest.raises(GraphError, match="edges has 3 nodes, but number_of_nodes is 4"):
        PrivateGraph.from_store(store, number_of_nodes=4)


@pytest.mark.skipif(not store.ADVISED, reason="only Linux tells what is resident, and lets go of it")
def test_pages_of_a_store_are_given_back_where_they_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    megabytes = 2**20
    np.save(tmp_path / "features.npy", np.ones((2**21, 4), np.float32))
    import_features(tmp_path / "features.npy", tmp_path / "features.store")
    opened = open_store(tmp_path / "features.store", FEATURES, ContextError)
    monkeypatch.setattr(store, "MOST_RESIDENT", 20 * megabytes)
    monkeypatch.setattr(store.RESIDENT, "others", store._resident())
    with store.resting():
        touched = float(opened.arrays["values"][: 2**20].sum())  # four megabytes stay
    kept = store._resident() - store.RESIDENT.others
    with store.resting():
        touched += float(opened.arrays["values"].sum())
        assert store._resident() - store.RESIDENT.others > 30 * megabytes
    assert touched == 2**20 + 2**23
    assert kept > 2 * megabytes
    assert store._resident() <= store.RESIDENT.others + megabytes


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path) -> None:
    pairs = [(one, other) for one in range(300) for other in range(one)]
    source = as_csv(tmp_path / "edges.csv", list(pairs))
    out = tmp_path / "out" / "edges.store"
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from pathlib import Path; from privcfs.errors import GraphError; from privcfs.tables.edges import *;"
        "from privcfs.tables.importing import import_pairs;"
        f"import_pairs(Path({str(source)!r}), Path({str(out)!r}), EdgeListReader('edges', GraphError, Nodes(300)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "GraphError" in done.stderr
    assert "cannot be written" in done.stderr
    assert list(out.parent.iterdir()) == []


def test_what_is_neither_number_nor_name_is_refused(tmp_path: Path) -> None:
    columns: list[tuple[list[object], str]] = [
        ([True, False], "column 'target' holds bool values"),
        ([b"1", b"2"], "column 'target' holds binary values"),
        ([1.0, 2.0], "column 'target' holds double values"),
        ([None, 1], r"row 0 \(counted from 0\) names no node"),
        (["1", "x"], r"row 1 \(counted from 0\) names an unknown node 'x'"),
    ]
    for column, words in columns:
        path = as_parquet(tmp_path / "edges.parquet", {"source": [0, 1], "target": column})
        with pytest.raises(GraphError, match=words):
            import_pairs(path, tmp_path / "edges.store", reader(3))
        with pytest.raises(GraphError, match=words):
            reader(3).read(path)
    path = as_parquet(tmp_path / "edges.parquet", {"source": [0], "target": [1], "weight": ["heavy"]})
    with pytest.raises(GraphError, match="a weight that is no number"):
        import_pairs(path, tmp_path / "edges.store", reader(3))
    path = as_csv(tmp_path / "edges.csv", [("NA", "null")])
    assert lists(stored(path, tmp_path / "edges.store", reader(2, names=("NA", "null")))) == [[1], [0]]
