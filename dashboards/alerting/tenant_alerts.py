"""What is wrong between tenants: one does not get what it is guaranteed."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_TENANT: Final = "(cluster, job, tenant)"


def tenant_alerts() -> list[Alert]:
    """Where there are no ElasticQuotas there are no series."""
    return [
        Alert(
            "ForecastTenantKeptWaiting",
            Severity.WARNING,
            f"max by {_TENANT} (forecast_tenant_waiting_pods) > 0"
            f" and on {_TENANT} max by {_TENANT} (forecast_tenant_owed) > 0",
            "15m",
            "Tenant {{ $labels.tenant }}: {{ $value }} pods wait while others use what it is guaranteed",
            "The tenant is within its min and others borrow it. Borrowers have not ended and were not evicted.",
            action="The pod's condition says what it waits for: disruption budgets of borrowers, `reclaim: false`, "
            "or rules about nodes. Loosen them, delete borrowers, or add nodes.",
            commands=(
                'forecast-scheduler tenants --server "$SCHEDULER" --namespace shop',
                "kubectl get events -n shop --field-selector reason=FailedScheduling",
            ),
            page="../use/tenants.md",
        ),
    ]
