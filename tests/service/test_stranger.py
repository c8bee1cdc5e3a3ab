"""A few seconds of each attack on a real server; `make stranger` measures in full, and has stricter bars for times."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from tools.stranger import (
    MEMORY_MB,
    Place,
    Seen,
    attacked,
    cost,
    endless_head,
    flood,
    keyless_rows,
    refused_batches,
    served,
    slow_clients,
)

from tests.service.served import Served

SECONDS = 3.0
Running = tuple[Served, Place, Seen]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with served() as (service, place):
        yield service, place, attacked(service, place, SECONDS, None)


def test_all_is_well_in_quiet(running: Running) -> None:
    quiet = running[2]
    assert set(quiet.statuses) == {200}
    assert len(quiet.releases) > 2
    assert not quiet.refused
    assert quiet.median >= 0.25, "the public answering time is on by default"


def test_whoever_has_no_key_costs_next_to_nothing(running: Running) -> None:
    service, place, _ = running
    _, seconds = cost(service, place, 50, ("POST", "/v1/releases", None, {"target": "1", "epsilon": "1"}))
    assert seconds < 0.1


@pytest.mark.parametrize("attack", [slow_clients, endless_head, flood, refused_batches], ids=lambda one: one.__name__)
def test_an_attack_holds_up_nobody(running: Running, attack: Callable[[Place, float], object]) -> None:
    if attack is flood and not shutil.which("hey"):
        pytest.skip("needs hey; as root: apt-get install hey")
    service, place, quiet = running
    seen = attacked(service, place, SECONDS, attack)
    assert set(seen.statuses) == {200}
    assert not seen.refused
    assert seen.grown < MEMORY_MB
    assert keyless_rows(service) == 0
    assert seen.p99 < 5
    assert seen.median < 20 * quiet.median
