"""An intervention, and how likely something is, in the words of a person."""

from privcfs.public.interventions import NOTHING, FeatureChange, Intervention, Pair


def in_words(intervention: Intervention) -> list[str]:
    """One line per element, with the public names of nodes that the intervention carries."""
    return intervention.elements() or [f"{NOTHING} (this does not mean that none exists)"]


def to_person(intervention: Intervention, target: int) -> list[str]:
    """One line per element, said to the person of the target: what she would do, or what would happen around her."""
    lines = [_about_pair(intervention, pair, target, "end") for pair in intervention.delete]
    lines += [_about_pair(intervention, pair, target, "make") for pair in intervention.add]
    lines += [f"leave out feature {feature}" for feature in intervention.mask]
    lines += [_about_change(one) for one in intervention.change]
    return lines or ["no change is known that would help"]


def _about_change(change: FeatureChange) -> str:
    """A feature that is set to another value."""
    unit = f" {change.unit}" if change.unit else ""
    before = f" from {change.before}" if change.before else ""
    return f"change {change.feature}{before} to {change.value}{unit}"


def _about_pair(intervention: Intervention, pair: Pair, target: int, verb: str) -> str:
    """A pair that ends, or is made."""
    names = [str(intervention.names.get(node, node)) for node in pair]
    if target not in pair:
        return f"the connection between {names[0]} and {names[1]} {'ends' if verb == 'end' else 'is made'}"
    other = names[1] if pair[0] == target else names[0]
    return f"end your connection with {other}" if verb == "end" else f"connect with {other}"


def share_in_words(probability: float) -> str:
    """A probability in whole percent; neither 0 nor 100 for what is not certain."""
    share = 100 * probability
    if share >= 99.5:
        return "more than 99 %"
    return "less than 1 %" if share < 0.5 else f"{share:.0f} %"
