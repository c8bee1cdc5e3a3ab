"""How the confidence in an answer is written, in numbers and in words, and how a paid yes or no changes it."""

import re

MEANING = (
    "The probability that this change flips the decision, given that it was drawn. It is computed from public data "
    "alone: on imagined graphs, and calibrated where a part of the public pairs was hidden. It is no guarantee."
)


def said(confidence: float | None) -> str | None:
    """Three digits, as JSON shows it: the text has the same length for every confidence."""
    return None if confidence is None else f"{min(max(confidence, 0.0), 1.0):.3f}"


def read_confidence(text: str | None) -> float | None:
    """The inverse of `said`."""
    if text is not None and not re.fullmatch(r"[01]\.[0-9]{3}", text):
        raise ValueError("a confidence must be a probability with three digits")
    return None if text is None else float(text)


def in_percent(confidence: float | None) -> str:
    """For people, after the words of an answer; nothing where nothing is believed."""
    return "" if confidence is None else f" (flips with probability {100 * confidence:.0f} %, by public data alone)"


def after_verdict(confidence: float, flips: bool, reliability: float) -> float:
    """The confidence after a noisy yes or no, by Bayes' rule.

    Args:
        confidence: The probability before it that the change flips the decision.
        flips: What the verdict says.
        reliability: The probability that such a verdict is right.

    Returns:
        The probability afterwards.
    """
    right, wrong = (reliability, 1 - reliability) if flips else (1 - reliability, reliability)
    return confidence * right / (confidence * right + (1 - confidence) * wrong)
