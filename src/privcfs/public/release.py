"""What leaves: one drawn intervention with its price and its guarantee. Also the certificate, as JSON."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privcfs.errors import InputError
from privcfs.public.assumptions import Assumption
from privcfs.public.confidence import in_percent, read_confidence, said
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_from_dict, labels_to_dict
from privcfs.public.tabular import Row, Tabular, beside, rows_of

ADJACENCY = "any two private graphs over the same public context"
FORMAT = 1


def adjacency_of(assumptions: Collection[Assumption]) -> str:
    """Between what the guarantee holds: graphs, and whatever else the context calls secret."""
    further = {Assumption.MODEL_SECRET: "models", Assumption.FEATURES_SECRET: "feature tables"}
    secret = [f"any two secret {what}" for one, what in further.items() if one in assumptions]
    return ADJACENCY.replace("graphs", " and ".join(["graphs", *secret])) if secret else ADJACENCY


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Pure epsilon-DP of the whole released object, whichever edges differ."""

    epsilon: Fraction
    range: Fraction
    adjacency: str = ADJACENCY

    def to_dict(self) -> dict[str, str]:
        """As JSON shows it; delta is 0 because the guarantee is pure."""
        return {
            "statement": str(self),
            "epsilon": show(self.epsilon),
            "delta": "0",
            "adjacency": self.adjacency,
            "utility_range": str(self.range),
        }

    def __str__(self) -> str:
        return f"pure {show(self.epsilon)}-differential privacy of the whole release, for {self.adjacency}"


@dataclass(frozen=True, slots=True)
class Release(Tabular):
    """One paid answer with its guarantee: a function of public data and of one private draw.

    It does not say whether the intervention flips the decision, because that is private.

    Attributes:
        target: The node's number.
        intervention: What was drawn.
        epsilon: The price.
        mechanism: The name of the mechanism that drew it.
        guarantee: What is promised of the whole answer.
        context_digest: The digest of the public context and the method.
        assumptions: The names of the assumptions that the guarantee rests on.
        analyst: Who asked.
        request_id: The name of the request; asking again under it returns the same release for nothing.
        labels: The public names of the target and of the intervention's nodes. Default: empty, for nodes without names.
            Releases that differ in labels alone are equal.
        confidence: The public probability that the intervention flips the decision, given that it was drawn; None, the
            default, where nothing is believed, as by methods without a guide and by version 0.1.
        constraints: The digest of the constraints that the intervention keeps to; empty, the default, where features
            have no schema.
        accounts: What all answers of the vault together may tell about one edge, about a person and about any two
            graphs, where nodes have accounts; empty, the default, where the price counts for everyone.
    """

    target: int
    intervention: Intervention
    epsilon: Fraction
    mechanism: str
    guarantee: Guarantee
    context_digest: str
    assumptions: tuple[str, ...]
    analyst: str
    request_id: str
    labels: Mapping[int, str] = field(default_factory=dict, compare=False)
    confidence: float | None = None
    accounts: str = ""
    constraints: str = ""

    def __post_init__(self) -> None:
        if self.confidence is not None:  # Rounded as it is written, so that reading and writing agree.
            object.__setattr__(self, "confidence", float(said(self.confidence) or 0))
        if self.labels:
            object.__setattr__(self, "intervention", replace(self.intervention, names=self.labels))

    @property
    def target_name(self) -> str:
        """The target's public name, or its number."""
        return self.labels.get(self.target, str(self.target))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The target and the nodes that the intervention names, ascending."""
        return tuple(sorted({self.target, *self.intervention.nodes}))

    def rows(self) -> list[Row]:
        """One row for each element of the intervention, with target, price and confidence."""
        known = {"target": self.target_name, "epsilon": show(self.epsilon), "confidence": self.confidence}
        return beside(known, rows_of(self.intervention))

    @property
    def caption(self) -> str:
        """What is promised of the answer."""
        return str(self.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON shows it; it has `labels` exactly where nodes have names."""
        fields = {
            "format": FORMAT,
            "target": self.target,
            "intervention": self.intervention.to_dict(),
            "epsilon": show(self.epsilon),
            "mechanism": self.mechanism,
            "guarantee": self.guarantee.to_dict(),
            "context_digest": self.context_digest,
            "assumptions": list(self.assumptions),
            "analyst": self.analyst,
            "request_id": self.request_id,
        }
        believed = {} if self.confidence is None else {"confidence": said(self.confidence)}
        named = {"labels": labels_to_dict(self.labels)} if self.labels else {}
        together = {"accounts": self.accounts} if self.accounts else {}
        kept = {"constraints": self.constraints} if self.constraints else {}
        return {**fields, **believed, **named, **together, **kept}

    def to_json(self) -> str:
        """Canonical text: the same release is the same bytes."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Release":
        """Reads a certificate.

        Args:
            text: What `to_json` or `explain --json` wrote. Unknown keys are ignored.

        Returns:
            The release.

        Raises:
            InputError: The text is not a certificate, or has a format that this version cannot read.
        """
        try:
            fields = json.loads(text)
            if "kind" in fields:
                raise InputError(f"this is {fields['kind']!r}, not a release; it is for the person concerned alone.")
            if fields["format"] != FORMAT:
                raise InputError(f"release has format {fields['format']}; this version reads format {FORMAT}.")
            guarantee = fields["guarantee"]
            names = fields["analyst"], fields["request_id"]
            if not all(isinstance(name, str) and name.isprintable() for name in names):
                raise ValueError("analyst and request_id must be printable")
            return cls(
                target=int(fields["target"]),
                intervention=Intervention.from_dict(fields["intervention"]),
                epsilon=parse_epsilon(fields["epsilon"]),
                mechanism=str(fields["mechanism"]),
                guarantee=Guarantee(
                    parse_epsilon(guarantee["epsilon"]),
                    _fraction(guarantee["utility_range"]),
                    guarantee["adjacency"],
                ),
                context_digest=str(fields["context_digest"]),
                assumptions=tuple(str(item) for item in fields["assumptions"]),
                analyst=str(fields["analyst"]),
                request_id=str(fields["request_id"]),
                labels=labels_from_dict(fields.get("labels", {})),
                confidence=read_confidence(fields.get("confidence")),
                accounts=str(fields.get("accounts", "")),
                constraints=str(fields.get("constraints", "")),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise InputError(
                f"release is not a certificate of privcfs ({fault_of(error)}); give the JSON of one release."
            ) from None

    def __str__(self) -> str:
        return f"{self.target_name}: {self.intervention} (epsilon {show(self.epsilon)}){in_percent(self.confidence)}"


def _fraction(text: str) -> Fraction:
    """A short fraction such as 24/25."""
    if not re.fullmatch(r"[0-9]{1,9}(/[0-9]{1,9})?", text):
        raise ValueError("utility_range must be a short fraction")
    return Fraction(text)


def fault_of(error: Exception) -> str:
    """Why a text is no certificate, for people: what reading it raised, in words."""
    if isinstance(error, json.JSONDecodeError):
        return "it is not JSON"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}"
    if isinstance(error, TypeError | AttributeError):
        return "a field has another type"
    return str(error)
