"""One real server for each file of tests, and Debian's chromium for those of the console."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.browsing import Browsed
from tests.service.served import Served, untimed
from tests.shell import newcomer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    service = Served(untimed(newcomer(tmp_path_factory.mktemp("served"))))
    yield service
    said = service.stop()
    assert "Traceback" not in said
    assert "privcfs_" not in said, "no secret in the log"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for one file of tests: while playwright runs, no other test of the process could call asyncio.run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=["desk", "phone"])
def page(browser: Any, served: Served, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The console, opened and not signed in, on a desk and on a phone."""
    browsed = Browsed(browser, served.url, request.param)
    yield browsed.page
    browsed.close()


@pytest.fixture
def phone(browser: Any, served: Served) -> Iterator[Any]:
    """The same, on a phone alone."""
    browsed = Browsed(browser, served.url, "phone")
    yield browsed.page
    browsed.close()
