"""The thread around tenants, which finds out what owners will need, and what the service shows of them."""

from __future__ import annotations

from typing import Final

from scheduler.handle import Surroundings
from scheduler.tenant_tables import TenantTables
from scorer.periodic_task import PeriodicTask
from serving.upkeep import Background, Upkeep

_LOOK_SECONDS: Final = 1.0


def tenant_upkeep(tables: TenantTables, around: Surroundings) -> Upkeep:
    """Return the thread; none where what is lent does not depend on the forecast."""
    threads: list[Background] = []
    need = tables.need
    if need is not None:
        need.expect()

        def look() -> None:
            if need.is_due():
                need.refresh()

        threads.append(PeriodicTask("needs-of-tenants", _LOOK_SECONDS, look, after=around.after))
    return Upkeep(threads)
