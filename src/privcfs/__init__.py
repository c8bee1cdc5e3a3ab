"""Private counterfactual explanations for graph neural networks.

The folders are the privacy boundary: `public` is known to everyone, `private` reads edges, `gate` is the only door.
"""

from privcfs.errors import PrivcfsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.owner.answering_time import rehearse_time
from privcfs.owner.vault_file import open_vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.public.assumptions import Assumption, hiding
from privcfs.public.context import PublicContext
from privcfs.public.interventions import FeatureChange, Intervention
from privcfs.public.models.files import load_model, save_model
from privcfs.public.models.gcn import GCN
from privcfs.public.models.torch_module import TorchModel
from privcfs.public.release import Release
from privcfs.public.schema.schema import Schema
from privcfs.public.sketches.knowing import with_sketch

__version__ = "0.1.0"
__all__ = [
    "GCN",
    "Assumption",
    "FeatureChange",
    "Intervention",
    "Limit",
    "Method",
    "PrivateGraph",
    "PrivcfsError",
    "PublicContext",
    "Release",
    "Schema",
    "Secrets",
    "TorchModel",
    "Vault",
    "hiding",
    "load_model",
    "open_ledger",
    "open_vault",
    "rehearse_time",
    "save_model",
    "with_sketch",
]
