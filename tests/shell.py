"""A newcomer's own graph in a folder, and `privcfs` run there as a person would."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from privcfs.errors import PrivcfsError

NODES = 12


class Shell:
    """Runs `privcfs` as a person would, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        script = "from privcfs.cli import main; main()"
        command = [sys.executable, "-c", script, *words]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=120, env=self.environment
        )

    @property
    def environment(self) -> dict[str, str]:
        """Every folder keeps a list of graphs of its own."""
        return {**os.environ, "PRIVCFS_GRAPHS": str(self.folder / "graphs.json")}

    def ask(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    def fails(self, kind: type[PrivcfsError], *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == kind.exit_code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stderr

    def name_sketch(self, name: str) -> None:
        """Names a sketch in the vault file."""
        path = self.folder / "vault.toml"
        path.write_text(path.read_text().replace("[public] ", f'[public]\nsketch = "{name}"\n#', 1))


def newcomer(tmp_path: Path) -> Shell:
    """A graph of their own: CSV files, a PyTorch Geometric state dict, and what `init` wrote."""
    rng = np.random.default_rng(0)
    names = [f"person-{number}" for number in range(NODES)]
    (tmp_path / "nodes.txt").write_text("\n".join(names))
    pairs = [(u, w) for u in range(NODES) for w in range(u) if rng.random() < 0.3]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{names[u]},{names[w]}" for u, w in pairs))
    public = "\n".join(f"{names[u]},{names[w]}" for u, w in pairs[::2])
    (tmp_path / "public_edges.csv").write_text(public)
    table = (rng.random((NODES, 5)) < 0.6).astype(int)
    (tmp_path / "features.csv").write_text("a,b,c,d,e\n" + "\n".join(",".join(map(str, row)) for row in table))
    layers = {
        "conv1.lin.weight": rng.normal(size=(8, 5)).astype(np.float32),
        "conv1.bias": rng.normal(size=8).astype(np.float32),
        "conv2.lin.weight": rng.normal(size=(3, 8)).astype(np.float32),
        "conv2.bias": rng.normal(size=3).astype(np.float32),
    }
    save_file(layers, tmp_path / "gcn.safetensors")
    public_model = {name: layer + rng.normal(0, 0.1, layer.shape).astype(np.float32) for name, layer in layers.items()}
    save_file(public_model, tmp_path / "public_model.safetensors")
    shell = Shell(tmp_path)
    assert shell.run("init").returncode == 0
    settings = (tmp_path / "vault.toml").read_text().replace("# node_ids", "node_ids")
    settings = settings.replace('model_is = "kept"', 'model_is = "secret"').replace("# model = ", "model = ")
    (tmp_path / "vault.toml").write_text(settings.replace('# limit_per_analyst = "2"', 'limit_per_analyst = "4"'))
    return shell
