"""Two further things that may leave a vault, each paid for: a noisy yes or no, and a node chosen in private."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp
from typing import Any

from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_from_dict, labels_to_dict
from privcfs.public.release import Guarantee


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an intervention flips the decision, by randomised response: right with probability `reliability`.

    `labels` are public names of nodes, as on a `Release`.
    """

    target: int
    intervention: Intervention
    flips: bool
    guarantee: Guarantee
    request_id: str
    labels: Mapping[int, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.labels:
            object.__setattr__(self, "intervention", replace(self.intervention, names=self.labels))

    @property
    def target_name(self) -> str:
        """The target's public name, or its number."""
        return self.labels.get(self.target, str(self.target))

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
        known = fields["flips"], _guarantee(fields), fields["request_id"]
        return cls(fields["target"], intervention, *known, labels_from_dict(fields.get("labels", {})))

    def __str__(self) -> str:
        verb = "flips" if self.flips else "does not flip"
        chance = f"right with probability {self.reliability:.3f}"
        return f"{self.target_name}: {self.intervention} {verb} the decision ({chance})"


@dataclass(frozen=True, slots=True)
class Selection:
    """One node of a public list, drawn so that close calls are likelier; `labels` has its public name."""

    target: int
    guarantee: Guarantee
    request_id: str
    labels: Mapping[int, str] = field(default_factory=dict, compare=False)

    @property
    def target_name(self) -> str:
        """The node's public name, or its number."""
        return self.labels.get(self.target, str(self.target))

    def to_json(self) -> str:
        """As a ledger keeps it."""
        return _text(self, {})

    @classmethod
    def from_json(cls, text: str) -> "Selection":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        labels = labels_from_dict(fields.get("labels", {}))
        return cls(fields["target"], _guarantee(fields), fields["request_id"], labels)

    def __str__(self) -> str:
        return self.target_name


def _text(one: Verdict | Selection, further: dict[str, Any]) -> str:
    guarantee = {"epsilon": show(one.guarantee.epsilon), "range": str(one.guarantee.range)}
    fields = {"target": one.target, "request_id": one.request_id, "adjacency": one.guarantee.adjacency}
    named = {"labels": labels_to_dict(one.labels)} if one.labels else {}
    return json.dumps({**fields, **guarantee, **further, **named}, sort_keys=True, separators=(",", ":"))


def _guarantee(fields: dict[str, Any]) -> Guarantee:
    return Guarantee(parse_epsilon(fields["epsilon"]), Fraction(fields["range"]), fields["adjacency"])
