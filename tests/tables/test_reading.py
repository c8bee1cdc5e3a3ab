"""Errors about input files name the true cause: permission, kind of file, row, column, cell and node."""

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file

from privcfs import PrivateGraph, PublicContext
from privcfs.errors import ContextError, GraphError
from privcfs.tables import parsing
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import read_features
from privcfs.tables.names import Nodes, read_node_ids
from tests.shell import Shell
from tests.unprivileged import reachable_folder, said
from tests.worlds import random_gcn

NAMES = ("ann", "bob", "cid", "dee")


def named(simplify: bool = False) -> EdgeListReader:
    nodes = Nodes(4, {name: number for number, name in enumerate(NAMES)})
    return EdgeListReader("edges", GraphError, nodes, simplify, may_simplify=True)


def test_a_file_without_read_permission_says_so() -> None:
    with reachable_folder() as folder:
        files = {
            "edges.csv": b"0,1\n",
            "nodes.txt": b"ann\nbob\n",
            "features.csv": b"1,2\n",
            "features.npy": b"",
            "features.npz": b"",
            "edges.parquet": b"PAR1",
            "gcn.safetensors": b"",
        }
        for name, content in files.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0)
        lines = said(
            "reader = EdgeListReader('edges', GraphError, Nodes(2))\n"
            "attempt(lambda: PrivateGraph.from_csv('edges.csv', number_of_nodes=2))\n"
            "attempt(lambda: PrivateGraph.from_parquet('edges.parquet', number_of_nodes=2))\n"
            "attempt(lambda: read_node_ids('nodes.txt', ContextError))\n"
            "attempt(lambda: load_model('gcn.safetensors'))\n"
            "for name in ('features.csv', 'features.npy', 'features.npz'):\n"
            "    attempt(lambda: read_features(name, ContextError))\n"
            "os.chdir('/tmp')\n"
            f"folder = Path({str(folder)!r})\n"
            "import tempfile; out = Path(tempfile.mkdtemp())\n"
            "for name in ('edges.csv', 'edges.parquet'):\n"
            "    attempt(lambda: import_pairs(folder / name, out / 'edges.store', reader))\n"
            "for name in ('features.csv', 'features.npy', 'features.npz'):\n"
            "    attempt(lambda: import_features(folder / name, out / 'features.store'))\n"
            "out.rmdir()\n",
            folder,
        )
        assert len(lines) == 12
        for line in lines:
            assert "cannot be read: permission denied" in line
            assert "UTF-8" not in line
            assert "complete" not in line


def test_a_ledger_in_a_folder_that_cannot_be_written_says_so() -> None:
    with reachable_folder() as folder:
        (folder / "closed.db").write_bytes(b"")
        (folder / "closed.db").chmod(0)
        folder.chmod(0o555)
        made, closed, missing = said(
            "attempt(lambda: SqliteLedger('budget.db', Limit.of('1')))\n"
            "attempt(lambda: SqliteLedger('closed.db', Limit.of('1')))\n"
            "attempt(lambda: SqliteLedger('nowhere/budget.db', Limit.of('1')))\n",
            folder,
        )
    assert made.startswith("LedgerReadOnly ledger budget.db cannot be made: its folder cannot be written")
    assert closed.startswith("LedgerReadOnly ledger closed.db cannot be opened: permission denied")
    assert missing.startswith("LedgerError ledger nowhere/budget.db cannot be opened: its folder does not exist")


@pytest.mark.parametrize("name", ["features.csv", "features.npy", "features.npz"])
def test_a_directory_in_the_place_of_features_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ContextError, match=rf"features file .*{name} is a directory; name a file"):
        read_features(tmp_path / name, ContextError)


