"""Every error raised on purpose. Text, type and presence never depend on a private edge once a vault serves.

PrivcfsError
├── InputError             the analyst's public input is wrong; nothing was charged
│   ├── UnknownNode
│   ├── UnknownRequest
│   └── BadEpsilon
├── OwnerError             the owner's files or settings are wrong; raised while loading, before serving
│   ├── GraphError             the private edges
│   ├── ContextError           features, snapshot, node ids
│   ├── ModelError          the frozen model
│   ├── SettingsError          vault.toml, limits, method
│   ├── SketchError            the sketch of the hidden pairs
│   └── SimulatedSnapshot      an experiment's snapshot offered to a real vault
├── BudgetExhausted        the limit would be passed; nothing was charged
├── RequestConflict        a request id was used before with other parameters
├── LedgerError            the ledger cannot be trusted or reached
│   ├── LedgerMissing
│   ├── LedgerLocked
│   ├── LedgerFull
│   ├── LedgerReadOnly
│   ├── LedgerRolledBack
│   ├── LedgerTooNew
│   └── LedgerCorrupt
├── NotAllowed             this key may not do that, or there is no valid key
│   ├── NoKey
│   └── TooFast
├── VerificationFailed     a certificate does not match ledger or context
├── SealedError            something tried to compare, hash, copy or pickle a private value
└── MissingDependency      an optional package is needed for this call
"""


class PrivcfsError(Exception):
    """Root of the tree; `status` is the HTTP status and `exit_code` the command line's."""

    status = 500
    exit_code = 1


class InputError(PrivcfsError):
    status = 422
    exit_code = 2


class UnknownNode(InputError):
    status = 404


class UnknownRequest(InputError):
    status = 404


class BadEpsilon(InputError):
    pass


class OwnerError(PrivcfsError):
    exit_code = 3


class GraphError(OwnerError):
    pass


class ContextError(OwnerError):
    pass


class ModelError(OwnerError):
    pass


class SettingsError(OwnerError):
    pass


class SketchError(OwnerError):
    pass


class SimulatedSnapshot(OwnerError):
    pass


class BudgetExhausted(PrivcfsError):
    status = 402
    exit_code = 4


class RequestConflict(PrivcfsError):
    status = 409
    exit_code = 5


class LedgerError(PrivcfsError):
    status = 503
    exit_code = 6


class LedgerMissing(LedgerError):
    pass


class LedgerLocked(LedgerError):
    pass


class LedgerFull(LedgerError):
    pass


class LedgerReadOnly(LedgerError):
    pass


class LedgerRolledBack(LedgerError):
    pass


class LedgerTooNew(LedgerError):
    pass


class LedgerCorrupt(LedgerError):
    pass


class NotAllowed(PrivcfsError):
    status = 403
    exit_code = 9


class NoKey(NotAllowed):
    status = 401


class TooFast(NotAllowed):
    status = 429


class VerificationFailed(PrivcfsError):
    status = 422
    exit_code = 7


class SealedError(PrivcfsError):
    pass


class MissingDependency(PrivcfsError):
    exit_code = 8


def error_named(name: str) -> type[PrivcfsError]:
    """The class of an error that another process sent by name; PrivcfsError if there is none of that name."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, PrivcfsError) else PrivcfsError
