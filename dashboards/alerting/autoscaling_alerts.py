"""What is wrong with the autoscaler: something holds it up, it has no forecast, no replica leads."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_PROCESS: Final = "by (cluster, job)"


def autoscaling_alerts() -> list[Alert]:
    """Where it is not deployed there are no series, and no alert."""
    return [
        Alert(
            "ForecastAutoscaleHeldUp",
            Severity.WARNING,
            f"max {_PROCESS} (max_over_time(forecast_autoscale_held_up[10m])) > 0",
            "15m",
            "{{ $labels.job }}: the autoscaler has not been able to go on for 15 minutes",
            "Prometheus does not say what pods use, or the API server refuses requests. No load ahead is said then, "
            "and autoscalers go on by their other metrics; what was written stays. The log says what is refused.",
        ),
        Alert(
            "ForecastAutoscaleNoForecast",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_autoscale_has_forecast) == 0",
            "30m",
            "{{ $labels.job }}: the autoscaler has had no forecast for 30 minutes",
            "The model is too old: buffers, marks and resizes are taken back. Or the cluster is not seen: they stay. "
            "No load ahead is said, so autoscalers with that metric do not scale down.",
        ),
        Alert(
            "ForecastAutoscaleNoLeader",
            Severity.WARNING,
            # A replica in which something may be written has the second series.
            f"max {_PROCESS} (forecast_autoscale_leading) == 0 and on (cluster, job) "
            f"count {_PROCESS} (forecast_autoscale_acting)",
            "10m",
            "{{ $labels.job }}: no replica writes buffers, marks or requests",
            "What was written stays as it is: no replica holds the Lease. Marks keep nodes, and requests of pods stay "
            "low or high, until a replica leads, or somebody runs `forecast-scheduler autoscale --release`.",
        ),
    ]
