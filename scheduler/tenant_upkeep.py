"""The thread around tenants, which finds out what owners will need, and what the service shows of them."""

from __future__ import annotations

from functools import partial
from typing import Final

from base.periodic_task import PeriodicTask
from scheduler.handle import Surroundings
from scheduler.tenant_tables import TenantTables
from scorer.scorer import Scorer
from serving.documents import bodies_of
from serving.upkeep import Background, Upkeep
from tenants import answers
from tenants.expected_need import ExpectedNeed
from tenants.live_report import live_report
from tenants.metrics import TenantGauges
from tenants.report import TenantsReport
from tenants.routes import tenants_router

_LOOK_SECONDS: Final = 1.0


def tenant_upkeep(tables: TenantTables, scorer: Scorer, around: Surroundings) -> Upkeep:
    """Return the thread, none where what is lent does not depend on the forecast; metrics and routes."""
    threads: list[Background] = []
    if tables.need is not None:
        tables.need.expect()
        look = partial(_look, tables.need)
        threads.append(PeriodicTask("needs-of-tenants", _LOOK_SECONDS, look, after=around.after))

    def report(n_hours: int) -> TenantsReport:
        return live_report(scorer.tables, tables.quotas, tables.need, n_hours=n_hours)

    return Upkeep(threads, (TenantGauges(report, tables.need),), (tenants_router(report),), tuple(bodies_of(answers)))


def _look(need: ExpectedNeed) -> None:
    if need.is_due():
        need.refresh()
