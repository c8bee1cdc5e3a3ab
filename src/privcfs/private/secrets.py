"""A secret model, secret features, or both: what decides in the place of the public context's.

Zone: private
Claim: sealed; only evaluators read it, and no digest contains it.
Why: a release depends on it through sealed outcomes alone, and the range of scores depends on neither model nor
    features; candidates, order and base measure come from the public context, which is another object.
Check: tests/gate/test_secret_model.py::test_no_digest_and_no_candidate_depends_on_what_is_secret
"""

from pathlib import Path
from typing import final

import scipy.sparse as sp
from numpy.typing import ArrayLike

from privcfs.errors import ContextError, SettingsError
from privcfs.private.sealed import Sealed
from privcfs.public.backbones.backbone import Backbone
from privcfs.public.context import FeatureRows, PublicContext
from privcfs.tables.features import TableNames, read_features


@final
class Secrets(FeatureRows, Sealed):
    """The owner's own model and feature table; what is left out is the public context's."""

    __slots__ = ("backbone", "features", "inputs")

    def __init__(
        self,
        context: PublicContext,
        *,
        model: Backbone | None = None,
        features: str | Path | ArrayLike | sp.sparray | sp.spmatrix | None = None,
    ) -> None:
        """They must answer the question that the public context asks."""
        self.backbone = context.backbone if model is None else model
        names = TableNames(nodes=context.node_ids or ())
        self.features = context.features if features is None else read_features(features, ContextError, names)
        shape, expected = (
            (*one.features.shape, one.backbone.number_of_features, one.backbone.number_of_classes)
            for one in (self, context)
        )
        if shape != expected:
            raise SettingsError(
                f"secret nodes, columns, features and classes are {shape}, the public ones {expected}; match them."
            )

        self.inputs = self.backbone.inputs(self.features)
