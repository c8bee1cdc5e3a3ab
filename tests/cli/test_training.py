"""`privcfs train`: a public model from public files, with torch alone, and an accuracy that is what it says."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open

from privcfs import load_model
from privcfs.cli import main, training
from privcfs.cli.training import PublicFiles
from privcfs.embedded import load_dataset
from privcfs.errors import ContextError, GraphError, InputError, MissingDependency, SettingsError
from privcfs.public.models.labels import Labels, read_labels
from privcfs.public.models.training import Labelled, Training, accuracy, train_gcn
from privcfs.tables.named_columns import Table
from privcfs.tables.names import Nodes
from tests.shell import NODES, Shell

WORDS = ("ham", "spam", "eggs")


class Inside(Shell):
    """Runs `privcfs` in this process, which has imported torch already."""

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        out, err, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["privcfs", *words])
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture
def owner(shell: Shell) -> Inside:
    """The README's owner before there is a guide, with public labels of twelve people."""
    (shell.folder / "public_model.safetensors").unlink()
    label(shell, "\n".join(f"person-{node},{WORDS[node % 3]}" for node in range(NODES)))
    return Inside(shell.folder)


def label(shell: Shell, text: str) -> None:
    (shell.folder / "labels.csv").write_text(text)


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, "np") as file:
        return dict(file.metadata())


def test_the_vault_file_names_what_is_read_and_the_private_files_are_not_there(owner: Inside) -> None:
    for name in ("edges.csv", "gcn.safetensors"):
        (owner.folder / name).unlink()
    done = owner.run("train", "--labels", "labels.csv")
    assert done.returncode == 0, done.stderr
    assert "Wrote public_model.safetensors, trained on all 12 labelled nodes." in done.stdout
    assert "A model trained the same way without the labels of 2 held-out nodes is right about" in done.stdout
    assert "always answering their most frequent class is right about 50.0%" in done.stdout
    assert "Classes: 0 = eggs, 1 = ham, 2 = spam." in done.stdout
    assert "The model that decides must number its classes in the same order" in done.stdout
    assert json.loads(metadata(owner.folder / "public_model.safetensors")["classes"]) == ["eggs", "ham", "spam"]
    assert load_model(owner.folder / "public_model.safetensors").number_of_classes == 3


def test_a_private_file_that_is_read_would_be_noticed(owner: Inside) -> None:
    """The twin of the test before: a command that does read the edges fails without them."""
    owner.ask("train", "--labels", "labels.csv")
    (owner.folder / "edges.csv").unlink()
    assert "edges.csv does not exist" in owner.fails(GraphError, "explain", "person-3", "--epsilon", "1")


def test_the_owners_path_goes_from_labels_to_a_release(owner: Inside) -> None:
    said = owner.ask("train", "--labels", "labels.csv", "--classes", "ham,spam,eggs")
    assert said["classes"] == ["ham", "spam", "eggs"]
    assert (said["written"], said["labelled"], said["held_out"]) == ("public_model.safetensors", 12, 2)
    assert said["accuracy"] in (0, 0.5, 1)
    assert owner.ask("explain", "person-3", "--epsilon", "1")["target"] == 3


def test_files_may_be_named_without_a_vault_file(owner: Inside) -> None:
    folder = owner.folder
    (folder / "vault.toml").unlink()
    assert "vault.toml does not exist; give --vault, or" in owner.fails(InputError, "train", "--labels", "labels.csv")
    given = ("--features", "features.csv", "--snapshot", "public_edges.csv", "--node-ids", "nodes.txt")
    assert owner.ask("train", "--labels", "labels.csv", *given, "--write", "one.safetensors")["labelled"] == 12
    words = ("train", "--labels", "labels.csv", "--features", "features.csv")
    assert "give --features and --snapshot" in owner.fails(InputError, *words)


def test_private_edges_in_the_place_of_public_pairs_are_refused(owner: Inside) -> None:
    path = owner.folder / "vault.toml"
    path.write_text(path.read_text().replace('snapshot = "public_edges.csv"', 'snapshot = "edges.csv"'))
    said = owner.fails(SettingsError, "train", "--labels", "labels.csv")
    assert "snapshot and edges are the same" in said


