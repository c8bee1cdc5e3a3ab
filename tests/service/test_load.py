"""A short press on a real server; `make load` measures it in full. No speed is asserted here: machines differ."""

import shutil

import pytest
from tools.load import kept, press, served

pytestmark = pytest.mark.skipif(not shutil.which("hey"), reason="needs hey; as root: apt-get install hey")
URL = "sqlite:///budget.db"


def test_overload_is_sent_away_and_loses_no_charge() -> None:
    with served(URL, workers=2) as service:
        key = service.key("load")
        calm = press(service, key, 2, requests=32)
        assert calm.statuses == {200: 32}
        flood = press(service, key, 100, seconds=2)
        assert set(flood.statuses) == {200, 503}
        service.process.terminate()
        service.process.wait(timeout=30)
        rows = kept(service, URL)
        answers = calm.statuses[200] + flood.statuses[200]
        assert answers <= rows["RELEASED"] <= rows["HELD"]
