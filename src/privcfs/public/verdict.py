"""Two further things that may leave a vault, each paid for: a noisy yes or no, and a node chosen in private."""

import json
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.release import Guarantee


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an intervention flips the decision, by randomised response: right with probability `reliability`."""

    target: int
    intervention: Intervention
    flips: bool
    guarantee: Guarantee
    request_id: str

    @property
    def reliability(self) -> float:
        """How likely the answer is to be the true one: e**epsilon / (1 + e**epsilon), rounded."""
        return 1 / (1 + exp(-self.guarantee.epsilon))

    def to_json(self) -> str:
        """As a ledger keeps it."""
        return _text(self, {"intervention": self.intervention.to_dict(), "flips": self.flips})

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        intervention = Intervention.from_dict(fields["intervention"])
        return cls(fields["target"], intervention, fields["flips"], _guarantee(fields), fields["request_id"])


@dataclass(frozen=True, slots=True)
class Selection:
    """One node of a public list, drawn so that close calls are likelier."""

    target: int
    guarantee: Guarantee
    request_id: str

    def to_json(self) -> str:
        """As a ledger keeps it."""
        return _text(self, {})

    @classmethod
    def from_json(cls, text: str) -> "Selection":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        return cls(fields["target"], _guarantee(fields), fields["request_id"])


def _text(one: Verdict | Selection, further: dict[str, Any]) -> str:
    guarantee = {"epsilon": show(one.guarantee.epsilon), "range": str(one.guarantee.range)}
    fields = {"target": one.target, "request_id": one.request_id, "adjacency": one.guarantee.adjacency}
    return json.dumps({**fields, **guarantee, **further}, sort_keys=True, separators=(",", ":"))


def _guarantee(fields: dict[str, Any]) -> Guarantee:
    return Guarantee(parse_epsilon(fields["epsilon"]), Fraction(fields["range"]), fields["adjacency"])
