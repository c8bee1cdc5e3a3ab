"""Runs a few lines as a user who owns nothing, so that missing permissions are real where the tests run as root too."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
PREPARE = f"""
import os
import pyarrow.csv, pyarrow.compute, pyarrow.parquet  # imported while the interpreter's own files can still be read
from pathlib import Path
from privcfs import PrivateGraph, load_model
from privcfs.errors import ContextError, GraphError, PrivcfsError
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.features import read_features
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.tables.importing import import_features, import_pairs
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
def attempt(call):
    try:
        call()
        print("no error")
    except PrivcfsError as error:
        print(type(error).__name__, error)
"""


def said(lines: str, folder: Path) -> list[str]:
    """What the lines print, one line for each `attempt`, in a folder and without any privilege."""
    command = [sys.executable, "-c", PREPARE + lines]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            folder.chmod(0o755)
