"""Where the optional real data lies: tests that need it say so when they skip."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("PRIVCFS_DATA", Path(__file__).parent.parent.parent / "shared/data"))


@pytest.fixture(scope="session")
def planetoid() -> Path:
    folder = DATA / "Planetoid"
    if not folder.is_dir():
        pytest.skip("needs Planetoid's raw files: set PRIVCFS_DATA to the folder that holds Planetoid/")
    return folder
