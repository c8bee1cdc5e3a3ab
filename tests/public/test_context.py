from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from privcfs import GCN, Intervention, PublicContext
from privcfs.errors import ContextError, UnknownNode
from tests.worlds import random_gcn

FEATURES = np.array([[1, 0, 2], [0, 1, 0], [0, 0, 0], [1, 1, 1]], np.float32)
PAIRS = [(0, 1), (1, 3)]


@pytest.fixture
def model() -> GCN:
    return random_gcn(np.random.default_rng(0), 3)


def test_every_feature_format_gives_the_same_context(model: GCN, tmp_path: Path) -> None:
    csv, headed, npy = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.npy"
    text = "\n".join(",".join(str(cell) for cell in row) for row in FEATURES)
    csv.write_text(text)
    headed.write_text("x,y,z\n" + text)
    np.save(npy, FEATURES)
    sources: list[Any] = [FEATURES, FEATURES.tolist(), sp.coo_array(FEATURES), csv, str(headed), npy]
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array):
        path = tmp_path / f"{kind.__name__}.npz"
        sp.save_npz(path, kind(FEATURES))
        sources.append(path)
    digests = {PublicContext(source, PAIRS, model).digest for source in sources}
    assert len(digests) == 1


def test_the_digest_covers_every_public_part(model: GCN) -> None:
    other = random_gcn(np.random.default_rng(1), 3)
    changed = FEATURES.copy()
    changed[0, 1] = 1
    contexts = [
        PublicContext(FEATURES, PAIRS, model),
        PublicContext(changed, PAIRS, model),
        PublicContext(FEATURES, PAIRS[:1], model),
        PublicContext(FEATURES, PAIRS, other),
        PublicContext(FEATURES, PAIRS, model, assumptions=()),
        PublicContext(FEATURES, PAIRS, model, node_ids=["a", "b", "c", "d"]),
    ]
    assert len({context.digest for context in contexts}) == len(contexts)
    assert PublicContext(FEATURES, [(3, 1), (1, 0)], model).digest == contexts[0].digest, "order does not matter"


def test_nodes_are_named_by_number_or_public_name(model: GCN) -> None:
    named = PublicContext(FEATURES, [(0, 1)], model, node_ids=["ann", "bob", "cid", "3"])
    assert [named.node(name) for name in ("ann", 2, "3")] == [0, 2, 3]
    assert named.label(1) == "bob"
    for wrong in (4, -1, True):
        with pytest.raises(UnknownNode, match="is not a node; give a number from 0 to 3"):
            named.node(wrong)
    for word in ("eve", "1", "²"):
        with pytest.raises(UnknownNode, match="is not a node; give a name of node_ids"):
            named.node(word)
    plain = PublicContext(FEATURES, [(0, 1)], model)
    assert [plain.node("2"), plain.node(1)] == [2, 1]


def test_a_context_gives_an_intervention_its_names(model: GCN) -> None:
    one = Intervention(delete=((0, 1),), add=((0, 3),))
    named = PublicContext(FEATURES, [(0, 1)], model, node_ids=["ann", "bob", "cid", "3"])
    assert str(named.named(one)) == "delete ann - bob, add ann - 3"
    assert named.labels([3, 0]) == {0: "ann", 3: "3"}
    assert named.labels([-1, 4, 10**30]) == {}, "nodes that there are not have no names"
    plain = PublicContext(FEATURES, [(0, 1)], model)
    assert str(plain.named(one)) == "delete 0 - 1, add 0 - 3"
    assert plain.labels([0]) == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": FEATURES[:, :2]}, "features has 2 columns, but the model was trained on 3"),
        ({"features": FEATURES * np.nan}, r"features has a missing or infinite value \(nan\) in row 0, column 0"),
        ({"features": FEATURES[0]}, r"features has shape \(3,\)"),
        ({"features": [[1, 2, 3], [4, 5]]}, "features has rows of different lengths"),
        ({"features": [["a", "b", "c"]]}, "give one row of numbers per node"),
        ({"snapshot": [(0, 9)]}, "snapshot names node 9, but nodes are 0 to 3"),
        ({"snapshot": [(1, 1)]}, r"snapshot joins node 1 to itself; remove it\."),
        ({"snapshot": [(0, 1), (0, 1)]}, r"snapshot lists the pair 0, 1 more than once; remove it\."),
        ({"snapshot": [(0, 1), (2,)]}, "snapshot has rows of different lengths"),
        ({"node_ids": ["a", "b"]}, "node_ids has 2 names, but features has 4 rows"),
        ({"node_ids": ["a", "a", "b", "c"]}, "node_ids names 'a' twice"),
        ({"node_ids": ["a", "", "b", "c"]}, "node_ids has an empty or unprintable name"),
        ({"node_ids": 5}, "node_ids must be a list of names"),
        ({"model": "gcn.safetensors"}, "model is a str; load it with privcfs.load_model first"),
    ],
)
def test_faulty_public_input_is_named(model: GCN, changes: dict[str, object], message: str) -> None:
    arguments = {"features": FEATURES, "snapshot": PAIRS, "model": model, **changes}
    with pytest.raises(ContextError, match=message):
        PublicContext(**arguments)  # type: ignore[arg-type]


def hostile_features(folder: Path) -> dict[str, Path]:
    """Files that a loader must refuse: a pickle, a cut archive, indices out of bounds, ragged rows."""
    pickled = folder / "pickled.npy"
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    whole = folder / "whole.npz"
    sp.save_npz(whole, sp.csr_array(FEATURES))
    cut = folder / "cut.npz"
    cut.write_bytes(whole.read_bytes()[:200])
    wild = folder / "wild.npz"
    np.savez(wild, indices=[10**9], indptr=[0, 1, 1, 1, 1], data=[1.0], shape=[4, 3], format=b"csr")
    sideways = folder / "sideways.npz"
    np.savez(sideways, indices=[10**8], indptr=[0, 1, 1, 1], data=[1.0], shape=[4, 3], format=b"csc")
    ragged = folder / "ragged.csv"
    ragged.write_text("1,2,3\n4,5\n")
    return {
        "pickled": pickled,
        "cut": cut,
        "wild": wild,
        "sideways": sideways,
        "ragged": ragged,
        "missing": folder / "no.csv",
    }


def test_hostile_feature_files_are_refused(model: GCN, tmp_path: Path) -> None:
    for name, path in hostile_features(tmp_path).items():
        with pytest.raises(ContextError, match=r"cannot be read|does not exist|not a valid table"):
            PublicContext(path, PAIRS, model)
        assert name


def test_the_first_row_of_a_feature_file_is_never_lost(model: GCN, tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    text = "\n".join(",".join(str(cell) for cell in row) for row in FEATURES)
    path.write_text("\ufeff" + text, encoding="utf-8")
    assert PublicContext(path, PAIRS, model).number_of_nodes == 4
    for first in (",0,2", "1.O,0,2"):
        path.write_text(first + "\n" + text)
        with pytest.raises(ContextError, match="cannot be read"):
            PublicContext(path, PAIRS, model)


def test_a_hostile_sparse_matrix_is_refused(model: GCN) -> None:
    wild = sp.csr_array(FEATURES)
    wild.indices[0] = -7
    with pytest.raises(ContextError, match="not a valid table of numbers"):
        PublicContext(wild, PAIRS, model)


def test_the_callers_arrays_are_left_alone(model: GCN) -> None:
    mine = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 2]), np.array([0, 3, 3, 3, 3])), shape=(4, 3))
    PublicContext(mine, PAIRS, model)
    assert mine.nnz == 3
