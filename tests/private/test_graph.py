from pathlib import Path
from types import SimpleNamespace

import networkx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from privcfs import PrivateGraph
from privcfs.errors import GraphError

PAIRS = [(0, 1), (1, 3), (2, 3), (0, 4)]
NAMES = ["ann", "bob", "cid", "dee", "eve", "fay"]


def listed(graph: PrivateGraph) -> list[tuple[int, int]]:
    return [(u, int(w)) for u in range(graph.number_of_nodes) for w in graph.neighbours(u) if u < w]


def test_every_way_in_gives_the_same_graph(tmp_path: Path) -> None:
    expected = sorted(PAIRS)
    array = np.array(PAIRS)
    plain, headed, named, weighted = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv", "d.csv"))
    plain.write_text("\n".join(f"{u},{w}" for u, w in PAIRS))
    headed.write_text("source,target\n" + "\n".join(f"{w}, {u}" for u, w in PAIRS) + "\n\n")
    named.write_text("src,dst\n" + "\n".join(f"{NAMES[u]},{NAMES[w]}" for u, w in PAIRS))
    weighted.write_text("\n".join(f"{u},{w},0.5" for u, w in PAIRS) + "\n4,5,0\n")
    parquet = tmp_path / "e.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": array[:, 0], "target": array[:, 1]}), parquet)
    text_parquet = tmp_path / "f.parquet"
    table = pyarrow.table({"a": [NAMES[u] for u, _ in PAIRS], "b": [NAMES[w] for _, w in PAIRS]})
    pyarrow.parquet.write_table(table, text_parquet)
    both = np.concatenate([array, array[:, ::-1]])
    matrix = sp.coo_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(6, 6))
    graphs = [
        PrivateGraph.from_edges(PAIRS, number_of_nodes=6),
        PrivateGraph.from_edges(both, number_of_nodes=6),
        PrivateGraph.from_csv(plain, number_of_nodes=6),
        PrivateGraph.from_csv(headed, number_of_nodes=6),
        PrivateGraph.from_csv(named, number_of_nodes=6, node_ids=NAMES),
        PrivateGraph.from_csv(weighted, number_of_nodes=6),
        PrivateGraph.from_parquet(parquet, number_of_nodes=6),
        PrivateGraph.from_parquet(text_parquet, number_of_nodes=6, node_ids=NAMES),
        PrivateGraph.from_scipy(matrix, number_of_nodes=6),
        PrivateGraph.from_pyg(Data(edge_index=torch.tensor(both.T.copy())), number_of_nodes=6),
        PrivateGraph.from_networkx(networkx.Graph(PAIRS), number_of_nodes=6),
        PrivateGraph.from_networkx(networkx.Graph([*PAIRS, (4, 5, {"weight": 0})]), number_of_nodes=int(np.int64(6))),
        PrivateGraph.from_pyg(
            Data(
                edge_index=torch.tensor([[0, 1, 2, 0, 4], [1, 3, 3, 4, 5]]), edge_weight=torch.tensor([1, 2, 1, 1, 0])
            ),
            number_of_nodes=6,
        ),
        PrivateGraph.from_networkx(
            networkx.Graph([(NAMES[u], NAMES[w]) for u, w in PAIRS]), number_of_nodes=6, node_ids=NAMES
        ),
    ]
    for graph in graphs:
        assert listed(graph) == expected
        assert graph.number_of_nodes == 6


def test_an_empty_graph_and_an_isolated_node_are_no_errors(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    for graph in (PrivateGraph.from_csv(empty, number_of_nodes=3), PrivateGraph.from_edges([], number_of_nodes=3)):
        assert listed(graph) == []
        assert graph.degrees(np.arange(3)).tolist() == [0, 0, 0]
        assert not graph.has_edges(np.array([[0, 1]])).any()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 9)], "edges names node 9, but nodes are 0 to 5; check number_of_nodes"),
        ([(-1, 2)], "edges names node -1"),
        ([(2, 2)], "edges joins node 2 to itself; remove it, or pass simplify=True"),
        ([(0, 1), (0, 1)], "edges lists the pair 0, 1 more than once; remove it, or pass simplify=True"),
        ([(0, 1, 2)], r"edges has shape \(1, 3\)"),
        ([(0.5, 1.0)], "edges holds float64 values"),
    ],
)
def test_faulty_edges_are_named(edges: list[tuple[float, ...]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        PrivateGraph.from_edges(edges, number_of_nodes=6)


def test_simplify_drops_loops_and_merges_repeats() -> None:
    graph = PrivateGraph.from_edges([(0, 1), (1, 0), (0, 1), (2, 2)], number_of_nodes=6, simplify=True)
    assert listed(graph) == [(0, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n0,bob\n", "edges line 2 names an unknown node in '0,bob'; use node numbers; a header must read"),
        ("0\n", "edges line 1 has 1 columns; write source,target"),
        ("0,1,2,3\n", "edges line 1 has 4 columns"),
        ("0,1,nan\n", "edges line 1 has the weight 'nan'"),
        ("0,1,heavy\n", "edges line 1 has the weight 'heavy'"),
        ("0,7\n", "edges line 1 names node 7"),
    ],
)
def test_faulty_csv_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(GraphError, match=message):
        PrivateGraph.from_csv(path, number_of_nodes=6)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    binary, short = tmp_path / "edges.csv", tmp_path / "edges.parquet"
    binary.write_bytes(b"\xff\xfe\x00\x80" * 9)
    short.write_bytes(b"PAR1")
    with pytest.raises(GraphError, match="is not readable UTF-8 text"):
        PrivateGraph.from_csv(binary, number_of_nodes=6)
    with pytest.raises(GraphError, match="is not a readable Parquet file; is it complete"):
        PrivateGraph.from_parquet(short, number_of_nodes=6)
    with pytest.raises(GraphError, match=r"does not end in \.parquet"):
        PrivateGraph.from_parquet(binary, number_of_nodes=6)
    with pytest.raises(GraphError, match="does not exist; check the path"):
        PrivateGraph.from_csv(tmp_path / "missing.csv", number_of_nodes=6)


def test_number_of_nodes_is_public_input_and_never_inferred() -> None:
    for wrong in (0, -1, True, 2.0, None):
        with pytest.raises(GraphError, match="number_of_nodes is"):
            PrivateGraph.from_edges(PAIRS, number_of_nodes=wrong)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="node_ids has 6 names, but number_of_nodes is 7"):
        PrivateGraph.from_networkx(networkx.Graph(), number_of_nodes=7, node_ids=NAMES)


def test_objects_of_the_wrong_kind_are_named() -> None:
    with pytest.raises(GraphError, match="edges must be a sparse matrix"):
        PrivateGraph.from_scipy(np.eye(3), number_of_nodes=3)
    with pytest.raises(GraphError, match="edge_index has shape"):
        PrivateGraph.from_pyg(SimpleNamespace(edge_index=np.zeros((3, 2), int)), number_of_nodes=3)
    with pytest.raises(GraphError, match="edges names a node that is neither a number"):
        PrivateGraph.from_networkx(networkx.Graph([("x", "y")]), number_of_nodes=3)


def test_a_graph_spends_from_one_budget_only() -> None:
    graph = PrivateGraph.from_edges(PAIRS, number_of_nodes=6)
    graph.bind("one")
    graph.bind("one")
    with pytest.raises(GraphError, match="one private graph has one budget"):
        graph.bind("two")