def test_a_model_is_not_written_over_by_accident(owner: Inside) -> None:
    (owner.folder / "public_model.safetensors").write_bytes(b"mine")
    assert "use --force to replace it" in owner.fails(SettingsError, "train", "--labels", "labels.csv")
    assert (owner.folder / "public_model.safetensors").read_bytes() == b"mine"
    assert owner.ask("train", "--labels", "labels.csv", "--force")["labelled"] == 12
    assert load_model(owner.folder / "public_model.safetensors").number_of_features == 5
    said = owner.fails(SettingsError, "train", "--labels", "labels.csv", "--write", "nowhere/public_model.safetensors")
    assert "does not exist; make it first" in said


def test_the_same_seed_gives_the_same_model(owner: Inside) -> None:
    digests = []
    for seed in ("3", "3", "4"):
        owner.ask("train", "--labels", "labels.csv", "--seed", seed, "--force")
        digests.append(load_model(owner.folder / "public_model.safetensors").digest)
    assert digests[0] == digests[1] != digests[2]


def test_too_few_labels_are_said_to_be_too_few(owner: Inside) -> None:
    label(owner, "person-0,ham\nperson-1,spam\n")
    done = owner.run("train", "--labels", "labels.csv")
    assert "was not measured: there are too few labels to hold any out" in done.stdout
    assert owner.ask("train", "--labels", "labels.csv", "--force")["accuracy"] is None


def test_without_torch_one_line_says_what_to_install(owner: Inside) -> None:
    script = "import sys; sys.modules['torch'] = None; from privcfs.cli import main; main()"
    command = [sys.executable, "-c", script, "train", "--labels", "labels.csv"]
    done = subprocess.run(command, cwd=owner.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == MissingDependency.exit_code
    assert done.stderr == "Error: training needs torch; run: pip install 'privcfs[torch]'.\n"


def test_training_needs_torch_alone(owner: Inside) -> None:
    missing = ("pandas", "dp_accounting", "torch_geometric", "networkx", "matplotlib", "ogb", "pyarrow", "privcfs_lab")
    script = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); from privcfs.cli import main; main()"
    command = [sys.executable, "-c", script, "train", "--labels", "labels.csv"]
    done = subprocess.run(command, cwd=owner.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_core_is_importable_without_optional_packages() -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'pandas', 'dp_accounting', 'pyarrow')))\n"
        "import privcfs, privcfs.cli, privcfs.public.models.training, privcfs.public.models.labels"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


NAMED = Nodes(4, {"ann": 0, "bob": 1, "cid": 2, "dee": 3})


