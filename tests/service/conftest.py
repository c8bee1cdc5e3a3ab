"""One real server for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.service.served import Served, untimed
from tests.shell import newcomer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    service = Served(untimed(newcomer(tmp_path_factory.mktemp("served"))))
    yield service
    said = service.stop()
    assert "Traceback" not in said
    assert "privcfs_" not in said, "no secret in the log"
