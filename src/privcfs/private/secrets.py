"""A secret model, secret features, or both: what decides in the place of the public context's.

Zone: private
Claim: sealed; only evaluators read it, and no digest contains it.
Why: a release depends on it through sealed outcomes alone, and the range of scores depends on neither model nor
    features; candidates, order and base measure come from the public context, which is another object.
Check: tests/gate/test_secret_model.py::test_no_digest_and_no_candidate_depends_on_what_is_secret
"""

from copy import copy
from pathlib import Path
from typing import final

import scipy.sparse as sp
from numpy.typing import ArrayLike

from privcfs.errors import ContextError, SettingsError
from privcfs.private.sealed import Sealed
from privcfs.public.context import FeatureRows, PublicContext
from privcfs.public.models.model import Model
from privcfs.tables.features import TableNames, read_features


@final
class Secrets(FeatureRows, Sealed):
    """A secret model, secret features, or both, which decide in the place of the public context's.

    Args:
        context: The public context of the vault.
        model: The secret model that decides. By default None: the public model decides.
        features: The secret feature table, as a file, an array or a sparse matrix. By default None: the public table.

    Raises:
        SettingsError: Secret and public nodes, columns, features or classes differ in number.
    """

    __slots__ = ("_deciding", "features", "inputs", "model")

    def __init__(
        self,
        context: PublicContext,
        *,
        model: Model | None = None,
        features: str | Path | ArrayLike | sp.sparray | sp.spmatrix | None = None,
    ) -> None:
        self.model = context.model if model is None else model
        names = TableNames(nodes=context.node_ids or ())
        self.features = context.features if features is None else read_features(features, ContextError, names)
        shape, expected = (
            (*one.features.shape, one.model.number_of_features, one.model.number_of_classes) for one in (self, context)
        )
        if shape != expected:
            raise SettingsError(
                f"secret nodes, columns, features and classes are {shape}, the public ones {expected}; match them."
            )

        self.inputs = self.model.inputs(self.features)
        self._deciding: tuple[PublicContext, PublicContext] | None = None

    def deciding(self, context: PublicContext) -> PublicContext:
        """A context like the public one in which what is secret decides, for graphs imagined around own edges.

        It is kept here, together with what is computed from it.

        Args:
            context: The public context.

        Returns:
            A context with the digest, and so the seed, of the public one.
        """
        kept = self._deciding
        if kept is None or kept[0] is not context:
            secret = copy(context)
            secret.features, secret.model, secret.inputs = self.features, self.model, self.inputs
            secret.caches, secret.learned = {}, {}
            kept = self._deciding = context, secret
        return kept[1]
