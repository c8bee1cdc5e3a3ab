"""CSV files with headers: columns by name, words as columns, values through a schema, types and weights of edges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privcfs import GCN, Links, PrivateGraph, PublicContext, Schema, Table
from privcfs.embedded.loan import load_bank
from privcfs.errors import ContextError, GraphError

NODES = "name,type,income,months\nann,bank,3,48\nbob,person,4,12\n\ncy,person,5,24\n"
EDGES = "kind,from,to,amount\ncalls,ann,bob,0.5\npays,ann,bob,2\npays,bob,cy,0\n"
OPTIONS = {"type": ["person", "bank"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def model(columns: int) -> GCN:
    return GCN(np.ones((columns, 2), np.float32), np.eye(2, dtype=np.float32))


def edges_of(graph: PrivateGraph, context: PublicContext) -> set[tuple[str, str]]:
    """Which pairs a graph has, as the owner may look."""
    lists = graph._lists
    return {(context.label(int(u)), context.label(int(w))) for u, w in lists.pairs}


def test_features_nodes_and_edges_are_read_by_name(folder: Path) -> None:
    features = Table(folder / "nodes.csv", nodes="name", columns=["months", "type"], options=OPTIONS)
    context = PublicContext(features, Links(folder / "edges.csv", "from", "to", kind="kind"), model(3))
    assert context.node_ids == ("ann", "bob", "cy")
    assert list(context.columns) == ["months", "type=person", "type=bank"]
    assert context.features.toarray().tolist() == [[48, 0, 1], [12, 1, 0], [24, 1, 0]]
    assert context.columns_of("type=bank") == {2}
    named: dict[str, Any] = {"number_of_nodes": 3, "node_ids": context.node_ids}
    both = {("ann", "bob"), ("bob", "cy")}
    rules: dict[str, dict[str, Any]] = {
        "every type": {"kind": "kind"},
        "one type": {"kind": "kind", "kinds": ["calls"]},
        "a threshold": {"kind": "kind", "weight": "amount", "at_least": 1},
        "none": {"kind": "kind", "kinds": ["owes"]},
    }
    found = {
        name: edges_of(PrivateGraph.from_csv(Links(folder / "edges.csv", "from", "to", **rule), **named), context)
        for name, rule in rules.items()
    }
    assert found == {"every type": both, "one type": {("ann", "bob")}, "a threshold": {("ann", "bob")}, "none": set()}


def test_a_pair_of_two_types_is_one_edge_and_a_repeated_row_is_refused(folder: Path) -> None:
    with (folder / "edges.csv").open("a") as file:
        file.write("pays,ann,bob,2\n")
    links = Links(folder / "edges.csv", "from", "to", kind="kind")
    with pytest.raises(GraphError, match="'ann', 'bob' more than once"):
        PrivateGraph.from_csv(links, number_of_nodes=3, node_ids=["ann", "bob", "cy"])


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no such column": (
        lambda path: Table(path, nodes="client"),
        "has no column 'client'; its header names 'name', 'ty",
    ),
    "words": (lambda path: Table(path, nodes="name"), "line 2, column 'type', holds 'bank'; write a number, leave"),
    "another word": (
        lambda path: Table(path, nodes="name", options={"type": ["bank"]}),
        "line 3, column 'type', holds 'person'; its options are 'bank'",
    ),
    "options of nothing": (
        lambda path: Table(path, nodes="name", columns=["income"], options=OPTIONS),
        "has no feature 'type', which options names",
    ),
    "twice": (lambda path: Table(path, columns=["income", "income"]), "name each column of features once"),
    "raw without a schema": (lambda path: Table(path, nodes="name", raw=True), "only a schema can turn into numbers"),
}


@pytest.mark.parametrize("case", BROKEN, ids=list(BROKEN))
def test_a_mistake_in_a_table_is_refused_with_its_place(folder: Path, case: str) -> None:
    make, words = BROKEN[case]
    with pytest.raises(ContextError) as caught:
        PublicContext(make(folder / "nodes.csv"), [(0, 1)], model(2))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no header with a name of its own for each column"),
        ("name,,months\nann,1,2\n", "has no header"),
        ("name,income\nann\n", "line 2 has 1 cells, but the header names 2 columns"),
        ("name,income\nann,1\nann,2\n", "names 'ann' twice"),
        ("name,income\nann,nan\n", "missing or infinite value"),
    ],
)
def test_a_damaged_table_is_refused(folder: Path, text: str, words: str) -> None:
    (folder / "nodes.csv").write_text(text)
    with pytest.raises(ContextError, match=words):
        PublicContext(Table(folder / "nodes.csv", nodes="name"), [(0, 1)], model(1))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"target": "where"}, "has no column 'where'"),
        ({"kinds": ["pays"]}, "kinds needs kind"),
        ({"at_least": 1}, "at_least needs weight"),
        ({"weight": "amount"}, "line 2, has the weight '0.5', but the model counts every edge alike"),
        ({"source": "kind"}, "line 2, names an unknown node 'calls'; use the names of the nodes"),
        ({"weight": "kind", "at_least": 1}, "has the weight 'calls'; write a finite number"),
    ],
)
def test_a_mistake_about_edges_is_refused_with_its_place(folder: Path, fields: dict[str, Any], words: str) -> None:
    links = Links(folder / "edges.csv", **{"source": "from", "target": "to", **fields})
    with pytest.raises(GraphError, match=words):
        PrivateGraph.from_csv(links, number_of_nodes=3, node_ids=["ann", "bob", "cy"])


def test_a_raw_table_goes_through_the_schema(tmp_path: Path) -> None:
    bank = load_bank()
    bank.write(tmp_path)
    table = Table(tmp_path / "clients.csv", nodes="client", raw=True)
    context = PublicContext(
        table, Links(tmp_path / "public_links.csv", "from", "to"), bank.model(), schema=tmp_path / "features.toml"
    )
    assert np.allclose(context.features.toarray(), bank.features, atol=1e-6)
    assert np.array_equal(context.snapshot.pairs, bank.snapshot)
    assert context.node_ids == bank.names
    assert context.schema is not None
    assert np.array_equal(Schema.read(tmp_path / "features.toml").encode_table(table), bank.features)
    text = (tmp_path / "clients.csv").read_text()
    for old, new, words in (
        ("owns", "squats", "column 'Housing', holds 'squats'; write one of rents, owns"),
        (",36,", ",x,", "column 'LoanDuration', holds 'x'; write a decimal number"),
        ("Savings", "Cash", "has no column 'Savings'"),
    ):
        (tmp_path / "clients.csv").write_text(text.replace(old, new, 1))
        with pytest.raises(ContextError, match=words):
            context.schema.encode_table(table)
