import copy
import pickle
from typing import Any

import pytest

from privcfs.errors import SealedError
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.sealed import Sealed
from privcfs.private.utilities.gated import Gated
from privcfs.public.candidates import RULES
from tests.worlds import random_world


def sealed_values() -> list[Sealed]:
    world = random_world(0)
    outcomes = evaluate(world.graph, world.context, RULES["one-hop"].propose(world.context, 0), UNLIMITED)
    return [world.graph, outcomes, Gated().score(outcomes), UNLIMITED]


@pytest.mark.parametrize("value", sealed_values(), ids=lambda value: type(value).__name__)
def test_a_sealed_value_shows_nothing(value: Sealed) -> None:
    name = type(value).__name__
    assert repr(value) == str(value) == f"{value}" == f"{value!s:>3}" == f"<{name}: sealed>"
    for attempt in (
        lambda: value == value,
        lambda: value != value,
        lambda: hash(value),
        lambda: pickle.dumps(value),
        lambda: copy.copy(value),
        lambda: copy.deepcopy(value),
    ):
        with pytest.raises(SealedError, match=f"a {name} is private"):
            attempt()
    with pytest.raises(SealedError):
        value.__getstate__()
    readers: tuple[Any, ...] = (vars, len, list, float)
    for read in readers:
        with pytest.raises(TypeError):
            read(value)
