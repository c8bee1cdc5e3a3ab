"""What can be checked of a certificate.

Zone: gate
Claim: no edge is read.
Why: nothing here is given a private graph; the ledger and the candidate list are public.
Check: tests/gate/test_vault.py::test_names_cannot_be_left_out_of_a_certificate_that_has_them
"""

from dataclasses import replace

from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import Method, former_digest, public_digest
from privcfs.public.context import PublicContext
from privcfs.public.release import Release


def verify(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """What holds of a certificate, statement by statement; the ledger's chain was checked when it was opened."""
    stored = ledger.released(release.analyst, release.request_id)
    digests = public_digest(context, method), former_digest(context, method)
    texts = release.to_json(), replace(release, labels={}).to_json()  # version 0.1 stored no names, but printed them
    return {
        "the ledger holds this release, word for word": stored in texts,
        "the names are this vault's": release.labels in ({}, context.labels(release.nodes)),
        "public context and method are this vault's": release.context_digest in digests,
        "the intervention is on the public list": _listed(release, context, method),
        "the price is the one guaranteed": release.epsilon == release.guarantee.epsilon,
    }


def _listed(release: Release, context: PublicContext, method: Method) -> bool:
    """Whether the candidate rule proposes the intervention.

    The lists of version 0.1 had other partners. Of its releases, a size within the caps is checked.
    """
    is_former = release.context_digest == former_digest(context, method) != public_digest(context, method)
    if not is_former:
        return release.intervention in method.candidates.propose(context, context.node(release.target))
    drawn, caps = release.intervention, method.candidates.caps
    return len(drawn.delete) + len(drawn.add) <= caps.pairs and len(drawn.mask) <= caps.features
