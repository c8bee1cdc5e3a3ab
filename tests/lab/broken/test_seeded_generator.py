from fractions import Fraction

import numpy as np

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.randomness import Randomness, SystemRandomness
from privcfs.gate.vault import Vault
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid
from privcfs_lab.audit.twins import SeededRandomness

SCORES = Scores(np.zeros(1000, np.int64), Grid(1, (0, 1), 1))


def after_a_restart(randomness: type[Randomness]) -> list[int]:
    fresh = randomness()
    return [mechanism.draw(SCORES, Fraction(1), fresh) for mechanism in MECHANISMS.values() for _ in range(5)]


def test_a_restart_never_repeats_draws_and_a_seeded_twin_does() -> None:
    assert after_a_restart(SystemRandomness) != after_a_restart(SystemRandomness)
    assert after_a_restart(SeededRandomness) == after_a_restart(SeededRandomness), "the check sees the twin"


def test_a_vault_cannot_be_given_a_generator() -> None:
    assert "randomness" not in Vault.__init__.__annotations__
