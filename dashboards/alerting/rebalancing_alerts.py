"""What is wrong with the rebalancer: it stood down, a move is stuck, something holds it up, no replica leads."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import JOB, REPLICA, cannot_read

_PROCESS: Final = f"by ({JOB})"
_REPLICA: Final = f"({REPLICA})"


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
            "`rebalance.mode` is `on`, but the rebalancer only plans: its moves gained less than half of what it "
            "had predicted, or made other nodes hot.",
            action="Read the grades. Mend a wrong forecast or wait until the model has learned the change; then "
            "set `rebalance.trust.counts_from` to today.",
            commands=(
                "kubectl get rebalanceplans -o wide",
                'curl -s "$REBALANCER/v1/rebalance"                      # `because`',
            ),
            page="../use/rebalancer.md#trust",
        ),
        Alert(
            "ForecastRebalanceStuck",
            Severity.WARNING,
            f"{stuck} > 0",
            "0m",
            "{{ $labels.job }}: the replacement of a pod that was to move did not become ready within the last hour",
            "The service may have one ready replica less. The plan begins nothing more tonight; tomorrow's is made "
            "as ever.",
            action="Find out why the replacement has no node or does not start. Roll the release back, or make "
            "room. `forecast-scheduler.io/rebalance: never` exempts a service.",
            commands=("kubectl get events -A --field-selector reason=RebalanceStuck",),
        ),
        Alert(
            "ForecastRebalanceHeldUp",
            Severity.WARNING,
            # A move that the API server refuses ends, and the next one begins without trouble.
            f"max {_PROCESS} (max_over_time(forecast_rebalance_held_up[10m])) > 0{cannot_read()}",
            "15m",
            "{{ $labels.job }}: the rebalancer has not been able to go on for 15 minutes",
            "The API server refuses requests or does not answer. A move under way waits, or ends without effect.",
            action="`trouble` and the log name what is refused: 403 a right, 404 the definition of RebalancePlan "
            "(`deploy/crds/rebalanceplans`), otherwise a webhook or policy.",
            commands=('curl -s "$REBALANCER/v1/rebalance"                      # `trouble`',),
        ),
        Alert(
            "ForecastRebalanceNoLeader",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_rebalance_leading) == 0 and on (cluster, job) {acts}{cannot_read()}",
            "10m",
            "{{ $labels.job }}: no replica plans or moves",
            "No night is planned and a move under way waits: no replica holds the Lease, or its holder has not "
            "read the cluster yet.",
            action="`/readyz` of each replica says what it lacks: rights on the Lease "
            "`forecast-scheduler-rebalancer`, or on what it lists.",
        ),
    ]
