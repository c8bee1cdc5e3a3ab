"""Dependencies of endpoints: the caller's key, whether it is the owner's, and the node that is asked about."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from privcfs.errors import NotAllowed, UnknownNode
from privcfs.public.context import DIGITS
from privcfs.service.doorkeeper import no_key
from privcfs.service.keys import Key
from privcfs.service.state import Service

BEARER = HTTPBearer(auto_error=False, description="A key that the owner made")


async def _key_of(
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],  # noqa: ARG001
) -> Key:
    """The key that the middleware found. `sent` is unused; it makes OpenAPI say that a key is needed."""
    key: Key | None = getattr(request.state, "key", None)
    if key is None:
        raise no_key()
    return key


Caller = Annotated[Key, Depends(_key_of)]


async def owner_only(key: Caller) -> None:
    """Refuses every key that is not the owner's."""
    if key.role != "owner":
        raise NotAllowed("this is for the owner's key.")


async def no_person(key: Caller) -> None:
    """Refuses the keys of persons, which are for advice about their own nodes."""
    if key.role == "person":
        raise NotAllowed("a person's key is for advice about its own nodes: POST /v1/advice.")


async def person_only(key: Caller) -> None:
    """Refuses every key that is not a person's: advice is computed from her own edges, and is for her alone."""
    if key.role != "person":
        raise NotAllowed(
            "advice is for the person concerned, and not for publication: it is computed from her own connections. It "
            "needs a key that is bound to her node; with this one, ask for a release."
        )


def _node_in_path(
    target: Annotated[str, Path(min_length=1, max_length=200)], by_number: Annotated[bool, Query()] = False
) -> int | str:
    """A path is text, so it names a node by its name where nodes have names, unless the caller says otherwise."""
    if by_number and not DIGITS.fullmatch(target):
        raise UnknownNode(f"target {target[:80]!r} is not a number; leave by_number out to ask by name.")
    return int(target) if by_number else target


Node = Annotated[int | str, Depends(_node_in_path)]


def check_may_ask(service: Service, key: Key, target: int | str) -> str:
    """Raises if the node does not exist or this key may not ask about it; otherwise returns its public name."""
    context = service.vault.context
    name = context.label(context.node(target))
    key.may_ask_about(name)
    return name
