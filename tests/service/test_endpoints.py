"""Endpoints are documented, and the middleware knows what is said where they are declared."""

import re
from collections.abc import Iterable

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from privcfs.service.app import ROUTERS
from privcfs.service.marks import logged, marks_of, timed
from privcfs.service.state import This
from tests.service.documented import ENDPOINTS, Endpoint


def in_program(routers: Iterable[APIRouter]) -> set[Endpoint]:
    """Method and path of every endpoint; `{target:path}`, which may contain slashes, is `{target}` to a reader."""
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    return {(method, route.path.replace(":path}", "}")) for route in routes for method in route.methods or ()}


def differences(routers: Iterable[APIRouter], documented: set[Endpoint]) -> set[Endpoint]:
    return in_program(routers) ^ documented


def test_every_endpoint_is_documented_and_every_documented_one_exists() -> None:
    assert len(ENDPOINTS) > 10
    assert differences(ROUTERS, set(ENDPOINTS)) == set()


def test_the_check_sees_an_undocumented_endpoint_and_a_missing_one() -> None:
    undocumented = APIRouter()
    undocumented.get("/v1/secret/{name:path}")(lambda: None)
    assert differences((*ROUTERS, undocumented), set(ENDPOINTS)) == {("GET", "/v1/secret/{name}")}
    assert differences(ROUTERS[1:], set(ENDPOINTS)) == in_program(ROUTERS[:1])


def test_marks_are_collected_from_the_endpoints() -> None:
    marks = marks_of(route for router in ROUTERS for route in router.routes)
    assert marks.timed >= {("POST", "/v1/releases"), ("POST", "/v1/releases/batch"), ("POST", "/v1/dry-run")}
    assert marks.logged >= {("POST", "/v1/releases"), ("DELETE", "/v1/keys/{name}"), ("GET", "/v1/ledger")}
    assert ("GET", "/v1/budget") not in marks.timed | marks.logged


def test_a_timed_endpoint_with_a_parameter_in_its_path_is_refused() -> None:
    """The middleware would not recognise its requests, and they would take the places of others."""
    router = APIRouter()

    @router.post("/v1/late/{target}")
    @logged
    @timed
    def late(service: This) -> None:
        """Never called."""

    with pytest.raises(ValueError, match=re.escape("POST /v1/late/{target} is timed, but its path has a parameter")):
        marks_of(router.routes)
