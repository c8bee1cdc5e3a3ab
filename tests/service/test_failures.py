"""The owner sees which evaluations failed and which answers were late; an analyst sees nothing of it."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from privcfs import Method, Vault
from privcfs.service.app import ROUTERS, make_app
from privcfs.service.database import open_database
from privcfs.service.keys import Keys
from privcfs.service.log import Log
from tests.worlds import random_world

SIGNS = ("Overrun", "given_up", "privcfs_evaluations", "privcfs_answers_late")
RELEASE = {"target": 0, "epsilon": "1"}


class Asked:
    """A service in this process whose evaluations are all given up, and whose answers are all late."""

    def __init__(self, folder: Path) -> None:
        world = random_world(4)
        method = Method(evaluation_seconds=1e-9)
        ledger = f"sqlite:///{folder / 'budget.db'}"
        vault = Vault(world.graph, world.context, ledger=ledger, limit="100", method=method, answer_seconds=1e-6)
        database = open_database(f"sqlite:///{folder / 'service.db'}")
        keys = Keys(database)
        self.app: FastAPI = make_app(vault, keys, Log(database, 90))
        self.owner, self.analyst = keys.make("owner", "owner")[1], keys.make("analyst", "ann")[1]

    def ask(self, method: str, path: str, secret: str | None, body: Any = None) -> httpx.Response:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}

        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                return await client.request(method, path, headers=headers, json=body)

        return asyncio.run(answer())

    def texts(self, secret: str) -> dict[str, str]:
        """What each endpoint that can be read says to a key, and what a paid answer says."""
        found = {"release": self.ask("POST", "/v1/releases", secret, RELEASE).text}
        routes = [*(route for router in ROUTERS for route in router.routes), *self.app.router.routes]
        for route in routes:
            if isinstance(route, APIRoute) and route.include_in_schema and "GET" in (route.methods or ()):
                path = route.path.replace("{target:path}", "0").replace("{request_id:path}", "r")
                found[route.path] = self.ask("GET", f"{path}?epsilon=1", secret).text
        return found


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def sees_nothing(asked: Asked) -> None:
    texts = asked.texts(asked.analyst)
    assert "intervention" in texts["release"]
    assert "left" in texts["/v1/budget"]
    assert [path for path, text in texts.items() if any(sign in text for sign in SIGNS)] == []


def test_the_owner_sees_failures_and_no_analyst_does(asked: Asked) -> None:
    sees_nothing(asked)
    texts = asked.texts(asked.owner)
    found = asked.ask("GET", "/v1/failures", asked.owner).json()
    assert asked.ask("GET", "/v1/failures", asked.analyst).status_code == 403
    assert asked.ask("GET", "/v1/failures", None).status_code == 401
    assert (found["given_up"], found["failed"], found["late"]) == (2, 0, 2)
    assert any("Overrun" in message for message in found["latest"])
    assert "privcfs_evaluations_given_up_total 2.0" in texts["/metrics"]
    assert "privcfs_evaluations_failed_total 0.0" in texts["/metrics"]
    assert "privcfs_answers_late_total 2.0" in texts["/metrics"]


def test_the_check_rejects_an_endpoint_that_shows_failures_to_everyone(asked: Asked) -> None:
    vault = asked.app.state.service.vault
    asked.app.add_api_route("/v1/trouble", lambda: vault.failures.to_dict())
    with pytest.raises(AssertionError, match="/v1/trouble"):
        sees_nothing(asked)
