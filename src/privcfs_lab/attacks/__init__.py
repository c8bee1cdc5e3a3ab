"""Known attacks, one file each, behind one interface, and what they are run against."""

from collections.abc import Mapping

from privcfs_lab.attacks.attack import Attack
from privcfs_lab.attacks.denoising import Denoising
from privcfs_lab.attacks.explain_sim import ExplainSim
from privcfs_lab.attacks.likelihood_ratio import LikelihoodRatio
from privcfs_lab.attacks.link_teller import LinkTeller
from privcfs_lab.attacks.names import Names
from privcfs_lab.attacks.reconstruction import Reconstruction

ATTACKS: Mapping[str, Attack] = {
    "reading the names": Names(),
    "ExplainSim": ExplainSim(),
    "LinkTeller": LinkTeller(),
    "denoised numbers": Denoising(),
    "denoised numbers and names": Denoising(names=True),
    "likelihood ratio": LikelihoodRatio(),
    "reconstruction, 1 answer": Reconstruction(answers=1),
    "reconstruction, 10 answers": Reconstruction(answers=10),
    "reconstruction, 100 answers": Reconstruction(answers=100),
}
