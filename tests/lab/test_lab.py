import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from privcfs import Method
from privcfs.embedded import load_dataset
from privcfs.errors import MissingDependency
from privcfs.public.candidates import RULES
from privcfs.public.models.training import Labelled, Training, accuracy, train_gcn
from privcfs_lab import inspect
from privcfs_lab.audit.certify import Row
from privcfs_lab.bench import as_module
from privcfs_lab.cli import commands as lab_cli
from tests.documented import assert_documented

ROOT = Path(__file__).parent.parent.parent


def lab(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from privcfs_lab.cli.commands import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_inspect_shows_the_owner_everything() -> None:
    data = load_dataset("cora")
    found = inspect(data.private_graph(), data.context(), 1869)
    count = len(found.candidates)
    assert found.predictions.shape == found.flips.shape == found.utilities.shape == (count,)
    assert (found.flips == (found.predictions != found.original)).all()
    law = found.probabilities("1")
    assert abs(law.sum() - 1) < 1e-12
    expected = np.exp(found.utilities / (2 * float(found.range)))
    assert np.allclose(law, expected / expected.sum(), rtol=1e-9)


def test_edge_only_inspection_uses_its_own_range() -> None:
    data = load_dataset("cora")
    found = inspect(data.private_graph(), data.context(), 1869, Method(candidates=RULES["edges-only"]))
    assert str(found.range) == "9/10"


def test_training_reaches_the_papers_accuracy() -> None:
    data = load_dataset("cora")
    everything = Labelled(data.features, data.edges(), data.labels, data.train)
    model = train_gcn(everything, Training(seed=1))
    assert 0.79 < accuracy(model, everything, data.test) < 0.83


def test_the_torch_copy_of_a_model_says_the_same() -> None:
    data = load_dataset("cora")
    model = data.model("snapshot")
    ours, theirs = (one.logits(data.features, data.snapshot) for one in (model, as_module(model)))
    assert np.abs(ours - theirs).max() < 1e-4


def test_certify_exits_with_zero_and_prints_its_table() -> None:
    done = lab("certify", "--graphs", "10")
    assert done.returncode == 0, done.stderr
    assert "BREACH" not in done.stdout
    assert "holds" in done.stdout


def test_certify_exits_with_one_on_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    breach = Row("half the sensitivity", 1, "-", "1929", "54.6", passed=False)
    monkeypatch.setattr(lab_cli, "run_checks", lambda *_: [breach])
    done = CliRunner().invoke(lab_cli.app, ["certify"])
    assert done.exit_code == 1
    assert "BREACH" in done.stdout


@pytest.mark.parametrize("page", ["certification.md", "bench.md", "zero.md"])
def test_results_say_which_command_made_them(page: str) -> None:
    text = (ROOT / "docs/results" / page).read_text()
    assert "Written by `privcfs-lab " in text


def test_help_names_the_commands() -> None:
    shown = lab("--help").stdout
    for word in ("certify", "bench", "price", "reproduce"):
        assert word in shown


def test_a_missing_package_of_the_laboratory_is_named_in_one_line() -> None:
    script = "import sys; sys.modules['dp_accounting'] = None; from privcfs_lab.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == MissingDependency.exit_code
    assert done.stderr == "Error: the laboratory needs dp_accounting: pip install 'privcfs[lab]'.\n"


def test_every_command_and_option_is_documented() -> None:
    assert_documented("privcfs-lab", lab_cli.app)
