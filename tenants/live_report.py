"""The report about tenants of a running process: copied under the lock of the tables, put together without it."""

from __future__ import annotations

from cluster.live_tables import LiveTables
from tenants.admission import Use
from tenants.expected_need import ExpectedNeed
from tenants.quotas import Quotas
from tenants.report import TenantsReport, tenants_report

LOAN_SECONDS = 3600.0
"""What a tenant may still borrow is said of a pod that runs for an hour."""


def live_report(tables: LiveTables, quotas: Quotas, need: ExpectedNeed | None, *, n_hours: int = 24) -> TenantsReport:
    """Return the report. need: None = what is lent does not depend on a forecast. For any thread."""
    with tables.reading():
        ledger, tree = quotas.ledger, quotas.tree
        forecast = None if need is None else need.forecast
        if forecast is not None and forecast.tree is not tree:
            forecast = None  # quotas have just changed
        use = Use(
            ledger.direct.copy(),
            ledger.used.copy(),
            ledger.waiting.copy(),
            quotas.expected(LOAN_SECONDS),
            quotas.pool(),
        )
        running, waiting, now = ledger.n_used.copy(), ledger.n_waiting.copy(), tables.clock()
    return tenants_report(
        tree,
        use,
        made=now,
        running=running,
        waiting=waiting,
        need=None if forecast is None else forecast.need,
        start=None if forecast is None else forecast.start,
        n_hours=n_hours,
    )
