"""Private counterfactual explanations for graph neural networks.

The folders are the privacy boundary: `public` is known to everyone, `private` reads edges, `gate` is the only door.
What is exported here is imported when it is first used, so that `import privcfs` takes no time to speak of.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privcfs.errors import PrivcfsError as PrivcfsError
    from privcfs.gate.accounting import Limit as Limit
    from privcfs.gate.ledger import open_ledger as open_ledger
    from privcfs.gate.method import Method as Method
    from privcfs.gate.vault import Vault as Vault
    from privcfs.owner.answering_time import rehearse_time as rehearse_time
    from privcfs.owner.vault_file import open_vault as open_vault
    from privcfs.private.graph import PrivateGraph as PrivateGraph
    from privcfs.private.secrets import Secrets as Secrets
    from privcfs.public.assumptions import Assumption as Assumption
    from privcfs.public.assumptions import hiding as hiding
    from privcfs.public.context import PublicContext as PublicContext
    from privcfs.public.interventions import FeatureChange as FeatureChange
    from privcfs.public.interventions import Intervention as Intervention
    from privcfs.public.models.files import load_model as load_model
    from privcfs.public.models.files import save_model as save_model
    from privcfs.public.models.gcn import GCN as GCN
    from privcfs.public.models.torch_module import TorchModel as TorchModel
    from privcfs.public.picture import Picture as Picture
    from privcfs.public.picture import picture as picture
    from privcfs.public.release import Release as Release
    from privcfs.public.schema.schema import Schema as Schema
    from privcfs.public.sketches.knowing import with_sketch as with_sketch
    from privcfs.public.tidy import Answers as Answers
    from privcfs.public.tidy import tidy as tidy
    from privcfs.tables.named_columns import Links as Links
    from privcfs.tables.named_columns import Table as Table

__version__ = "0.2.0"

# Where each exported name is defined.
_HOMES = {
    "GCN": "public.models.gcn",
    "Answers": "public.tidy",
    "Assumption": "public.assumptions",
    "FeatureChange": "public.interventions",
    "Intervention": "public.interventions",
    "Limit": "gate.accounting",
    "Links": "tables.named_columns",
    "Method": "gate.method",
    "Picture": "public.picture",
    "PrivateGraph": "private.graph",
    "PrivcfsError": "errors",
    "PublicContext": "public.context",
    "Release": "public.release",
    "Schema": "public.schema.schema",
    "Secrets": "private.secrets",
    "Table": "tables.named_columns",
    "TorchModel": "public.models.torch_module",
    "Vault": "gate.vault",
    "hiding": "public.assumptions",
    "load_model": "public.models.files",
    "open_ledger": "gate.ledger",
    "open_vault": "owner.vault_file",
    "picture": "public.picture",
    "rehearse_time": "owner.answering_time",
    "save_model": "public.models.files",
    "tidy": "public.tidy",
    "with_sketch": "public.sketches.knowing",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Imports what is exported when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'privcfs' has no attribute {name!r}")
    return getattr(import_module(f"privcfs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Exported names too, for completion."""
    return sorted({*globals(), *_HOMES})
