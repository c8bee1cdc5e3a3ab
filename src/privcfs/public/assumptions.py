"""What must be true outside this program for a guarantee to mean what it says; printed on each release."""

from enum import Enum


class Assumption(Enum):
    """Named so that nobody relies on one without seeing it."""

    FEATURES_PUBLIC = "Features, node set, classes and the number of nodes are public."
    TARGET_PUBLIC = "The target was chosen from public information."
    SNAPSHOT_FIXED = "The snapshot was fixed and public before, and independently of, the private edges."
    SNAPSHOT_SIMULATED = (
        "SIMULATION: the snapshot was drawn from the private edges; this release protects nothing real."
    )
    BACKBONE_PUBLIC = "The model is public; if it was trained on private edges, that disclosure is accounted elsewhere."
    BACKBONE_FROM_SNAPSHOT = "The model was trained on public data and the snapshot alone."

    def __str__(self) -> str:
        return self.value


DEFAULT = frozenset(
    {
        Assumption.FEATURES_PUBLIC,
        Assumption.TARGET_PUBLIC,
        Assumption.SNAPSHOT_FIXED,
        Assumption.BACKBONE_PUBLIC,
    }
)

SIMULATED = frozenset(
    {
        Assumption.FEATURES_PUBLIC,
        Assumption.TARGET_PUBLIC,
        Assumption.SNAPSHOT_SIMULATED,
        Assumption.BACKBONE_FROM_SNAPSHOT,
    }
)
