"""What requests and refusals look like as JSON. FastAPI checks requests against these models and documents them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LONGEST_BATCH = 100
# The status codes that any endpoint may answer with; OpenAPI shows these descriptions.
PROBLEMS = {
    400: "The request cannot be read",
    401: "No valid key",
    403: "Not with this key",
    404: "No such node, release or page",
    405: "Not this method",
    408: "The request did not come in time",
    409: "A request id was used before with other parameters",
    413: "Too large",
    422: "Not understood, or not possible",
    429: "Beyond the budget, or too fast",
    431: "The head is too large",
    503: "Busy, or the ledger does not answer: ask again with the same request id",
}
Text = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[int, Field(strict=True, ge=0, lt=10**18)]


class Question(BaseModel):
    """One release to pay for. A target that is a number is a node's number; text is a name where nodes have names."""

    model_config = ConfigDict(extra="forbid")

    target: Text | Number
    epsilon: Text
    request_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class Batch(BaseModel):
    """Several releases, paid together or not at all."""

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[list[Question], Field(min_length=1, max_length=LONGEST_BATCH)]


class NewKey(BaseModel):
    """What a new key may do."""

    model_config = ConfigDict(extra="forbid")

    analyst: Text
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    cap: Text | None = None
    targets: Annotated[list[Text], Field(max_length=10_000)] | None = None
    per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Problem(BaseModel):
    """What went wrong, in words."""

    error: str
    message: str
