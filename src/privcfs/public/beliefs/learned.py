"""What was learned about a public context, as a value and as text: for a file beside a vault, and for embedded data."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.belief import Calibration
from privcfs.public.beliefs.hidden_degrees import LARGEST, Growing, Thinned
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import EVIDENCE, LogLinear
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext

# Used where nothing can be tried: the doubt about margins, the probability of the snapshot as it is, and a calibration
# that takes believed log-odds down.
DEFAULT_DOUBT, DEFAULT_TRUST, DEFAULT_CALIBRATION = 0.4, 0.02, Calibration(-0.3, 0.9)
FORMAT = 2
# A doubt is at most this large, in logits.
MOST_DOUBT = 10


@final
@dataclass(frozen=True, slots=True)
class Tuned:
    """Doubt about margins, trust in the snapshot, and calibration; as for `Belief`.

    The logits of each imagined graph are drawn towards those of the snapshot by the share `blend`.
    """

    doubt: float
    trust: float
    blend: float
    calibration: Calibration = DEFAULT_CALIBRATION


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """Beliefs, the doubt about margins, and the calibration of confidence.

    Attributes:
        beliefs: What is believed of hidden pairs.
        doubt: How far a margin on an imagined graph may be off.
        trust: The probability of the snapshot as it is.
        calibration: What takes believed log-odds to said ones.
        guessed: With a sketch, the share of free guesses that were right in trials with a sketch of public data.
        blend: How far the logits of imagined graphs are drawn towards those of the snapshot; not at all, the default,
            without a schema of features.
        own: With a schema of features, the numbers for readers of own pairs.
    """

    beliefs: Beliefs
    doubt: float = DEFAULT_DOUBT
    trust: float = DEFAULT_TRUST
    calibration: Calibration = DEFAULT_CALIBRATION
    guessed: float | None = None
    blend: float = 0.0
    own: Tuned | None = None

    @property
    def knowing_own(self) -> "Learned":
        """The same with the numbers for readers of own pairs."""
        if self.own is None:
            return self
        own = self.own
        return replace(self, doubt=own.doubt, trust=own.trust, calibration=own.calibration, blend=own.blend, own=None)

    def to_json(self, context: PublicContext, worlds: Worlds) -> str:
        """What `learned_from` reads; it names the context and the settings that it was learned for."""
        links, law = self.beliefs.links, self.beliefs.hidden_degrees
        assert isinstance(links, LogLinear)
        growing = law.otherwise if isinstance(law, Thinned) else law
        assert isinstance(growing, Growing)
        fields = {
            "format": FORMAT,
            "context": context.digest,
            "worlds": repr(worlds),
            "links": list(links.weights),
            "hidden_degrees": [growing.base, growing.slope, growing.shape],
            "degrees": list(law.degrees) if isinstance(law, Thinned) else [],
            "shown": law.shown if isinstance(law, Thinned) else 0.0,
            "same_class": self.beliefs.same_class,
            "doubt": self.doubt,
            "trust": self.trust,
            "calibration": [self.calibration.offset, self.calibration.slope],
        }
        fields |= {} if self.guessed is None else {"guessed": self.guessed}
        if self.own is not None:
            one = self.own
            own = [one.doubt, one.trust, one.blend, one.calibration.offset, one.calibration.slope]
            fields |= {"blend": self.blend, "own": own, "closure": self.beliefs.closure}
        return json.dumps(fields, indent=1)


def learned_from(text: str, context: PublicContext, worlds: Worlds) -> Learned | None:
    """What was learned for this context and these settings; None for anything else, and if a number cannot be right."""
    try:
        fields: dict[str, Any] = json.loads(text)
        named = fields["format"], fields["context"], fields["worlds"]
        if named != (FORMAT, context.digest, repr(worlds)):
            return None
        growing = Growing(*_finite(fields["hidden_degrees"]))
        degrees = _finite(fields["degrees"])
        shown, same_class, doubt, trust = _finite(fields[name] for name in ("shown", "same_class", "doubt", "trust"))
        law = Thinned(degrees, shown, growing) if degrees else growing
        beliefs = Beliefs(LogLinear(_finite(fields["links"])), law, same_class)
        offset, slope = _finite(fields["calibration"])
        guessed = _finite([fields["guessed"]])[0] if "guessed" in fields else None
        found = Learned(beliefs, doubt, trust, Calibration(offset, slope), guessed)
        if "own" in fields:
            doubt, trust, drawn, first, second = _finite(fields["own"])
            blend, closure = _finite([fields["blend"], fields["closure"]])
            found = replace(
                found,
                beliefs=replace(beliefs, closure=closure),
                blend=blend,
                own=Tuned(doubt, trust, drawn, Calibration(first, second)),
            )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return found if _is_possible(found, growing) else None


def drawn_together(logits: NDArray[np.float32], blend: float) -> NDArray[np.float32]:
    """Logits (candidates, classes, graphs), moved on each graph so that those of the first candidate, no change, are
    drawn towards those on the first graph, the snapshot; what a change moves them by stays as it is on each graph.
    """
    drawn: NDArray[np.float32] = logits + np.float32(blend) * (logits[:1, :, :1] - logits[:1])
    return drawn


def _finite(numbers: Iterable[Any]) -> tuple[float, ...]:
    """The numbers; an error if one of them is not a number, or not finite."""
    found = tuple(float(one) for one in numbers)
    if not all(math.isfinite(one) for one in found):
        raise ValueError("a number is not finite")
    return found


def _is_possible(found: Learned, growing: Growing) -> bool:
    """Whether everything could have been learned: probabilities, scales and shapes lie where such numbers lie."""
    law, links = found.beliefs.hidden_degrees, found.beliefs.links
    assert isinstance(links, LogLinear)
    possible = [
        0 < found.doubt <= MOST_DOUBT,
        0 <= found.trust <= 1,
        found.calibration.slope > 0,
        0 <= found.beliefs.same_class <= 1,
        found.guessed is None or 0 <= found.guessed <= 1,
        len(links.weights) == EVIDENCE,
        growing.slope >= 0,
        growing.shape > 0,
    ]
    if found.own is not None:
        own = found.own
        possible += [0 < own.doubt <= MOST_DOUBT, 0 <= own.trust <= 1, 0 <= own.blend <= 1, own.calibration.slope > 0]
        possible += [0 <= found.blend <= 1, 0 <= found.beliefs.closure <= 1]
    if isinstance(law, Thinned):
        possible += [0 <= law.shown < 1, min(law.degrees) >= 0, len(law.degrees) == LARGEST + 1]
    return all(possible)
