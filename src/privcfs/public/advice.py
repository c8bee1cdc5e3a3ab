"""Advice: the answer to the person concerned, who knows her own edges. It is hers, and not for publication.

A release is for anyone; advice is computed from public data and all edges of one node, and goes to that node's person
alone. It tells her nothing about an edge that is not hers. It may tell others about her edges.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, final

from privcfs.errors import InputError
from privcfs.public.assumptions import Assumption
from privcfs.public.believed import likely
from privcfs.public.confidence import read_confidence, said
from privcfs.public.epsilon import parse_decimal, show
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_from_dict, labels_to_dict
from privcfs.public.release import fault_of
from privcfs.public.tabular import Row, Tabular, beside, rows_of

KIND, FORMAT = "advice", 1
NOT_FOR_PUBLICATION = (
    "This is for you alone. It was computed from public data and from your own connections, so whoever reads it may "
    "learn about these."
)
OWN_ALONE = (
    "It is the same whatever connections other people have with each other, so it tells nothing about any connection "
    "that is not yours."
)
OTHERS_AT_A_PRICE = (
    "Other people's connections were read at a price of epsilon {epsilon}: for any two graphs in which you have the "
    "same connections, its probabilities differ by a factor of at most e^{epsilon}."
)
SECRETS_AT_A_PRICE = (
    "It is drawn by the same probabilities whatever connections other people have with each other, if the model and "
    "the features stay the same. What is secret of these was read at a price of epsilon {epsilon}: whatever it is, the "
    "probabilities differ by a factor of at most e^{epsilon}."
)
KNOWS_HER_OWN = (
    "You know all of your own connections: the owner says so of everyone. Otherwise this could tell you of some that "
    "you do not know."
)
KNOWS_THESE = (
    "Of your own connections, those were read that the people at both ends know; the owner says which these are. All "
    "other connections of yours count as other people's, and were not read. Where these matter, the probability is "
    "less reliable than it looks."
)
TOLD_USED = "You said that you were told class {told}. Imagined graphs on which the model decides so count most here."
TOLD_UNUSED = (
    "You said that you were told class {told}, but the model decides so on hardly any imagined graph. So this could "
    "not be used, and the probabilities are less reliable than they look."
)
CONFIDENCE = (
    "The probability that the change flips the decision: the share of imagined graphs that contain your connections "
    "on which it does, calibrated on public data. It is no guarantee."
)


@final
class Change(NamedTuple):
    """A change and the probability that it flips the decision, given the person's own edges and public data."""

    intervention: Intervention
    confidence: float


