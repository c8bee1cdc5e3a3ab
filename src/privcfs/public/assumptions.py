"""What must be true outside this program for a guarantee to mean what it says; printed on each release."""

from enum import Enum


class Assumption(Enum):
    """Named so that nobody relies on one without seeing it."""

    FEATURES_PUBLIC = "Features, node set, classes and the number of nodes are public."
    TARGET_PUBLIC = "The target was chosen from public information."
    SNAPSHOT_FIXED = "The snapshot was fixed and public before, and independently of, the private edges."
    SNAPSHOT_PRIVATE = (
        "The snapshot was released with differential privacy for one edge and is in the same ledger: what is spent in "
        "all is a promise for one edge."
    )
    SKETCH_KNOWN = (
        "A sketch of the hidden pairs was released with differential privacy for one edge and is in the same ledger: "
        "what is spent in all is a promise for one edge."
    )
    SNAPSHOT_SIMULATED = (
        "SIMULATION: the snapshot was drawn from the private edges; this release protects nothing real."
    )
    BACKBONE_PUBLIC = "The model is public; if it was trained on private edges, that disclosure is accounted elsewhere."
    BACKBONE_FROM_SNAPSHOT = "The model was trained on public data and the snapshot alone."
    MODEL_KEPT = (
        "The model that decides is not published, and nothing is promised about it. It owes nothing to private edges, "
        "or its training is accounted elsewhere."
    )
    MODEL_SECRET = (
        "The model that decides is secret and protected with the graph; the public one only guides, and was made from "
        "public data, or what it owes to secrets is accounted elsewhere."
    )
    FEATURES_SECRET = (
        "The features that are evaluated are secret and protected with the graph; the public table only guides, and "
        "which features there are is public."
    )
    PREDICTION_DISCLOSED = "The person asked about knows the decision; that disclosure is not part of this guarantee."

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


def hiding(
    *, model: bool = False, features: bool = False, snapshot: bool = False, kept_model: bool = False
) -> frozenset[Assumption]:
    """The assumptions of a real vault in which more than the edges is secret.

    Args:
        model: Whether the model that decides is secret; by default False. The context's model then only guides.
        features: Whether the features that are evaluated are secret; by default False.
        snapshot: Whether the snapshot was released with differential privacy from the private edges; by default False.
        kept_model: Whether the context's model is kept unpublished without a promise about it; by default False, and
            it is public.

    Returns:
        The assumptions, for `PublicContext(..., assumptions=...)`.
    """
    shown = {
        Assumption.BACKBONE_PUBLIC: model or kept_model,
        Assumption.FEATURES_PUBLIC: features,
        Assumption.SNAPSHOT_FIXED: snapshot,
    }
    hidden = {
        Assumption.MODEL_SECRET: model,
        Assumption.MODEL_KEPT: kept_model and not model,
        Assumption.FEATURES_SECRET: features,
        Assumption.SNAPSHOT_PRIVATE: snapshot,
    }
    kept = {one for one in DEFAULT if not shown.get(one, False)}
    return frozenset(kept | {one for one, is_secret in hidden.items() if is_secret})


SIMULATED = frozenset(
    {
        Assumption.FEATURES_PUBLIC,
        Assumption.TARGET_PUBLIC,
        Assumption.SNAPSHOT_SIMULATED,
        Assumption.BACKBONE_FROM_SNAPSHOT,
    }
)
