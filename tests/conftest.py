"""One thread for each test process, and where the optional real data lies: tests that need it say so when they skip."""

import os
from pathlib import Path

import pytest

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before torch and NumPy are imported: two test processes share the cores

DATA = Path(os.environ.get("PRIVCFS_DATA", Path(__file__).parent.parent.parent / "shared/data"))


@pytest.fixture(scope="session")
def planetoid() -> Path:
    folder = DATA / "Planetoid"
    if not folder.is_dir():
        pytest.skip("needs Planetoid's raw files: set PRIVCFS_DATA to the folder that holds Planetoid/")
    return folder
