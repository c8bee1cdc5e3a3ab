"""What was learned about a public context, as a value and as text: for a file beside a vault, and for embedded data."""

import json
from dataclasses import dataclass
from typing import Any, final

from privcfs.public.beliefs.belief import Calibration
from privcfs.public.beliefs.hidden_degrees import Growing
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import LogLinear
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext

# Used where nothing can be tried: the doubt about margins, the probability of the snapshot as it is, and a calibration
# that takes believed log-odds down.
DEFAULT_DOUBT, DEFAULT_TRUST, DEFAULT_CALIBRATION = 0.5, 0.1, Calibration(-0.3, 0.9)
FORMAT = 1


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """Beliefs, the doubt about margins, and the calibration of confidence."""

    beliefs: Beliefs
    doubt: float = DEFAULT_DOUBT
    trust: float = DEFAULT_TRUST
    calibration: Calibration = DEFAULT_CALIBRATION

    def to_json(self, context: PublicContext, worlds: Worlds) -> str:
        """What `learned_from` reads; it names the context and the settings that it was learned for."""
        links, law = self.beliefs.links, self.beliefs.hidden_degrees
        assert isinstance(links, LogLinear)
        assert isinstance(law, Growing)
        fields = {
            "format": FORMAT,
            "context": context.digest,
            "worlds": repr(worlds),
            "links": list(links.weights),
            "hidden_degrees": [law.base, law.slope, law.shape],
            "same_class": self.beliefs.same_class,
            "doubt": self.doubt,
            "trust": self.trust,
            "calibration": [self.calibration.offset, self.calibration.slope],
        }
        return json.dumps(fields, indent=1)


def learned_from(text: str, context: PublicContext, worlds: Worlds) -> Learned | None:
    """What was learned for this context and these settings; None for anything else."""
    try:
        fields: dict[str, Any] = json.loads(text)
        named = fields["format"], fields["context"], fields["worlds"]
        if named != (FORMAT, context.digest, repr(worlds)):
            return None
        links = LogLinear(tuple(float(weight) for weight in fields["links"]))
        law = Growing(*(float(number) for number in fields["hidden_degrees"]))
        beliefs = Beliefs(links, law, float(fields["same_class"]))
        calibration = Calibration(*(float(one) for one in fields["calibration"]))
        return Learned(beliefs, float(fields["doubt"]), float(fields["trust"]), calibration)
    except (ValueError, KeyError, TypeError):
        return None
