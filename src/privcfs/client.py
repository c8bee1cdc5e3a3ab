"""A small client of the service: the same words as the library, and retries that never pay twice."""

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from operator import index
from types import TracebackType
from typing import Any, Self, final
from urllib.parse import quote

from privcfs.errors import LedgerError, MissingDependency, PrivcfsError, error_named
from privcfs.public.advice import Advice
from privcfs.public.interventions import Intervention
from privcfs.public.labels import labels_from_dict
from privcfs.public.public_answer import PublicAnswer
from privcfs.public.release import Release

try:
    import httpx
except ImportError:
    raise MissingDependency("the client needs httpx: pip install 'privcfs[client]'.") from None

RETRIES = 5
PATIENCE = 0.2  # seconds before the first retry; doubled each time
TRY_AGAIN = {502, 503, 504}


@final
class Client:
    """Asks one service with one key. A request that gets no answer is sent again under the same request id."""

    def __init__(
        self, url: str, key: str, *, seconds: float = 60, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=seconds, transport=transport)

    def release(self, target: int | str, epsilon: str, *, request_id: str | None = None) -> Release:
        """One private counterfactual. A `target` that is an int is a node's number, text is its public name."""
        name = request_id or secrets.token_hex(16)
        body = {"target": _target(target), "epsilon": str(epsilon), "request_id": name}
        return _release(self._ask("POST", "/v1/releases", body, name))

    def release_all(
        self, questions: Sequence[tuple[int | str, str]], *, request_id: str | None = None
    ) -> list[Release]:
        """Several (target, epsilon), paid together or not at all."""
        name = request_id or secrets.token_hex(16)
        asked = [
            {"target": _target(target), "epsilon": str(epsilon), "request_id": f"{name}/{number}"}
            for number, (target, epsilon) in enumerate(questions)
        ]
        return [_release(one) for one in self._ask("POST", "/v1/releases/batch", {"questions": asked}, name)]

    def released(self, request_id: str) -> Release:
        """A release of yours that is paid and finished."""
        return _release(self._ask("GET", f"/v1/releases/{quote(request_id)}"))

    def confirm(self, release: Release | str, epsilon: str, *, request_id: str | None = None) -> dict[str, Any]:
        """A noisy yes or no: does a release flip the decision? Pays once; `release` may be the request id of yours."""
        name = request_id or secrets.token_hex(16)
        about = {"release": release} if isinstance(release, str) else {"certificate": release.to_dict()}
        body = {**about, "epsilon": str(epsilon), "request_id": name}
        found: dict[str, Any] = self._ask("POST", "/v1/confirmations", body, name)
        return found

    def answers(self) -> Iterator[dict[str, Any]]:
        """Everything that you have paid for, newest first."""
        before: int | None = None
        while True:
            page = self._fields("GET", "/v1/answers" + ("" if before is None else f"?before={before}"))
            yield from page["answers"]
            before = page["next"]
            if before is None:
                return

    def nodes(self, search: str) -> list[dict[str, Any]]:
        """Nodes that you may ask about, by a part of their public name or number; at most 20."""
        found: list[dict[str, Any]] = self._fields("GET", f"/v1/nodes?search={quote(search)}")["nodes"]
        return found

    def advise(
        self,
        target: int | str | None = None,
        *,
        alternatives: int | None = None,
        told: int | None = None,
        epsilon: str | None = None,
        read_others: bool | None = None,
        request_id: str | None = None,
    ) -> Advice:
        """What the person concerned may change about herself, with her own key. It is for her alone.

        Args:
            target: Her node; it may be left out, the default, where the key is bound to one.
            alternatives: How many further changes to name; by default 2 where advice is free, and none where it is
                paid. Paid changes share the price.
            told: The class that she was told; by default nothing is known of it.
            epsilon: The price of what is secret to her; by default advice costs nothing.
            read_others: Whether other people's edges are read at this price; by default they are where edges alone are
                secret.
            request_id: Names a paid request; by default a random one.

        Returns:
            The advice.

        Raises:
            NotAllowed: The key is not a person's, or is bound to other nodes, or the vault gives no advice.
        """
        name = request_id or secrets.token_hex(16)
        asked: dict[str, Any] = {"alternatives": alternatives, "told": told, "read_others": read_others}
        asked |= {} if target is None else {"target": _target(target)}
        asked |= {} if epsilon is None else {"epsilon": str(epsilon), "request_id": name}
        return Advice.from_json(json.dumps(self._ask("POST", "/v1/advice", asked, name)))

    def candidates(self, target: int | str, most: int = 20) -> dict[str, Any]:
        """The public list; free."""
        return self._fields("GET", f"/v1/candidates/{_node(target)}&most={most}")

    def quote(self, epsilon: str, target: int | str | None = None) -> dict[str, Any]:
        """What a release would cost, whether it fits and, for a target, what to expect of it; free."""
        about = "" if target is None else f"&target={quote(str(target))}"
        return self._fields("GET", f"/v1/quote?epsilon={quote(str(epsilon))}{about}")

    def dry_run(self, target: int | str, epsilon: str) -> PublicAnswer:
        """What an answer might look like, drawn on the public snapshot; free."""
        found = self._ask("POST", "/v1/dry-run", {"target": _target(target), "epsilon": str(epsilon)})
        return _public_answer(found)

    def guess(self, target: int | str) -> PublicAnswer:
        """The honest zero: the best guess from public data alone; free."""
        return _public_answer(self._ask("GET", f"/v1/guess/{_node(target)}"))

    def features(self, target: int | str) -> dict[str, Any]:
        """What a node can change about itself, and to which values; free."""
        return self._fields("GET", f"/v1/features/{_node(target)}")

    def believe(self, target: int | str, intervention: Intervention) -> dict[str, Any]:
        """What would become of a change, judged from public data alone, what it costs and what forbids it; free."""
        body = {"target": _target(target), "intervention": intervention.to_dict()}
        found: dict[str, Any] = self._ask("POST", "/v1/beliefs", body)
        return found

    def budget(self) -> dict[str, Any]:
        """What you have spent and what is left."""
        return self._fields("GET", "/v1/budget")

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _fields(self, method: str, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask(method, path)
        return found

    def _ask(self, method: str, path: str, body: Any = None, request_id: str = "") -> Any:
        """Every question is safe to repeat: paid ones carry a request id."""
        for attempt in range(RETRIES + 1):
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                reason = f"the service cannot be reached ({type(error).__name__})"
            else:
                if answer.is_success:
                    return answer.json()
                if answer.status_code not in TRY_AGAIN:
                    raise _error(answer)
                reason = f"the service is busy ({answer.status_code})"
            if attempt < RETRIES:
                time.sleep(PATIENCE * 2**attempt)
        name = f" with request id {request_id}" if request_id else ""
        raise LedgerError(f"{reason}; ask again{name}: it pays once.")


def _target(target: int | str) -> int | str:
    """A node as JSON sends it: text, or a whole number of Python's own type."""
    return target if isinstance(target, str) else index(target)


def _node(target: int | str) -> str:
    """A node as part of a path, where it is always text; a number is marked as one."""
    return f"{quote(str(target))}?by_number={'false' if isinstance(target, str) else 'true'}"


def _public_answer(fields: dict[str, Any]) -> PublicAnswer:
    """One that costs nothing, with the names of its nodes."""
    labels, confidence = labels_from_dict(fields.get("labels", {})), fields.get("confidence")
    believed = None if confidence is None else float(confidence)
    return PublicAnswer(fields["target"], Intervention.from_dict(fields["intervention"]), believed, labels)


def _release(fields: dict[str, Any]) -> Release:
    return Release.from_json(json.dumps(fields))


def _error(answer: httpx.Response) -> PrivcfsError:
    """The error that the service names."""
    try:
        fields = answer.json()
        return error_named(fields["error"])(str(fields["message"]))
    except (ValueError, KeyError, TypeError):
        return PrivcfsError(f"the service answered {answer.status_code}, not in its own words.")
