"""What is wrong with the autoscaler: something holds it up, it has no forecast, no replica leads."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import JOB, USELESS_SECONDS, cannot_read, gone_store, old_model, unless

_PROCESS: Final = f"by ({JOB})"


def autoscaling_alerts() -> list[Alert]:
    """Where it is not deployed there are no series, and no alert."""
    return [
        Alert(
            "ForecastAutoscaleHeldUp",
            Severity.WARNING,
            f"max {_PROCESS} (max_over_time(forecast_autoscale_held_up[10m])) > 0"
            f"{unless('cluster', gone_store())}{cannot_read()}",
            "15m",
            "{{ $labels.job }}: the autoscaler has not been able to go on for 15 minutes",
            "Prometheus does not say what pods use, or the API server refuses requests. Autoscalers go on by their "
            "other metrics; what was written stays.",
            action="The log of the leading replica says what fails; 403 names a missing right "
            "(`deploy/base/autoscaler/rbac.yaml`).",
        ),
        Alert(
            "ForecastAutoscaleNoForecast",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_autoscale_has_forecast) == 0"
            f"{unless('cluster', old_model(limit=USELESS_SECONDS))}{cannot_read()}",
            "30m",
            "{{ $labels.job }}: the autoscaler has had no forecast for 30 minutes",
            "Without a model, all that was written is taken back. If the cluster is not seen, it "
            "stays. Autoscalers with our metric do not scale down.",
            action="`/v1/status` of the scorer says why. Models that are too old have an alert: ForecastModelStale.",
        ),
        Alert(
            "ForecastAutoscaleNoLeader",
            Severity.WARNING,
            # A replica in which something may be written has the second series.
            f"max {_PROCESS} (forecast_autoscale_leading) == 0 and on (cluster, job) "
            f"count {_PROCESS} (forecast_autoscale_acting){cannot_read()}",
            "10m",
            "{{ $labels.job }}: no replica writes buffers, marks or requests",
            "What was written stays: marks keep nodes, and requests of pods stay low or high.",
            action="`/readyz` of each replica says what it lacks. Or take everything back: `forecast-scheduler "
            "autoscale --release`.",
            page="../use/autoscaling.md",
        ),
    ]
