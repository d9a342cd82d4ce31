"""What is wrong around the processes: the nightly run, which leaves its figures behind, and targets that are gone."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import (
    JOB,
    OLD_SECONDS,
    TARGETS,
    USELESS_SECONDS,
    down,
    failed_night,
    gone_store,
    held_pods,
    last_success,
    named,
    old_model,
    unless,
)

_GAPS: Final = 0.25
"""Share of a day's service half hours: of a quarter missing the trainer can still learn, of half it takes no day."""

_RELEASING: Final = "advisor|webhook"
"""Parts whose pods are held if both are gone: then ForecastPodsHeld is first."""


def operating_alerts() -> list[Alert]:
    """Of the figures in docs/operate/train.md, and of what Prometheus itself knows of its targets."""
    gone = f"group by ({JOB}) (max_over_time({TARGETS}[1d])) unless group by ({JOB}) ({TARGETS})"
    # Of one run each: last night's file may be on another node.
    gaps = "forecast_train_data_gap_slots / forecast_train_data_expected_slots"
    return [
        Alert(
            "ForecastTrainFailed",
            Severity.WARNING,
            f"({failed_night()}){unless('cluster', old_model(limit=USELESS_SECONDS), gone_store())}",
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
            f"max by (cluster) (forecast_model_age_seconds) <= {OLD_SECONDS}{unless('cluster', last_success())}",
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
            f"count by ({JOB}) ({TARGETS} == 0) and on ({JOB}) max by ({JOB}) ({TARGETS}) == 1",
            "5m",
            "{{ $labels.job }}: {{ $value }} of its replicas cannot be scraped, another one can",
            "A process is down, does not answer, or refuses Prometheus. Another replica works.",
            action="Is the pod running and ready? If the target says 401 or 403, Prometheus may not read `/metrics`.",
            page="security.md",
        ),
        Alert(
            "ForecastComponentDown",
            Severity.CRITICAL,
            f"({down()}{unless('cluster', _all_down())}{unless(JOB, _of_held_pods())})"
            f" or {_all_down()}{unless('cluster', held_pods())}",
            "5m",
            "{{ with $labels.job }}{{ . }}: no replica{{ else }}No process of ours{{ end }} can be scraped",
            "None of its processes answers. Pods for our loops wait; a webhook with failurePolicy Fail refuses pods. "
            "Everything else goes on without this part. If no part answers, the network or the namespace is the "
            "cause, and one alert stands for all.",
            action="`kubectl -n forecast-scheduler get pods,events` says why.",
            page="../../EMERGENCY.md",
        ),
        Alert(
            "ForecastTargetMissing",
            Severity.WARNING,
            f"count by (cluster) ({gone})",
            "10m",
            f"A target within the last day and none any more: {named(gone)}",
            "Its pods are gone, or its ServiceMonitor is. Without targets all other alerts are silent.",
            action="Put back the Deployment, the ServiceMonitor or the Service's labels. Else it ends in a day.",
        ),
    ]


def _all_down() -> str:
    """More than one part was started, and none answers. By cluster, without a job."""
    parts = f"count by (cluster) ({down()})"
    return f"({parts} > 1 unless on (cluster) max by (cluster) ({TARGETS}) == 1)"


def _of_held_pods() -> str:
    """The parts that would release held pods, while there are any."""
    return f'group by ({JOB}) (up{{job=~"forecast-scheduler-({_RELEASING})"}}) and on (cluster) ({held_pods()})'
