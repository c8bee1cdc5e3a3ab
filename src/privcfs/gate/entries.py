"""Disclosures that were made elsewhere, entered into the account of the same graph.

Zone: gate
Claim: an entry counts in full, epsilon and delta, against the limits of the ledger; it reads no edge.
Why: it is a charge like any other, with an answer that says what was disclosed.
Check: tests/gate/test_entries.py::test_a_model_trained_with_noise_counts_in_full
"""

from privcfs.errors import SettingsError
from privcfs.gate.contracts import Approximate, Pure
from privcfs.gate.ledger.ledger import ENTRIES, Ledger, Request
from privcfs.public.epsilon import Price, parse_decimal, parse_epsilon


def enter(ledger: Ledger, what: str, epsilon: Price, delta: Price = "0", *, adjacency: str) -> None:
    """Charges what a disclosure cost; the same words again change nothing."""
    if not isinstance(ledger.limit.contract, Pure | Approximate):
        raise SettingsError("entries are for pure or approximate contracts: an (epsilon, delta) has no rho.")
    request = Request(
        analyst=ENTRIES,
        request_id=f"entry: {what}",
        target=0,
        epsilon=parse_epsilon(epsilon),
        context_digest="",
        mechanism="made elsewhere",
        adjacency=adjacency,
        delta=parse_decimal(delta, "delta"),
        question=what,
    )
    if ledger.charge(request) is None:
        ledger.finish(request, what)