@pytest.mark.parametrize(
    ("text", "nodes", "classes", "names"),
    [
        ("node,class\n0,1\n3,0\n", Nodes(4), {0: 1, 3: 0}, ("0", "1")),
        ("0,2.0\n2,0.0\n2,0.0\n", Nodes(4), {0: 2, 2: 0}, ("0", "1", "2")),
        ("ann, yes\n\ncid,no\n", NAMED, {0: 1, 2: 0}, ("no", "yes")),
        ("b\na\na\nb\n\n", Nodes(4), {0: 1, 1: 0, 2: 0, 3: 1}, ("a", "b")),
        ("label\n1\n0\n0\n1\n", NAMED, {0: 1, 1: 0, 2: 0, 3: 1}, ("0", "1")),
        ("ann,1\nbob,unknown\n", NAMED, {0: 0, 1: 1}, ("1", "unknown")),
        ("node,class\nann,x\n", Nodes(2, {"node": 0, "ann": 1}), {0: 0, 1: 1}, ("class", "x")),
    ],
)
def test_labels_of_every_form_are_read(
    text: str, nodes: Nodes, classes: dict[int, int], names: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text(text)
    found = read_labels(tmp_path / "labels.csv", nodes)
    assert dict(zip(found.nodes.tolist(), found.classes.tolist(), strict=True)) == classes
    assert found.names == names


def test_the_order_of_classes_may_be_given_and_hold_more_than_the_labels(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("0,10\n1,20\n")
    found = read_labels(tmp_path / "labels.csv", Nodes(4), ("20", "15", "10"))
    assert found.classes.tolist() == [2, 0]
    assert found.names == ("20", "15", "10")


@pytest.mark.parametrize(
    ("text", "nodes", "words"),
    [
        ("", Nodes(4), "labels has 0 columns; write rows node,class, or one class per node"),
        ("node,class\n", Nodes(4), "labels names no node"),
        ("0,1,2\n", Nodes(4), "labels has 3 columns"),
        ("0,1\n1\n", Nodes(4), "labels line 2 has 1 columns"),
        ("0,a\n1,a\n", Nodes(4), "labels has one class only, 'a'; a model needs labels of two classes"),
        ("0,1\n9,0\n", Nodes(4), "labels line 2 names an unknown node '9'; use numbers from 0 to 3"),
        ("user,segment\n0,1\n", Nodes(4), "line 1 names an unknown node 'user'; .* a header must read node,class"),
        ("ann,1\neve,0\n", NAMED, "labels line 2 names an unknown node 'eve'; use names of node_ids"),
        ("ann,1\nbob,0\nann,0\n", NAMED, "line 3 gives node 'ann' the class '0', but an earlier line '1'"),
        ("0,1\n1,\n", Nodes(4), "labels line 2 has an empty cell in the place of a class"),
        ("1\n0\n\n1\n", Nodes(4), "labels line 3 has an empty cell"),
        ("1\n0\n1\n", Nodes(4), "labels has one column and 3 rows, but there are 4 nodes"),
        ("1\n0\n1\n0\n1\n", Nodes(4), "labels has one column and 5 rows"),
        ("1\n0\n1,2\n1\n", Nodes(4), "labels line 3 has 2 columns; write one class per line"),
        ("0,1\n1,-1\n", Nodes(4), "labels has the class '-1', which is no whole number from 0"),
        ("0,1\n1,1.5\n", Nodes(4), "labels has the class '1.5', which is no whole number"),
        ("0,1\n1,nan\n", Nodes(4), "labels has the class 'nan', which is no whole number"),
        ("0,1\n1,99999999999\n", Nodes(4), "labels has the class '99999999999', which is no whole number"),
        ("0,a\n1,\x1b[31mb\n", Nodes(4), r"unprintable class '\\x1b\[31mb'"),
    ],
)
def test_faulty_labels_are_named(text: str, nodes: Nodes, words: str, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ContextError, match=words):
        read_labels(tmp_path / "labels.csv", nodes)


def test_a_faulty_order_of_classes_is_named(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("0,a\n1,b\n")
    for order in (("a", "b", "a"), ("a", "", "b")):
        with pytest.raises(InputError, match="classes must be different names with commas between them"):
            read_labels(tmp_path / "labels.csv", Nodes(4), order)
    with pytest.raises(ContextError, match="labels has the class 'b', which --classes lacks"):
        read_labels(tmp_path / "labels.csv", Nodes(4), ("a", "c"))


def test_a_fifth_is_held_out_in_proportion_and_every_class_stays() -> None:
    classes = np.array([0] * 50 + [1] * 30 + [2] * 19 + [3])
    labels = Labels(np.arange(100), classes, ("a", "b", "c", "d"))
    held = [labels.held_out(seed) for seed in range(20)]
    for one in held:
        assert np.abs(np.bincount(classes[one], minlength=4) - [10, 6, 4, 0]).max() <= 1
        assert one.sum() == 20
        assert not one[99], "the only node of its class"
    assert (labels.held_out(0) == held[0]).all()
    assert (held[0] != held[1]).any()
    assert np.mean(held, axis=0)[:99].max() < 0.7, "no node is always chosen"
    assert not Labels(np.arange(4), np.array([0, 1, 0, 1]), ("a", "b")).held_out(0).any()
    assert not Labels(np.arange(6), np.arange(6), tuple("abcdef")).held_out(0).any()


def test_the_accuracy_is_that_of_nodes_whose_labels_were_not_seen(tmp_path: Path) -> None:
    """Labels that are noise: a model can learn them by heart, so only held-out nodes tell that it knows nothing."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "features.npy", np.eye(200, dtype=np.float32))
    (tmp_path / "pairs.csv").write_text("0,1\n")
    noise = rng.integers(0, 4, 200)
    (tmp_path / "labels.csv").write_text("\n".join(map(str, noise)))
    shell = Inside(tmp_path)
    given = ("--features", "features.npy", "--snapshot", "pairs.csv", "--labels", "labels.csv")
    said = shell.ask("train", *given)
    assert said["held_out"] == 40
    assert said["accuracy"] < 0.5
    assert said["most_frequent_class"] < 0.5
    labels = read_labels(tmp_path / "labels.csv", Nodes(200))
    data = Labelled(sp.csr_array(np.eye(200, dtype=np.float32)), np.array([[0, 1]]), labels.classes, labels.nodes)
    by_heart = accuracy(train_gcn(data, Training()), data, labels.nodes)
    assert by_heart > 0.95, "the twin: accuracy on the training nodes says that everything is known"


def test_a_real_graph_is_learned_and_beats_the_most_frequent_class(tmp_path: Path) -> None:
    data = load_dataset("cora")
    sp.save_npz(tmp_path / "features.npz", data.features)
    np.savetxt(tmp_path / "pairs.csv", data.snapshot, fmt="%d", delimiter=",")
    known = np.concatenate([data.train, data.validation])
    np.savetxt(tmp_path / "labels.csv", np.column_stack([known, data.labels[known]]), fmt="%d", delimiter=",")
    given = ("--features", "features.npz", "--snapshot", "pairs.csv", "--labels", "labels.csv")
    said = Inside(tmp_path).ask("train", *given)
    assert said["held_out"] == 128
    assert said["accuracy"] > 0.7
    assert said["most_frequent_class"] < 0.45
    model = load_model(tmp_path / "public_model.safetensors")
    assert model.number_of_classes == 7


def test_stores_can_be_trained_on(owner: Inside) -> None:
    given = ("--node-ids", "nodes.txt", "--features", "features.csv", "--snapshot", "public_edges.csv")
    owner.ask("import", "big", *given)
    given = ("--node-ids", "nodes.txt", "--features", "big/features.store", "--snapshot", "big/snapshot.store")
    assert owner.ask("train", "--labels", "labels.csv", *given)["labelled"] == 12
    stored = load_model(owner.folder / "public_model.safetensors").digest
    owner.ask("train", "--labels", "labels.csv", "--force")
    assert load_model(owner.folder / "public_model.safetensors").digest == stored


def test_features_that_blow_up_training_are_named(tmp_path: Path) -> None:
    huge = np.sign(np.random.default_rng(0).normal(size=(6, 9))).astype(np.float32) * np.float32(3e38)
    np.save(tmp_path / "features.npy", huge)
    (tmp_path / "pairs.csv").write_text("0,1\n")
    (tmp_path / "labels.csv").write_text("0\n1\n0\n1\n0\n1\n")
    given = ("--features", "features.npy", "--snapshot", "pairs.csv", "--labels", "labels.csv")
    said = Inside(tmp_path).fails(SettingsError, "train", *given)
    assert "training ended in infinite weights; scale the features" in said
    assert not (tmp_path / "public_model.safetensors").exists()


def test_a_table_that_is_encoded_already_is_trained_on_without_its_schema(tmp_path: Path) -> None:
    """The schema of such a table may name columns by the header, which only a vault looks up."""
    (tmp_path / "clients.csv").write_text("client,income,months\nann,1.5,0.2\nbob,0.5,0.4\n")
    (tmp_path / "features.toml").write_text('[feature.Income]\ncolumn = "income"\nkind = "fixed"\n')
    table = Table(tmp_path / "clients.csv", nodes="client")
    read, names = training._features(PublicFiles(table, tmp_path / "none.csv", None, tmp_path / "features.toml"))
    assert read.toarray().tolist() == [[1.5, 0.20000000298023224], [0.5, 0.4000000059604645]]
    assert names == ("ann", "bob")
