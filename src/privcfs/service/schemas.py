"""What requests and refusals look like as JSON. FastAPI checks requests against these models and documents them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from privcfs.gate.questions.advice import MOST_ALTERNATIVES
from privcfs.public.interventions import FeatureChange, Intervention

LONGEST_BATCH = 100
# The status codes that any endpoint may answer with; OpenAPI shows these descriptions.
PROBLEMS = {
    400: "The request cannot be read",
    401: "No valid key",
    402: "Beyond the budget",
    403: "Not with this key",
    404: "No such node, release or page",
    405: "Not this method",
    408: "The request did not come in time",
    409: "A request id was used before with other parameters",
    413: "Too large",
    422: "Not understood, or not possible",
    429: "Too fast",
    431: "The head is too large",
    503: "Busy, or the ledger does not answer: ask again with the same request id",
}
Text = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[int, Field(strict=True, ge=0, lt=10**18)]
MOST_ACTS = 100
Pair = tuple[Number, Number]
RequestId = Annotated[str, Field(min_length=1, max_length=100)]


def _decimal(value: object) -> object:
    """A JSON number as its decimal text, so that a price stays exact; other values are left to the checks that follow.

    JSON gives a number with a fraction as a float, whose shortest text is what was written as long as that has fifteen
    digits at most. A text with more than nine places is refused, in words, where prices are parsed.
    """
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Price = Annotated[Text, BeforeValidator(_decimal, json_schema_input_type=str | int | float)]


class Question(BaseModel):
    """One release to pay for. A target that is a number is a node's number; text is a name where nodes have names."""

    model_config = ConfigDict(extra="forbid")

    target: Text | Number
    epsilon: Price
    request_id: RequestId | None = None


class Batch(BaseModel):
    """Several releases, paid together or not at all."""

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[list[Question], Field(min_length=1, max_length=LONGEST_BATCH)]


class ChangedFeature(BaseModel):
    """A feature that is set to another value of the schema; `from` and `unit` may be left out."""

    model_config = ConfigDict(extra="forbid")

    feature: Text
    to: Price
    before: Annotated[str, Field(max_length=200, alias="from")] = ""
    unit: Annotated[str, Field(max_length=200)] = ""


class Acts(BaseModel):
    """A change as certificates have it; kinds that do not occur may be left out."""

    model_config = ConfigDict(extra="forbid")

    delete: Annotated[list[Pair], Field(max_length=MOST_ACTS)] = []
    add: Annotated[list[Pair], Field(max_length=MOST_ACTS)] = []
    mask: Annotated[list[Number], Field(max_length=MOST_ACTS)] = []
    change: Annotated[list[ChangedFeature], Field(max_length=MOST_ACTS)] = []

    def intervention(self) -> Intervention:
        """The same as a value."""
        changes = tuple(FeatureChange(one.feature, one.to) for one in self.change)
        return Intervention(tuple(self.delete), tuple(self.add), tuple(self.mask), change=changes)


class Imagined(BaseModel):
    """A change that somebody has in mind. `target` may be left out where the key is bound to one node."""

    model_config = ConfigDict(extra="forbid")

    target: Text | Number | None = None
    intervention: Acts


class Confirmation(BaseModel):
    """Whether a change flips the decision: a noisy yes or no at a price.

    The change is that of a release of yours (`release`, its request id), that of a `certificate`, or any
    `intervention` about a `target`: exactly one of the three.
    """

    model_config = ConfigDict(extra="forbid")

    release: RequestId | None = None
    certificate: dict[str, Any] | None = None
    target: Text | Number | None = None
    intervention: Acts | None = None
    epsilon: Price
    request_id: RequestId | None = None


class AdviceAsked(BaseModel):
    """What a person wants to know about herself.

    `target` may be left out where the key is bound to one node. `told` is the class that she was told. With `epsilon`
    something that is secret to her is read at that price, and alternatives, which are then 0 by default, share it:
    other people's edges, unless `read_others` is false; a secret model or secret features.
    """

    model_config = ConfigDict(extra="forbid")

    target: Text | Number | None = None
    alternatives: Annotated[int, Field(strict=True, ge=0, le=MOST_ALTERNATIVES)] | None = None
    told: Number | None = None
    epsilon: Price | None = None
    read_others: Annotated[bool, Field(strict=True)] | None = None
    request_id: RequestId | None = None


class NewKey(BaseModel):
    """What a new key may do. A person's key is bound to at least one node, her own."""

    model_config = ConfigDict(extra="forbid")

    analyst: Text
    role: Literal["analyst", "person"] = "analyst"
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    cap: Price | None = None
    targets: Annotated[list[Text | Number], Field(min_length=1, max_length=10_000)] | None = None
    per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Problem(BaseModel):
    """What went wrong, in words."""

    error: str
    message: str
