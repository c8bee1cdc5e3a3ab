"""What follows from a sketch is kept beside it."""

from pathlib import Path

import pytest

from privcfs import Limit
from privcfs.errors import SketchError
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.sketching import publish_sketch
from privcfs.owner.kept_sketch import recall_or_believe
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.sketches.sketch import SketchPlan
from tests.worlds import random_world


def test_what_follows_from_a_sketch_is_computed_once(tmp_path: Path) -> None:
    world, path = random_world(1, nodes=12), tmp_path / "sketch.bin"
    ledger = SqliteLedger(tmp_path / "budget.db", Limit.of("9"))
    publish_sketch(world.graph, world.context, ledger, SketchPlan.of(ledger.limit.total / 2), Worlds(), path)
    steps: list[str] = []
    first = recall_or_believe(world.context, path, steps.append)
    again = recall_or_believe(world.context, path, steps.append)
    assert len(steps) == 1, "read, not computed"
    assert first.digest == again.digest != world.context.digest
    assert first.snapshot.pairs.tolist() == again.snapshot.pairs.tolist()
    (tmp_path / "sketch.bin.beliefs" / "rest.npy").write_bytes(b"damaged")
    recall_or_believe(world.context, path, steps.append)
    assert len(steps) == 2, "computed anew"
    with pytest.raises(SketchError, match="made for another public context"):
        recall_or_believe(random_world(2, nodes=12).context, path)