def test_a_directory_in_the_place_of_edges_or_names_is_named(tmp_path: Path) -> None:
    for name in ("edges.csv", "edges.parquet", "nodes.txt"):
        (tmp_path / name).mkdir()
    with pytest.raises(GraphError, match=r"edges file .* is a directory; name a file"):
        PrivateGraph.from_csv(tmp_path / "edges.csv", number_of_nodes=2)
    with pytest.raises(GraphError, match=r"edges file .* is a directory; name a file"):
        PrivateGraph.from_parquet(tmp_path / "edges.parquet", number_of_nodes=2)
    with pytest.raises(ContextError, match=r"node_ids file .* is a directory; name a file"):
        read_node_ids(tmp_path / "nodes.txt", ContextError)


@pytest.mark.parametrize("cell", ["False", "yes", ""])
def test_a_cell_that_is_no_number_is_named_by_row_column_and_text(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text(f"age,views\n1,2\n3,{cell}\n")
    words = rf"line 3 \(row 1\), column 'views', holds '{cell}'; write a number"
    with pytest.raises(ContextError, match=words):
        read_features(path, ContextError)
    path.write_text(f"1,2\n3,{cell}\n")
    with pytest.raises(ContextError, match=rf"line 2 \(row 1\), column 1, holds '{cell}'; write a number"):
        read_features(path, ContextError)


def test_an_empty_line_in_a_table_of_one_column_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text("age\n1\n\n3\n\n")
    with pytest.raises(ContextError, match=r"line 3 \(row 1\), column 'age', holds ''"):
        read_features(path, ContextError)
    path.write_text("age\n1\n3\n\n")
    assert read_features(path, ContextError).shape == (2, 1)


def test_rows_of_different_lengths_are_named(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    path.write_text("1,2\n3\n")
    with pytest.raises(ContextError, match=r"features.csv cannot be read: line 2 has 1 cells, but the first row has 2"):
        read_features(path, ContextError)


def test_a_missing_or_infinite_value_is_named_by_row_column_and_node(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    model = random_gcn(np.random.default_rng(0), 2)
    for text in ("nan", "inf", "1e60"):
        path.write_text(f"age,views\n1,2\n3,{text}\n1,1\n1,1\n")
        with pytest.raises(ContextError, match=r"value \((nan|inf)\) in row 1 \(node 'bob'\), column 'views'; fill it"):
            PublicContext(path, [(0, 1)], model, node_ids=NAMES)
    table = np.ones((4, 2))
    table[2, 1] = np.inf
    with pytest.raises(ContextError, match=r"value \(inf\) in row 2, column 1; fill it in"):
        PublicContext(table, [(0, 1)], model)
    with pytest.raises(ContextError, match=r"row 2 \(node 'cid'\), column 1"):
        PublicContext(table, [(0, 1)], model, node_ids=NAMES)


def test_repeats_loops_and_unknown_numbers_are_told_by_name(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("ann,bob\nann,bob\n")
    with pytest.raises(GraphError, match="edges lists the pair 'ann', 'bob' more than once"):
        named().read(path)
    path.write_text("ann,bob\ncid,cid\n")
    with pytest.raises(GraphError, match="edges line 2 joins node 'cid' to itself"):
        named().read(path)
    with pytest.raises(GraphError, match=r"edges names node 9 \(in the pair 'bob', 9\), but nodes are 0 to 3"):
        named().read([(0, 1), (1, 9)])
    path.write_text("0,1\n1,9\n")
    with pytest.raises(GraphError, match=r"edges line 2 names node 9, but nodes are 0 to 3"):
        PrivateGraph.from_csv(path, number_of_nodes=4)


def test_an_import_names_the_same_causes(shell: Shell) -> None:
    folder = shell.folder
    given = ("--nodes", "12", "--node-ids", "nodes.txt")

    def fails(text: str, argument: str = "edges") -> str:
        (folder / "bad.csv").write_text(text)
        kind = GraphError if argument == "edges" else ContextError
        return " ".join(shell.fails(kind, "import", "big", *given, f"--{argument}", "bad.csv").split())

    assert "edges lists the pair 'person-1', 'person-2' more than once" in fails("person-1,person-2\n" * 2)
    assert "edges line 2 joins node 'person-3' to itself" in fails("person-1,person-2\nperson-3,person-3\n")
    assert "edges line 2 names an unknown node in 'person-1,eve'" in fails("person-1,person-2\nperson-1,eve\n")
    assert "edges line 1 has the weight 'heavy'" in fails("person-1,person-2,heavy\n")
    rows = "1,2\n" * 11
    for cell in ("False", "yes", ""):
        words = f"line 3 (row 1, node 'person-1'), column 'views', holds '{cell}'; write a number"
        assert words in fails(f"age,views\n1,2\n3,{cell}\n{rows}", "features")
    words = "missing or infinite value (nan) in row 1 (node 'person-1'), column 'views'"
    assert words in fails(f"age,views\n1,2\n3,nan\n{rows}", "features")
    assert not (folder / "big/features.store").exists()


def test_one_repeated_name_among_many_is_found_at_once() -> None:
    names = [f"n{number}" for number in range(100_000)]
    start = perf_counter()
    with pytest.raises(ContextError, match="node_ids names 'n99998' twice"):
        read_node_ids([*names[:-1], "n99998"], ContextError)
    assert perf_counter() - start < 0.5


def test_an_unprintable_name_is_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text("ann\n\x1b[31mbob\n")
    with pytest.raises(ContextError, match=r"unprintable name, '\\x1b\[31mbob', at position 1") as caught:
        read_node_ids(tmp_path / "nodes.txt", ContextError)
    assert str(caught.value).isprintable()


def many_rows(path: Path, rows: int, cell: object = 0) -> Path:
    """A small file of very many equal rows."""
    values = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(2**20, np.int8)), pyarrow.array([cell]))
    table = pyarrow.table({"source": values, "target": values}).slice(0, rows)
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(-(-rows // 2**20)):
            writer.write_table(table)
    return path


MEASURE = """
import resource, sys
from pathlib import Path
import pyarrow.parquet, pyarrow.csv, pyarrow.compute
from privcfs.errors import ContextError, GraphError
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.names import Nodes
from privcfs.tables.importing import import_pairs, import_features
source, names = Path(sys.argv[1]), {"ann": 0, "bob": 1, "cid": 2, "dee": 3}
reader = EdgeListReader("edges", GraphError, Nodes(4, names if "names" in sys.argv[2:] else None))
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
most = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
try:
    if "features" in sys.argv:
        import_features(source, Path("x.store"))
    else:
        import_pairs(source, Path("x.store"), reader) if "import" in sys.argv else reader.read(source)
except (ContextError, GraphError) as error:
    print(most(), str(error))
"""


on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of memory")


def measured(path: Path, *how: str) -> tuple[int, str]:
    """Megabytes that a process had in memory at most, and the owner's error in which it ended."""
    command = [sys.executable, "-c", MEASURE, str(path), *how]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    megabytes, _, words = done.stdout.partition(" ")
    return int(megabytes), words


@on_linux
def test_a_parquet_file_of_too_many_rows_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = many_rows(tmp_path / "edges.parquet", 2**25)
    assert path.stat().st_size < 500_000
    megabytes, words = measured(path)
    assert "has 33554432 rows; at most 10000000 are loaded into memory" in words
    assert "privcfs import" in words
    assert megabytes < 600
    megabytes, words = measured(path, "import")
    assert "has 33554432 rows, but 4 nodes have at most 12 pairs" in words
    assert megabytes < 600


@on_linux
def test_a_gigantic_cell_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="12 pairs"):
        EdgeListReader("edges", GraphError, Nodes(4)).read(many_rows(tmp_path / "many.parquet", 13))
    few = many_rows(tmp_path / "few.parquet", 12, "x" * 2**26)
    assert few.stat().st_size < 100_000
    for how in (("names",), ("names", "import")):
        megabytes, words = measured(few, *how)
        assert "has a cell of 67108864 bytes in column 'source'" in words
        assert megabytes < 700


def test_a_column_that_decodes_to_very_much_is_refused_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MOST_DECODED", 2**20)
    pyarrow.parquet.write_table(
        pyarrow.table({"source": ["y" * 2**21], "target": ["ann"]}), tmp_path / "edges.parquet", use_dictionary=False
    )
    with pytest.raises(GraphError, match=r"column 'source' of \d+ bytes .* write it again with smaller row groups"):
        named().read(tmp_path / "edges.parquet")


@on_linux
def test_text_in_a_parquet_feature_table_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = many_rows(tmp_path / "features.parquet", 2**20, "x" * 2**20)
    megabytes, words = measured(path, "features")
    assert "column 'source' holds string values; give numbers" in words
    assert megabytes < 600


def test_the_memory_test_notices_a_reader_that_takes_everything(tmp_path: Path) -> None:
    path = many_rows(tmp_path / "edges.parquet", 2**13, "x" * 2**20)
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({3 * 2**30}, {3 * 2**30}))\n"
        f"import pyarrow.parquet\npyarrow.parquet.read_table({str(path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "MemoryError" in done.stderr or "overflow" in done.stderr or done.returncode < 0


def test_parquet_errors_name_row_and_value(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": ["ann", "bob"], "b": ["bob", "eve"]}), path)
    with pytest.raises(GraphError, match=r"row 1 \(counted from 0\) names an unknown node 'eve'"):
        named().read(path)
    pyarrow.parquet.write_table(pyarrow.table({"a": ["ann", None], "b": ["bob", "ann"]}), path)
    with pytest.raises(GraphError, match=r"row 1 \(counted from 0\) names no node"):
        named().read(path)
    pyarrow.parquet.write_table(pyarrow.table({"a": [0, 1], "b": [1, 2], "w": [1.0, None]}), path)
    with pytest.raises(GraphError, match=r"row 1 \(counted from 0\) has a weight that is missing or infinite"):
        EdgeListReader("edges", GraphError, Nodes(4)).read(path)


def test_weights_of_every_type_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    for weights in ([0.5, 0.0], [1, 0], ["0.5", "0"], [True, False]):
        pyarrow.parquet.write_table(pyarrow.table({"a": [0, 1], "b": [1, 2], "w": weights}), path)
        assert EdgeListReader("edges", GraphError, Nodes(4)).read(path).tolist() == [[0, 1]]
    pyarrow.parquet.write_table(pyarrow.table({"a": [0, 1], "b": [1, 2], "w": ["1", None]}), path)
    with pytest.raises(GraphError, match=r"row 1 \(counted from 0\) has a weight that is missing"):
        EdgeListReader("edges", GraphError, Nodes(4)).read(path)
    pyarrow.parquet.write_table(pyarrow.table({"a": [0], "b": [1], "w": [[1.0]]}), path)
    with pytest.raises(GraphError, match=r"column 'w' holds list<.*> values; write a finite number"):
        EdgeListReader("edges", GraphError, Nodes(4)).read(path)
    pyarrow.parquet.write_table(pyarrow.table({"a": pyarrow.nulls(0), "b": pyarrow.nulls(0)}), path)
    assert not len(EdgeListReader("edges", GraphError, Nodes(4)).read(path)), "an empty table is an empty graph"


def test_a_column_of_features_is_named_in_parquet_too(shell: Shell) -> None:
    path = shell.folder / "features.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"age": [1.0] * 12, "views": [*[1.0] * 5, None, *[1.0] * 6]}), path)
    said = shell.fails(ContextError, "import", "big", "--features", path.name, "--node-ids", "nodes.txt")
    assert "(nan) in row 5 (node 'person-5'), column 'views'" in " ".join(said.split())


def test_a_hostile_tensor_name_puts_no_escape_code_on_a_terminal(shell: Shell) -> None:
    save_file({"\x1b]0;owned\x07\x9b31m": np.ones((2, 2), np.float32)}, shell.folder / "public_model.safetensors")
    for words in (("candidates", "person-0"), ("candidates", "person-0", "--json")):
        done = shell.run(*words)
        assert done.returncode == 3
        assert "owned" in done.stderr
        assert all(character.isprintable() for character in done.stderr.rstrip("\n"))
    assert json.loads(done.stderr)["error"] == "ModelError"
