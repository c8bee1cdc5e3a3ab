"""Private counterfactual explanations for graph neural networks.

The folders are the privacy boundary: `public` is known to everyone, `private` reads edges, `gate` is the only door.
"""

from privcfs.errors import PrivcfsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.owner.vault_file import open_vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.secrets import Secrets
from privcfs.public.assumptions import Assumption, hiding
from privcfs.public.backbones.files import load_backbone, save_backbone
from privcfs.public.backbones.gcn import GCN
from privcfs.public.backbones.torch_module import TorchBackbone
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention
from privcfs.public.release import Release

__version__ = "0.1.0"
__all__ = [
    "GCN",
    "Assumption",
    "Intervention",
    "Limit",
    "Method",
    "PrivateGraph",
    "PrivcfsError",
    "PublicContext",
    "Release",
    "Secrets",
    "TorchBackbone",
    "Vault",
    "hiding",
    "load_backbone",
    "open_ledger",
    "open_vault",
    "save_backbone",
]
