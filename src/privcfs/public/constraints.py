"""What every answer of a vault keeps to: which pairs, features and values it may name, and what it may cost."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.costs import Costs
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal
from privcfs.public.interventions import Intervention
from privcfs.public.schema.of_node import encoded_changes, present_levels


@final
@dataclass(frozen=True, slots=True)
class Constraints:
    """The owner's public constraints: one object, whose digest stands on the certificates of a vault with a schema.

    Attributes:
        context: The public context; its schema says what of features may change.
        allowed: Which nodes and features may be named, and who may be joined to a target. Default: all.
        costs: What operations cost, and the most that an answer may cost. Default: 1 each, without a limit.
        desired: The classes that a valid answer leads to. Default: any other than the present one.
    """

    context: PublicContext
    allowed: Actionability = Actionability()
    costs: Costs = Costs()
    desired: Goal = None

    @property
    def digest(self) -> str:
        """SHA-256 of everything that they say."""
        text = json.dumps(["privcfs constraints 1", self.to_dict()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        allowed, costs = self.allowed, self.costs
        return {
            "schema": None if self.context.schema is None else self.context.schema.digest,
            "immutable_nodes": sorted(allowed.immutable_nodes),
            "immutable_features": sorted(allowed.immutable_features),
            "partners": None if allowed.partners is None else sorted(allowed.partners),
            "costs": {"delete": costs.delete, "add": costs.add, "mask": costs.mask, "most": costs.most},
            "desired": list(self.desired) if isinstance(self.desired, tuple) else self.desired,
        }

    def cost(self, target: int, intervention: Intervention) -> int:
        """What an intervention costs, in the owner's currency."""
        changes = encoded_changes(self.context, target, intervention.change)
        counts = (len(intervention.delete), self.costs.delete), (len(intervention.add), self.costs.add)
        plain = sum(number * each for number, each in (*counts, (len(intervention.mask), self.costs.mask)))
        return plain + sum(one.cost for one in changes)

    def faults(self, target: int, intervention: Intervention) -> list[str]:
        """What of an intervention about a target is not allowed, in words; nothing where a person can carry it out."""
        found = self._faults_of_pairs(target, intervention)
        schema, barred = self.context.schema, self.allowed.immutable_features
        if schema is not None:
            found += [f"feature {column} is masked, and the schema knows no masks" for column in intervention.mask]
        found += [f"feature {column} has to stay" for column in intervention.mask if column in barred]
        for one in encoded_changes(self.context, target, intervention.change):
            if barred & set(one.columns):
                found.append(f"{one.change.feature} has to stay")
        if schema is not None and intervention.change:
            found += schema.faults(intervention.change, present_levels(self.context, target))
        if self.costs.most is not None and (cost := self.cost(target, intervention)) > self.costs.most:
            found.append(f"it costs {cost}, and at most {self.costs.most} is allowed")
        return found

    def _faults_of_pairs(self, target: int, intervention: Intervention) -> list[str]:
        allowed, named = self.allowed, (*intervention.delete, *intervention.add)
        found = [f"pair {one} has to stay" for one in named if allowed.immutable_nodes & set(one)]
        if allowed.partners is not None:
            own = [one for one in intervention.add if target in one]
            found += [f"pair {one} may not be added" for one in own if sum(one) - target not in allowed.partners]
        return found
