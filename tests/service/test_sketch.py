"""What the owner sees of a sketch over HTTP and in the console: its price, its coverage, what a rehearsal promises."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.browsing import Browsed, needs_chromium, sign_in
from tests.service.served import Served, untimed
from tests.shell import newcomer


@pytest.fixture(scope="module")
def sketched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shell = untimed(newcomer(tmp_path_factory.mktemp("sketched")))
    shell.ask("sketch", "--epsilon", "3", "--partners", "5", "--yes")
    shell.name_sketch("sketch.bin")
    service = Served(shell)
    yield service
    service.stop()


def test_the_owner_sees_what_the_sketch_cost_covers_and_promises(sketched: Served) -> None:
    found = sketched.ask("GET", "/v1/sketch", sketched.owner).json()["sketch"]
    assert [found[name] for name in ("epsilon", "responses", "counts", "partners")] == ["3", "1", "2", 5]
    assert (found["one_edge"], found["any_two_graphs"]) == ("3", None)
    assert 0 <= found["guessed"] <= 1
    assert "cost epsilon 3, once" in found["in_words"]
    assert "m times as much for a person" in found["in_words"]
    assert "of the hidden pairs" in found["in_words"]
    assert "in a rehearsal on public data" in found["in_words"].lower()
    losses = sketched.ask("GET", "/v1/budget", sketched.owner).json()["losses"]
    assert (losses["one_edge"], losses["any_two_graphs"]) == ("3", None)
    assert sketched.ask("GET", "/v1/sketch", sketched.new_key("ann")).status_code == 403


def test_a_service_without_a_sketch_says_so(served: Served) -> None:
    assert served.ask("GET", "/v1/sketch", served.owner).json() == {"sketch": None}


@needs_chromium
def test_the_console_shows_the_sketch(browser: Any, sketched: Served, served: Served) -> None:
    for service, said in ((sketched, "The sketch cost epsilon 3, once"), (served, "None is named in the vault file")):
        browsed = Browsed(browser, service.url, "phone")
        sign_in(browsed.page, service.owner)
        browsed.page.get_by_role("tab", name="Budget").click()
        browsed.page.locator("#sketch-words").get_by_text(said).wait_for()
        rows = browsed.page.locator("#sketch tbody tr")
        assert rows.count() == (4 if service is sketched else 0)
        if service is sketched:
            assert "30" in rows.nth(1).inner_text(), "ten connections lose ten times as much"
        browsed.close()
