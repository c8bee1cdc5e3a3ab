"""Private values print, compare, hash, copy and pickle to nothing.

Zone: private
Claim: no accidental path (repr, format, ==, hash, pickle, copy, vars) shows the content of a sealed value.
Why: every such path is overridden here, once; sealing stops accidents, not attackers in the same process.
Check: tests/private/test_sealed.py::test_a_sealed_value_shows_nothing
"""

from typing import NoReturn

from privcfs.errors import SealedError


class Sealed:
    """Base of the private types: graph, outcomes, scores, and the allowance of an evaluation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: sealed>"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def __eq__(self, _other: object) -> bool:
        self._refuse("compared")

    def __ne__(self, _other: object) -> bool:
        self._refuse("compared")

    def __hash__(self) -> int:  # noqa: PLE0309
        self._refuse("hashed")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        self._refuse("pickled or copied")

    def __getstate__(self) -> NoReturn:
        self._refuse("pickled or copied")

    def __copy__(self) -> NoReturn:
        self._refuse("copied")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self._refuse("copied")

    def _refuse(self, verb: str) -> NoReturn:
        raise SealedError(f"a {type(self).__name__} is private and cannot be {verb}; use what the vault releases.")
