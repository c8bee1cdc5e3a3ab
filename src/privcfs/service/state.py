"""What the endpoints of one service work on, and how an endpoint gets it."""

from dataclasses import dataclass
from typing import Annotated, final

from anyio import CapacityLimiter
from fastapi import Depends, Request

from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.vault import Vault
from privcfs.service.health import Health
from privcfs.service.keys import Keys
from privcfs.service.log import Log
from privcfs.service.metrics import Metrics
from privcfs.service.overview import Spending
from privcfs.service.pace import Pace


@final
@dataclass(frozen=True, slots=True)
class Service:
    """One vault with everything that serving it needs.

    `threads` bounds the threads of timed endpoints (`marks.py`). There are as many of them as places for timed
    requests, so that a timed request that was admitted never waits for a thread.
    """

    vault: Vault
    keys: Keys
    log: Log
    metrics: Metrics
    pace: Pace
    health: Health
    threads: CapacityLimiter
    spending: Spending

    @property
    def ledger(self) -> Ledger:
        """The vault's ledger."""
        return self.vault.ledger


async def _service_of(request: Request) -> Service:
    """`make_app` puts the service there. This is a coroutine because FastAPI runs other functions in a thread."""
    service: Service = request.app.state.service
    return service


This = Annotated[Service, Depends(_service_of)]
