"""Where chance comes from.

Zone: gate
Claim: a vault draws from the operating system's cryptographic generator and cannot be given another.
Why: `Vault` makes its own `SystemRandomness`; mechanisms take one as a parameter so that the lab can count draws.
Check: tests/lab/broken/test_seeded_generator.py::test_a_restart_never_repeats_draws_and_a_seeded_twin_does
"""

import secrets
from abc import ABC, abstractmethod
from typing import final

import numpy as np
from numpy.typing import NDArray


class Randomness(ABC):
    """Uniform bits."""

    @abstractmethod
    def integer(self, bits: int) -> int:
        """A uniform whole number below 2**bits."""

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit words."""


@final
class SystemRandomness(Randomness):
    """The operating system's generator."""

    __slots__ = ()

    def integer(self, bits: int) -> int:
        return secrets.randbits(bits)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(secrets.token_bytes(8 * count), np.uint64)
