"""Metrics of tenants, and their table in docs/use/tenants.md."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from tenants.elastic_quota import ElasticQuota
from tenants.tenant_metrics import MOST_TENANTS, TenantGauges
from tenants.tenant_report import TenantReport, TenantsReport, live_report
from tests.tenants.lending_world import LendingWorld, job_pod

DOCS = Path(__file__).parents[2] / "docs" / "use" / "tenants.md"


def registry_of(world: LendingWorld) -> CollectorRegistry:
    registry, quotas = CollectorRegistry(), world.tables.quotas

    def report(n_hours: int) -> TenantsReport:
        return live_report(world.live.scorer.tables, quotas, world.tables.need, n_hours=n_hours)

    registry.register(TenantGauges(report, world.tables.need))
    return registry


def test_amounts_and_pods_are_exported() -> None:
    world = LendingWorld(12.0)
    world.put(job_pod("j0", on="node-0", cpu=5))
    world.put(job_pod("j1", cpu=9))
    value = partial(registry_of(world).get_sample_value)
    batch, shop = ({"tenant": name, "resource": "cpu"} for name in ("batch", "shop"))
    assert value("forecast_tenant_used", batch) == 5 and value("forecast_tenant_guaranteed", batch) == 2
    assert value("forecast_tenant_borrowed", batch) == 3 and value("forecast_tenant_lent", shop) == 3
    assert value("forecast_tenant_owed", shop) == 3, "nothing is free: 12 cores less 2 and 5 are 5, of 8 that are idle"
    assert value("forecast_tenant_waiting_pods", {"tenant": "batch"}) == 1
    assert value("forecast_tenant_problems") == 0 and value("forecast_tenant_by_forecast") == 0
    world.need.refresh()
    assert value("forecast_tenant_by_forecast") == 1 and value("forecast_tenant_forecast_failures_total") == 0
    lost = LendingWorld(12.0, quotas=[ElasticQuota("a", "a", parent="nowhere")])
    assert registry_of(lost).get_sample_value("forecast_tenant_problems") == 1


def test_the_number_of_tenants_is_bounded_and_those_that_wait_come_first() -> None:
    tenants = [TenantReport(f"t{n}", f"t{n}", "q", "", 1.0, True, 0, n == 900, ()) for n in range(1000)]
    registry = CollectorRegistry()
    registry.register(TenantGauges(lambda n_hours: TenantsReport(0.0, tuple(tenants)), None))
    text = generate_latest(registry).decode()
    assert text.count("forecast_tenant_waiting_pods{") == MOST_TENANTS
    assert 'forecast_tenant_waiting_pods{tenant="t900"} 1.0' in text


def test_every_metric_is_documented() -> None:
    exported = set(re.findall(r"^# TYPE (\S+) ", generate_latest(registry_of(LendingWorld())).decode(), re.MULTILINE))
    table = set(re.findall(r"^\| `(forecast_\w+)[`{]", DOCS.read_text(), flags=re.MULTILINE))
    assert exported == table
