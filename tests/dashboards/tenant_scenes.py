"""What the alert about tenants is for."""

from __future__ import annotations

from tests.dashboards.promtool_tests import Series
from tests.dashboards.scene import WARNING, Scene, steady

LOOP = {"job": "forecast-scheduler-schedule"}


def _tenants(waiting: float, owed: float) -> tuple[Series, ...]:
    """Of two replicas that both follow the cluster. Another tenant waits beyond its min."""
    given = []
    for instance in ("10.0.0.7:8889", "10.0.0.8:8889"):
        for tenant, pods, cores in (("shop", waiting, owed), ("batch", 9.0, 0.0)):
            labels = {"tenant": tenant, "instance": instance, **LOOP}
            given.append(steady("forecast_tenant_waiting_pods", pods, **labels))
            given += [
                steady("forecast_tenant_owed", amount, resource=name, **labels)
                for name, amount in (("cpu", cores), ("memory", 0.0))
            ]
    return tuple(given)


TENANTS = (
    Scene(
        "ForecastTenantKeptWaiting",
        "others hold its min, and its pods wait",
        _tenants(3, 12),
        20,
        {WARNING: "Tenant shop: 3 pods wait while others use what it is guaranteed"},
        {"tenant": "shop", **LOOP},
    ),
    Scene("ForecastTenantKeptWaiting", "its pods wait beyond its min", _tenants(3, 0), 20),
    Scene("ForecastTenantKeptWaiting", "others borrow, and none of its pods waits", _tenants(0, 12), 20),
)
