"""What is wrong with the rebalancer: it stood down, a move is stuck, something holds it up, no replica leads."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_PROCESS: Final = "by (cluster, job)"
_REPLICA: Final = "(cluster, job, instance)"


def rebalancing_alerts() -> list[Alert]:
    """Where it is not deployed there are no series, and no alert."""
    stuck = f'sum {_PROCESS} (increase(forecast_rebalance_moves_total{{state="stuck"}}[1h]))'
    is_down = f"forecast_rebalance_stood_down and on {_REPLICA} forecast_rebalance_leading == 1"
    acts = f'max {_PROCESS} (forecast_rebalance_mode{{mode!="off"}}) == 1'
    return [
        Alert(
            "ForecastRebalanceStoodDown",
            Severity.WARNING,
            f"max {_PROCESS} ({is_down}) > 0",
            "5m",
            "{{ $labels.job }}: nights in a row were graded as bad, and no pod is moved any more",
            "rebalance.mode is on, and the rebalancer only plans: its moves prevented less than it had predicted, or "
            "made other nodes hot. The grades are in the RebalancePlans. It does not act again by itself.",
        ),
        Alert(
            "ForecastRebalanceStuck",
            Severity.WARNING,
            f"{stuck} > 0",
            "0m",
            "{{ $labels.job }}: the replacement of a pod that was to move did not become ready within the last hour",
            "The service of that pod may have one ready replica less. Nothing more of the plan begins. The status of "
            "the RebalancePlan names the pod and what its replacement waits for.",
        ),
        Alert(
            "ForecastRebalanceHeldUp",
            Severity.WARNING,
            # A move that the API server refuses ends, and the next one begins without trouble.
            f"max {_PROCESS} (max_over_time(forecast_rebalance_held_up[10m])) > 0",
            "15m",
            "{{ $labels.job }}: the rebalancer has not been able to go on for 15 minutes",
            "The API server refuses requests or does not answer. A move under way waits, or ends without effect. "
            "`trouble` of /v1/rebalance and the log say what is refused.",
        ),
        Alert(
            "ForecastRebalanceNoLeader",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_rebalance_leading) == 0 and on (cluster, job) {acts}",
            "10m",
            "{{ $labels.job }}: no replica plans or moves",
            "No night is planned and a move under way waits: no replica holds the Lease, or the one that does has not "
            "read nodes, pods and disruption budgets yet.",
        ),
    ]
