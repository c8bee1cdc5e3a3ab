"""An intervention in the words of a person, with public names of nodes where there are any."""

from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention


def in_words(intervention: Intervention, context: PublicContext) -> list[str]:
    """One line per element."""
    lines = [f"delete the pair {context.label(u)} - {context.label(w)}" for u, w in intervention.delete]
    lines += [f"add the pair {context.label(u)} - {context.label(w)}" for u, w in intervention.add]
    lines += [f"mask feature {feature}" for feature in intervention.mask]
    return lines or ["no intervention (this does not mean that none exists)"]
