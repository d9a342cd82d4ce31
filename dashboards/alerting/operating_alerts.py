"""What is wrong around the processes: the nightly run, which leaves its figures behind, and targets that are gone."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_NIGHT_SECONDS: Final = 30 * 3600
"""A run a night, and six hours for it to be late, to take long, or to be tried again."""

_MISSED_SECONDS: Final = 36 * 3600
"""Age of the model, where no figures of a run are there: from here on a night was missed (ForecastModelStale)."""

_GAPS: Final = 0.25
"""Share of a day's service half hours: of a quarter missing the trainer can still learn, of half it takes no day."""

_TARGETS: Final = 'up{job=~"forecast-scheduler-.+"}'
"""Jobs are named after the Services (deploy/)."""


def operating_alerts() -> list[Alert]:
    """Of the figures in docs/operate/train.md, and of what Prometheus itself knows of its targets."""
    success = "forecast_train_last_success_timestamp_seconds"
    # A run that failed leaves no time of success, and its file may be on another node than last night's.
    told = f"max by (cluster) (max_over_time({success}[7d]))"
    # Nobody has to export figures of the run, a Pushgateway that is replaced loses them, and a run that never
    # succeeded has none: then the model in use tells how long ago it was made.
    untold = f"(max by (cluster) (forecast_model_age_seconds) unless on (cluster) {told})"
    # Of one run each: last night's file may be on another node.
    gaps = "forecast_train_data_gap_slots / forecast_train_data_expected_slots"
    return [
        Alert(
            "ForecastTrainFailed",
            Severity.WARNING,
            f"time() - {told} > {_NIGHT_SECONDS} or {untold} > {_MISSED_SECONDS}",
            "10m",
            "No nightly run is known to have succeeded for {{ $value | humanizeDuration }}",
            "Last night's run failed or did not start. The model in use stays; 36 hours after its first midnight "
            "it is an old one. Without figures of a run the model's age counts.",
            action="The last line of the pod's log says what to mend; exit status 2 needs a person, 1 the next "
            "try. No Job: is the CronJob suspended? Then run it by hand.",
            commands=(
                "kubectl -n forecast-scheduler get jobs",
                "kubectl -n forecast-scheduler create job train-now --from=cronjob/forecast-scheduler-trainer",
            ),
            page="train.md",
        ),
        Alert(
            "ForecastTrainFiguresMissing",
            Severity.WARNING,
            f"max by (cluster) (forecast_model_age_seconds) <= {_MISSED_SECONDS} unless on (cluster) {told}",
            "1d",
            "The model is {{ $value | humanizeDuration }} old, and no figures of a nightly run have arrived for a week",
            "Runs succeed, and Prometheus has none of their figures: ForecastTrainDataGaps cannot fire. The "
            "forecast is not affected.",
            action="If this prints nothing, the run sends no figures: add the component `pushgateway`. Otherwise "
            "see the run's log, and whether Prometheus scrapes the Pushgateway.",
            commands=("kubectl -n forecast-scheduler get cronjobs -o yaml | grep -i -A1 -e pushgateway -e metrics",),
            page="deployment.md",
        ),
        Alert(
            "ForecastTrainDataGaps",
            Severity.WARNING,
            f"max by (cluster, resource) ({gaps}) > {_GAPS}",
            "15m",
            "{{ $labels.resource }}: {{ $value | humanizePercentage }} of yesterday's service half hours are missing",
            "Services had running pods in these half hours and nothing measured them. Tonight's model is poorer "
            "for it, and the gate may keep yesterday's.",
            action="Look at `forecast:pod_usage` of that resource and mend the scraping. The run's report names "
            "the services.",
            page="prometheus.md",
        ),
        Alert(
            "ForecastTargetDown",
            Severity.WARNING,
            f"{_TARGETS} == 0",
            "5m",
            "{{ $labels.job }} at {{ $labels.instance }} cannot be scraped",
            "The process is down, does not answer, or refuses Prometheus. Another replica may still work.",
            action="Is the pod running and ready? If the target says 401 or 403, Prometheus may not read `/metrics`.",
            page="security.md",
        ),
        Alert(
            "ForecastComponentDown",
            Severity.CRITICAL,
            f"max by (cluster, job) ({_TARGETS}) == 0",
            "5m",
            "{{ $labels.job }}: no replica can be scraped",
            "None of its processes answers. Pods for our loops wait; a webhook with failurePolicy Fail refuses pods. "
            "Everything else goes on without this part.",
            action="`kubectl -n forecast-scheduler get pods,events` says why.",
            page="../../EMERGENCY.md",
        ),
        Alert(
            "ForecastTargetMissing",
            Severity.WARNING,
            f"group by (cluster, job) (max_over_time({_TARGETS}[1d])) unless group by (cluster, job) ({_TARGETS})",
            "10m",
            "{{ $labels.job }} was a target within the last day and is none any more",
            "Its pods are gone, or its ServiceMonitor is. Without targets all other alerts are silent.",
            action="Put back the Deployment, the ServiceMonitor or the Service's labels. Else it ends in a day.",
        ),
    ]
