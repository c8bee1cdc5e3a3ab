"""What can be checked of a certificate.

Zone: gate
Claim: no edge is read.
Why: nothing here is given a private graph; the ledger and the candidate list are public.
Check: tests/gate/test_vault.py::test_names_cannot_be_left_out_of_a_certificate_that_has_them
"""

from dataclasses import replace

from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import Method, public_digest
from privcfs.public.context import PublicContext
from privcfs.public.release import Release


def verify(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """What holds of a certificate, statement by statement; the ledger's chain was checked when it was opened."""
    stored = ledger.released(release.analyst, release.request_id)
    proposed = method.candidates.propose(context, context.node(release.target))
    texts = release.to_json(), replace(release, labels={}).to_json()  # version 0.1 stored no names, but printed them
    return {
        "the ledger holds this release, word for word": stored in texts,
        "the names are this vault's": release.labels in ({}, context.labels(release.nodes)),
        "public context and method are this vault's": release.context_digest == public_digest(context, method),
        "the intervention is on the public list": release.intervention in proposed,
        "the price is the one guaranteed": release.epsilon == release.guarantee.epsilon,
    }
