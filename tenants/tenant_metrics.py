"""What tenants have, as metrics; docs/use/tenants.md lists them. Read at each scrape, of so many tenants at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tenants.expected_need import ExpectedNeed
from tenants.tenant_report import ResourceReport, TenantsReport

MOST_TENANTS: Final = 512
"""Series grow with tenants and resources: those that use or wait for something come first."""

_AMOUNTS: Final[tuple[tuple[str, str, Callable[[ResourceReport], float]], ...]] = (
    ("used", "What the pods of a tenant use of its quota, by resource.", lambda one: one.used),
    ("guaranteed", "Min of a tenant, by resource.", lambda one: one.least),
    ("borrowed", "What a tenant uses beyond its min, by resource.", lambda one: one.borrowed),
    ("lent", "What others use of a tenant's idle min, by resource.", lambda one: one.lent),
    ("owed", "What others would have to return if a tenant wanted all of its min, by resource.", lambda one: one.owed),
)
_UNITS: Final = " Cores, bytes, bytes a second, cards or counts."


class TenantGauges(Collector):
    """May be collected by any thread."""

    def __init__(self, report: Callable[[int], TenantsReport], need: ExpectedNeed | None) -> None:
        """
        report : called with the number of hours of needs
        need   : None = what is lent does not depend on a forecast
        """
        self._report, self._need = report, need

    def collect(self) -> Iterator[Metric]:
        report = self._report(0)
        shown = sorted(report.tenants, key=lambda one: (-one.waiting, -one.running, one.name))[:MOST_TENANTS]
        for name, text, amount in _AMOUNTS:
            family = GaugeMetricFamily(f"forecast_tenant_{name}", text + _UNITS, labels=["tenant", "resource"])
            for tenant in shown:
                for one in tenant.resources:
                    family.add_metric([tenant.name, one.resource], amount(one))
            yield family
        waiting = GaugeMetricFamily(
            "forecast_tenant_waiting_pods", "Pods of a tenant that wait for a node.", labels=["tenant"]
        )
        for tenant in shown:
            waiting.add_metric([tenant.name], tenant.waiting)
        yield waiting
        yield GaugeMetricFamily(
            "forecast_tenant_problems",
            "Things of ElasticQuotas that are not as they should be.",
            value=len(report.problems),
        )
        need = self._need
        if need is not None:
            yield GaugeMetricFamily(
                "forecast_tenant_by_forecast",
                "1 = idle quota is lent by the forecast, 0 = there is none, and all of it is lent.",
                value=float(need.forecast is not None),
            )
            yield CounterMetricFamily(
                "forecast_tenant_forecast_failures",
                "Times that what tenants will need could not be found out.",
                value=need.failures,
            )
