"""An intervention in the words of a person."""

from privcfs.public.interventions import NOTHING, Intervention


def in_words(intervention: Intervention) -> list[str]:
    """One line per element, with the public names of nodes that the intervention carries."""
    return intervention.elements() or [f"{NOTHING} (this does not mean that none exists)"]