@final
@dataclass(frozen=True, slots=True)
class Advice(Tabular):
    """What a person may change about herself to flip the decision about her, best first.

    Attributes:
        target: The node's number.
        changes: The best change, then alternatives that share no element with those before them.
        believed: For each class that is likely, the probability that it is the present decision, judged from public
            data and the person's own edges; the true decision is not read.
        context_digest: The digest of the public context and the method.
        assumptions: The names of the assumptions that the promise rests on.
        epsilon: At which price something that is secret to her was read: other people's edges, a secret model, secret
            features. Default: 0, nothing was.
        told: The decision that the person said she was told, as a class; None, the default, if she said nothing.
        analyst: Who paid; empty, the default, where nothing was paid.
        request_id: The name of a paid request; empty, the default, where nothing was paid.
        own_edges_alone: Whether the price was for a secret model or secret features alone, so that no other people's
            edges were read. Default: False.
        of_known_edges: Whether it was computed from those of the person's own edges that the owner says people know.
            Default: False, from all of them.
        labels: The public names of the target and of the nodes that the changes name. Default: empty, for nodes without
            names.
        constraints: The digest of the constraints that the changes keep to; empty, the default, where features have no
            schema.
    """

    target: int
    changes: tuple[Change, ...]
    believed: Mapping[int, float]
    context_digest: str
    assumptions: tuple[str, ...]
    epsilon: Fraction = Fraction(0)
    told: int | None = None
    analyst: str = ""
    request_id: str = ""
    own_edges_alone: bool = False
    of_known_edges: bool = False
    labels: Mapping[int, str] = field(default_factory=dict, compare=False)
    constraints: str = ""

    def __post_init__(self) -> None:
        named = tuple(
            Change(
                replace(one.intervention, names=self.labels) if self.labels else one.intervention,
                float(said(one.confidence) or 0),
            )
            for one in self.changes
        )
        object.__setattr__(self, "changes", named)
        rounded = {label: float(said(chance) or 0) for label, chance in self.believed.items()}
        object.__setattr__(self, "believed", likely(rounded))

    @property
    def intervention(self) -> Intervention:
        """The best change."""
        return self.changes[0].intervention

    @property
    def confidence(self) -> float:
        """The probability that the best change flips the decision."""
        return self.changes[0].confidence

    @property
    def target_name(self) -> str:
        """The target's public name, or its number."""
        return self.labels.get(self.target, str(self.target))

    @property
    def promise(self) -> str:
        """What it tells about other people's edges, and to whom it may be shown."""
        if not self.epsilon:
            return f"{NOT_FOR_PUBLICATION} {OWN_ALONE}"
        priced = SECRETS_AT_A_PRICE if self.own_edges_alone else OTHERS_AT_A_PRICE
        return f"{NOT_FOR_PUBLICATION} {priced.format(epsilon=show(self.epsilon))}"

    @property
    def premises(self) -> tuple[str, ...]:
        """What must be true for the promise to hold, in sentences."""
        named = [Assumption[name] for name in self.assumptions if name in Assumption.__members__]
        return (KNOWS_THESE if self.of_known_edges else KNOWS_HER_OWN, *(str(one) for one in named))

    @property
    def about_told(self) -> str:
        """What became of the decision that the person said she was told; empty if she said nothing."""
        if self.told is None:
            return ""
        return (TOLD_USED if self.told in self.believed else TOLD_UNUSED).format(told=self.told)

    def rows(self) -> list[Row]:
        """One row for each element of each change; alternatives are numbered from 1, the best one."""
        found: list[Row] = []
        for number, one in enumerate(self.changes, 1):
            known: Row = {"target": self.target_name, "alternative": number, "confidence": one.confidence}
            found += beside(known, rows_of(one.intervention))
        return found

    @property
    def caption(self) -> str:
        """To whom it may be shown."""
        return self.promise

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON shows it; its kind is that of advice, so that nobody takes it for a release."""
        return {
            "format": FORMAT,
            "kind": KIND,
            "target": self.target,
            "changes": [
                {"intervention": one.intervention.to_dict(), "confidence": said(one.confidence)} for one in self.changes
            ],
            "believed": {str(label): said(chance) for label, chance in self.believed.items()},
            "promise": self.promise,
            "premises": list(self.premises),
            "epsilon": show(self.epsilon),
            "context_digest": self.context_digest,
            "assumptions": list(self.assumptions),
            "told": self.told,
            "analyst": self.analyst,
            "request_id": self.request_id,
            **({"own_edges_alone": True} if self.own_edges_alone else {}),
            **({"of_known_edges": True} if self.of_known_edges else {}),
            **({"labels": labels_to_dict(self.labels)} if self.labels else {}),
            **({"constraints": self.constraints} if self.constraints else {}),
        }

    def to_json(self) -> str:
        """Canonical text: the same advice is the same bytes."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Advice":
        """Reads a certificate of advice.

        Args:
            text: What `to_json` or `privcfs advise --json` wrote. Unknown keys are ignored.

        Returns:
            The advice.

        Raises:
            InputError: The text is not advice, or has a format that this version cannot read.
        """
        try:
            fields = json.loads(text)
            if (fields["kind"], fields["format"]) != (KIND, FORMAT):
                raise ValueError(f"kind {fields['kind']!r}, format {fields['format']!r}")
            return cls(
                target=int(fields["target"]),
                changes=tuple(
                    Change(Intervention.from_dict(one["intervention"]), read_confidence(one["confidence"]) or 0.0)
                    for one in fields["changes"]
                ),
                believed={int(label): read_confidence(chance) or 0.0 for label, chance in fields["believed"].items()},
                context_digest=str(fields["context_digest"]),
                assumptions=tuple(str(item) for item in fields["assumptions"]),
                epsilon=parse_decimal(fields["epsilon"], "epsilon"),
                told=None if fields["told"] is None else int(fields["told"]),
                analyst=str(fields["analyst"]),
                request_id=str(fields["request_id"]),
                own_edges_alone=fields.get("own_edges_alone") is True,
                of_known_edges=fields.get("of_known_edges") is True,
                labels=labels_from_dict(fields.get("labels", {})),
                constraints=str(fields.get("constraints", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InputError(
                f"this is not advice of privcfs ({fault_of(error)}); give the JSON of one answer."
            ) from None

    def __str__(self) -> str:
        best = self.changes[0]
        return f"{self.target_name}: {best.intervention} (flips with probability {100 * best.confidence:.0f} %)"


def is_advice(text: str) -> bool:
    """Whether a text is advice rather than a release."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and fields.get("kind") == KIND
