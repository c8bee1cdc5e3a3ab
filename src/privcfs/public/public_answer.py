"""Answers that cost nothing because they follow from public data: the public guess, and a dry run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from privcfs.public.confidence import in_percent, said
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_to_dict
from privcfs.public.tabular import Row, Tabular, beside, rows_of


@final
@dataclass(frozen=True, slots=True)
class PublicAnswer(Tabular):
    """An intervention that public data suggest, with the public probability that it flips the decision.

    Attributes:
        target: The node's number.
        intervention: The suggested change.
        confidence: The probability that it flips the decision, judged from public data alone; None where nothing is
            believed.
        labels: The public names of the target and of the intervention's nodes; empty for nodes without names.
    """

    target: int
    intervention: Intervention
    confidence: float | None = None
    labels: Mapping[int, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.labels:
            object.__setattr__(self, "intervention", replace(self.intervention, names=self.labels))

    def rows(self) -> list[Row]:
        """One row for each element of the intervention, with target and confidence."""
        target = self.labels.get(self.target, str(self.target))
        return beside({"target": target, "confidence": self.confidence}, rows_of(self.intervention))

    @property
    def caption(self) -> str:
        """Where it comes from."""
        return "From public data alone, for nothing."

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "target": self.target,
            "intervention": self.intervention.to_dict(),
            "labels": labels_to_dict(self.labels),
            "confidence": said(self.confidence),
        }

    def __str__(self) -> str:
        return f"{self.intervention}{in_percent(self.confidence)}"
