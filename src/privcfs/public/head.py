"""A ledger's newest row, as it is kept elsewhere."""

import json
from dataclasses import dataclass
from typing import final

from privcfs.errors import InputError


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The newest row's position and digest: keep a copy elsewhere, and a rolled-back ledger is refused."""

    graph_id: str
    position: int
    digest: str

    def to_json(self) -> str:
        """As a file keeps it."""
        return json.dumps({"graph_id": self.graph_id, "position": self.position, "digest": self.digest})

    @classmethod
    def from_json(cls, text: str) -> "Head":
        """The inverse of `to_json`."""
        try:
            fields = json.loads(text)
            position = int(fields["position"])
            if position < 1:
                raise ValueError
            return cls(str(fields["graph_id"]), position, str(fields["digest"]))
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
            raise InputError(
                "head is not an exported ledger head; give the file that `privcfs budget` wrote."
            ) from None
