"""What can be checked of a certificate.

Zone: gate
Claim: no edge is read to check a release; to check free advice, it is computed once more.
Why: `verify` is not given a private graph, and the ledger and the candidate list are public. `verify_advice` is for the
    owner: it asks the vault for what the person was given, and says only whether it is the same.
Check: tests/gate/test_vault.py::test_names_cannot_be_left_out_of_a_certificate_that_has_them
"""

from dataclasses import replace

from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import Method, constraints_of, former_digest, public_digest
from privcfs.gate.questions.advice import MOST_ALTERNATIVES, together
from privcfs.gate.vault import Vault
from privcfs.public.advice import Advice
from privcfs.public.context import PublicContext
from privcfs.public.release import Release


def verify(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """What holds of a certificate, statement by statement; the ledger's chain was checked when it was opened."""
    stored = ledger.released(release.analyst, release.request_id)
    digests = public_digest(context, method), former_digest(context, method)
    texts = release.to_json(), replace(release, labels={}).to_json()  # version 0.1 stored no names, but printed them
    constraints = constraints_of(method, context)
    obeyed = {
        "the constraints are this vault's": release.constraints == constraints.digest,
        "the intervention keeps to the constraints": not constraints.faults(release.target, release.intervention),
    }
    return {
        "the ledger holds this release, word for word": stored in texts,
        "the names are this vault's": release.labels in ({}, context.labels(release.nodes)),
        "public context and method are this vault's": release.context_digest in digests,
        "the intervention is on the public list": _listed(release, context, method),
        "the price is the one guaranteed": release.epsilon == release.guarantee.epsilon,
        **({} if context.schema is None else obeyed),
    }


def verify_advice(advice: Advice, vault: Vault) -> dict[str, bool]:
    """What holds of advice. For the owner: free advice is computed once more, from the person's own edges."""
    context, constraints = vault.context, constraints_of(vault.method, vault.context)
    obeyed = {
        "the constraints are this vault's": advice.constraints == constraints.digest,
        "the changes keep to the constraints": not any(
            constraints.faults(advice.target, one.intervention) for one in advice.changes
        ),
    }
    nodes = {advice.target, *(node for one in advice.changes for node in one.intervention.nodes)}
    return {
        "the names are this vault's": advice.labels == context.labels(nodes),
        "public context and method are this vault's": advice.context_digest == vault.digest,
        "this vault gives the same advice, word for word": _given(advice, vault) == advice.to_json(),
        **({} if context.schema is None else obeyed),
    }


def _given(advice: Advice, vault: Vault) -> str | None:
    """What the ledger keeps of paid advice; free advice as it is given now."""
    if advice.epsilon:
        return _kept(advice, vault.ledger)
    alternatives = max(len(advice.changes) - 1, 0)
    return vault.advise(advice.target, alternatives=alternatives, told=advice.told).to_json()


def _kept(advice: Advice, ledger: Ledger) -> str | None:
    """Paid advice as the ledger has it; changes that were drawn one after the other are put together again."""
    whole = ledger.released(advice.analyst, advice.request_id)
    parts: list[Advice] = []
    while whole is None and len(parts) <= MOST_ALTERNATIVES:
        part = ledger.released(advice.analyst, f"{advice.request_id}/{len(parts) + 1}")
        if part is None:
            break
        parts.append(Advice.from_json(part))
    return together(parts, advice.request_id).to_json() if parts else whole


def _listed(release: Release, context: PublicContext, method: Method) -> bool:
    """Whether the candidate rule proposes the intervention.

    The lists of version 0.1 had other partners. Of its releases, a size within the caps is checked.
    """
    is_former = release.context_digest == former_digest(context, method) != public_digest(context, method)
    if not is_former:
        return release.intervention in method.candidates.propose(context, context.node(release.target))
    drawn, caps = release.intervention, method.candidates.caps
    features = len(drawn.mask) + len(drawn.change)
    return len(drawn.delete) + len(drawn.add) <= caps.pairs and features <= caps.features
