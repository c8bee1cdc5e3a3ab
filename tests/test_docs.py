"""What the pages say is true: samples run, every command and option is documented, links lead somewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privcfs import Schema, save_model
from privcfs.cli import app
from privcfs.embedded.loan import load_bank
from tests.documented import assert_documented
from tests.worlds import random_gcn, random_pairs

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture
def files_of_the_readme(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, density in (("edges.csv", 0.1), ("public_edges.csv", 0.1)):
        np.savetxt(tmp_path / name, random_pairs(rng, 50, density), fmt="%d", delimiter=",")
    np.savetxt(tmp_path / "features.csv", rng.random((50, 9)) < 0.5, fmt="%d", delimiter=",")
    save_model(random_gcn(rng, 9), tmp_path / "gcn.safetensors", {})
    (tmp_path / "labels.csv").write_text("\n".join(f"{node},{node % 3}" for node in range(0, 50, 2)))
    return tmp_path


def test_the_python_sample_of_the_readme_runs(files_of_the_readme: Path) -> None:
    sample = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    load = 'import numpy\nX = numpy.loadtxt("features.csv", delimiter=",")\n'
    command = [sys.executable, "-c", load + sample]
    done = subprocess.run(command, cwd=files_of_the_readme, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "pure 1-differential privacy of the whole release" in done.stdout


def test_the_samples_about_recourse_are_right(tmp_path: Path) -> None:
    text = (ROOT / "docs/recourse.md").read_text()
    path = tmp_path / "features.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0].replace("# columns", "columns"))
    schema = Schema.read(path)
    assert [one.kind for one in schema.features] == ["number", "number", "category", "category", "flag", "fixed"]
    assert [str(rule) for rule in schema.rules] == ["if Housing changes, Savings may not rise"]
    sample = text.split("```python\n")[1].split("```")[0]
    command = [sys.executable, "-W", "ignore", "-c", sample]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "(epsilon 1)" in done.stdout


def test_three_files_and_a_model_lead_to_advice_in_fifteen_lines(tmp_path: Path) -> None:
    """The sample of the page about graphs, on the files of the made-up bank; and the commands beside it."""
    import torch

    bank = load_bank()
    bank.write(tmp_path)
    model = bank.model()
    layers = {"conv1.lin.weight": model.first.T, "conv2.lin.weight": model.second.T}
    layers |= {"conv1.bias": model.first_bias, "conv2.bias": model.second_bias}
    torch.save({name: torch.tensor(np.ascontiguousarray(one)) for name, one in layers.items()}, tmp_path / "model.pt")
    text = (ROOT / "docs/graphs.md").read_text()
    sample = text.split("```python\n")[2].split("```")[0]
    assert len([line for line in sample.splitlines() if line.strip()]) <= 15
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", sample], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"client-214: .*\(flips with probability [0-9]+ %\)", done.stdout)
    assert "<svg" in (tmp_path / "advice.svg").read_text()


def test_the_sample_for_pytorch_geometric_runs(files_of_the_readme: Path) -> None:
    sample = (ROOT / "docs/pyg.md").read_text().split("```python\n")[1].split("```")[0]
    load = 'import numpy\nX = numpy.loadtxt("features.csv", delimiter=",")\n'
    command = [sys.executable, "-W", "ignore", "-c", load + sample + "print(vault.balance().spent)"]
    done = subprocess.run(command, cwd=files_of_the_readme, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1"


def test_the_commands_for_an_own_graph_run(files_of_the_readme: Path) -> None:
    blocks = [part for part in (ROOT / "docs/own-graph.md").read_text().split("```\n") if "\nprivcfs " in f"\n{part}"]
    owners, people = ([line.split("#")[0].strip() for line in one.splitlines()] for one in blocks[:2])
    vault_file = files_of_the_readme / "vault.toml"
    say_so = f"sed -i 's/^# people_know_their_edges/people_know_their_edges/' {vault_file}"
    lines = [line for line in [*owners, say_so, *people] if line.startswith(("privcfs ", "sed "))]
    assert len(lines) == 8 + 1 + 2
    run = f"{sys.executable} -c 'from privcfs.cli import main; main()'"
    for line in lines:
        done = subprocess.run(
            line.replace("privcfs", run, 1), shell=True, cwd=files_of_the_readme, capture_output=True, text=True
        )
        assert done.returncode == 0, (line, done.stderr)


def test_every_command_and_option_is_documented() -> None:
    assert_documented("privcfs", app)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_files_named_in_the_pages_exist() -> None:
    for page in ("promise", "notation", "extend"):
        text = (ROOT / f"docs/{page}.md").read_text()
        for name in re.findall(r"(?<![\w/])((?:tables|public|private|gate|owner|service|fleet|cli)/[\w/]+\.py)", text):
            assert (ROOT / "src/privcfs" / name).exists(), name
        for name in re.findall(r"\b(privcfs_lab/[\w/]+\.py)", text):
            assert (ROOT / "src" / name).exists(), name
        for name in re.findall(r"\b(tests/[\w/]+\.py)", text):
            assert (ROOT / name).exists(), name


def test_the_numbers_of_the_readme_are_those_of_the_results_page() -> None:
    rows = json.loads((ROOT / "docs/results/zero.json").read_text())["rows"]
    readme = (ROOT / "README.md").read_text()
    for name in ("Cora", "CiteSeer"):
        key = (name.lower(), "snapshot", "joint")
        (row,) = [row for row in rows if (row["data"], row["model trained on"], row["arm"]) == key]
        numbers = [f"{row[column]['mean']:.3f}" for column in ("ceiling", "public guess", "ours @1", "ours @8")]
        assert f"| {name} | {' | '.join(numbers)} |" in readme


def test_the_readme_s_numbers_of_guided_releases_are_those_of_their_page() -> None:
    rows = json.loads((ROOT / "docs/results/recourse.json").read_text())["rows"]
    readme = (ROOT / "README.md").read_text()
    for name in ("Cora", "CiteSeer"):
        key = (name.lower(), "everyone", 2, 0.5)
        (row,) = [row for row in rows if (row["data"], row["population"], row["cap"], row["disclosed"]) == key]
        numbers = [
            f"{row[column]['mean']:.3f}" for column in ("snapshot guess", "row zero", "@1", "@4", "@8", "ceiling")
        ]
        assert f"| {name} | {' | '.join(numbers)} |" in readme


def test_the_continuous_check_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "make test" in script
    assert "make test" in (ROOT / "README.md").read_text()


def test_the_repository_speaks_of_the_project_alone() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout to list the files")
    names = subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        path = ROOT / name
        if path.suffix in {".md", ".py", ".toml", ".txt", ""} and path.is_file() and path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert "/root/" not in text
            assert not re.search(r"/(work|home)/\w", text), name
