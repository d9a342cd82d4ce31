"""What else explains an alert? Conditions that alerts of their consequences leave out: one cause raises one alert.

They are in the expressions rather than in inhibit_rules of Alertmanager, whose configuration is the user's: rules need
none, and a consequence is left out from the moment its cause is there, also while the alert of the cause is pending.
Conditions cannot keep severities of one name apart, since each has to last: `graded` asks for what fires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dashboards.alerting.alert import Alert, Severity

OLD_SECONDS: Final = 36 * 3600
"""From here on the model is an old one (level 2): one night was missed, and bounds widen day by day."""

USELESS_SECONDS: Final = 14 * 86400
"""From here on placing is by requests (level 3)."""

_NIGHT_SECONDS: Final = 30 * 3600
"""A run a night, and six hours for it to be late, to take long, or to be tried again."""

_UNMEASURED_SECONDS: Final = 600
"""Usage counts for five minutes; this is twenty looks in a row without an answer."""

_UNHEARD_SECONDS: Final = 240
"""Watches are renewed within three minutes. Before replicas without a leader are reported, see loop_alerts.py."""

HELD_SECONDS: Final = 30
"""Above the 25 s for which a pod is held at most."""

_NAMED: Final = 10
"""Nodes or processes that a notification names."""

JOB: Final = "cluster, job"
REPLICA: Final = "cluster, job, instance"

TARGETS: Final = 'up{job=~"forecast-scheduler-.+"}'
"""Jobs are named after the Services (deploy/)."""

_ADVISOR: Final = 'up{job="forecast-scheduler-advisor"}'


def unless(labels: str, *causes: str) -> str:
    """Return the end of an expression: where none of the causes is there, compared by labels."""
    return "".join(f" unless on ({labels}) ({cause})" for cause in causes)


def named(query: str, label: str = "job") -> str:
    """Return a template: values of a label, of the query's series that belong to the alert's cluster."""
    of_cluster = 'on (cluster) label_replace(vector(1), "cluster", "%s", "", "")'
    asked = f"topk({_NAMED}, max by (cluster, {label}) ({query}) and {of_cluster})"
    return (
        f"{{{{ range $i, $one := printf `{asked}` $labels.cluster | query | sortByLabel `{label}` }}}}"
        f"{{{{ if $i }}}}, {{{{ end }}}}{{{{ $one.Labels.{label} }}}}{{{{ end }}}}"
    )


def graded(alerts: Sequence[Alert]) -> list[Alert]:
    """Return the alerts, of each name the critical one first; the others are silent as soon as that one fires."""
    critical = {one.name for one in alerts if one.severity is Severity.CRITICAL}
    made = [
        one
        if one.severity is Severity.CRITICAL or one.name not in critical
        else replace(one, expression=f"({one.expression}){unless(JOB, _fires_as_critical(one.name))}")
        for one in alerts
    ]
    first = {one.name: number for number, one in reversed([*enumerate(alerts)])}
    return sorted(made, key=lambda one: (first[one.name], one.severity is not Severity.CRITICAL))


def _fires_as_critical(name: str) -> str:
    return f'ALERTS{{alertname="{name}",alertstate="firing",severity="critical"}}'


# Causes, by the labels that they have


def old_model(by: str = "cluster", limit: float = OLD_SECONDS) -> str:
    """The model in use is old."""
    return f"max by ({by}) (forecast_model_age_seconds) > {limit}"


def refused_model() -> str:
    """A newer model was refused. By cluster."""
    return "max by (cluster) (forecast_model_refused) == 1"


def last_success() -> str:
    """Time of the last nightly run that succeeded, as far as its figures are known. By cluster.

    A run that failed leaves no time of success, and its file may be on another node than last night's.
    """
    return "max by (cluster) (max_over_time(forecast_train_last_success_timestamp_seconds[7d]))"


def failed_night() -> str:
    """No nightly run succeeded. By cluster.

    Figures that stay away while models come are not a run that failed. And where no run left figures (none has to
    export them, a Pushgateway that is replaced loses them), the model in use says how long ago it was made.
    """
    age = "max by (cluster) (forecast_model_age_seconds)"
    known = f"time() - {last_success()} > {_NIGHT_SECONDS} unless on (cluster) {age} < {_NIGHT_SECONDS}"
    return f"{known} or ({age} unless on (cluster) {last_success()}) > {OLD_SECONDS}"


def unmeasured(by: str = "cluster") -> str:
    """A process has no usage of nodes. Usage that never came has no age; then it is that of the process."""
    never = (
        "time() - process_start_time_seconds"
        f" and on ({REPLICA}) forecast_degradation_level > 0 unless on ({REPLICA}) forecast_usage_age_seconds"
    )
    return (
        f"max by ({by}) (forecast_usage_age_seconds) > {_UNMEASURED_SECONDS}"
        f" or max by ({by}) ({never}) > {_UNMEASURED_SECONDS}"
    )


def gone_store() -> str:
    """No process that has ever had usage of nodes has it now: Prometheus does not answer them. By cluster."""
    return f"min by (cluster) (forecast_usage_age_seconds) > {_UNMEASURED_SECONDS}"


def unheard(by: str = JOB) -> str:
    """A process hears nothing of the API server."""
    return f"max by ({by}) (forecast_cluster_state_age_seconds) > {_UNHEARD_SECONDS}"


def silent_api(by: str = JOB) -> str:
    """None of the processes hears anything of the API server."""
    return f"min by ({by}) (forecast_cluster_state_age_seconds) > {_UNHEARD_SECONDS}"


def unready(by: str = JOB) -> str:
    """None of the processes has read the cluster yet."""
    return f"max by ({by}) (forecast_ready) == 0"


def cannot_read() -> str:
    """End of an expression about parts: where no replica can read the cluster, which has an alert of its own.

    One of several that cannot explains nothing of what the others do: compare single replicas by `deaf_replica`.
    """
    return unless(JOB, silent_api(), unready())


def deaf_replica() -> str:
    """End of an expression about replicas: where one cannot read the cluster."""
    return unless(REPLICA, unheard(REPLICA), unready(REPLICA))


def down() -> str:
    """No replica of a part answers. By cluster and job; a part that has not answered for a week was never started."""
    return f"max by ({JOB}) ({TARGETS}) == 0 and on ({JOB}) max by ({JOB}) (max_over_time({TARGETS}[7d])) == 1"


def gone_advisor() -> str:
    """No advisor answers, or it is no target any more. By cluster."""
    return (
        f"max by (cluster) (max_over_time({_ADVISOR}[1d])) == 1 unless on (cluster) max by (cluster) ({_ADVISOR}) == 1"
    )


def held_pods() -> str:
    """Seconds for which a pod was held that ought to have been released. By cluster.

    First by those that hold pods, then by all that see them: a quota that a living advisor knows of may hold pods for
    long. If none of ours sees pods, kube-state-metrics does (2.19 or newer), by whatever gate they are held; that
    counts only where there was an advisor.
    """
    seen = "max by (cluster) (forecast_seen_gated_longest_seconds)"
    by_quota = "max by (cluster) (forecast_gated_by_quota_pods) > 0"
    pod = "by (cluster, namespace, pod)"
    is_gated = 'kube_pod_status_reason{reason="SchedulingGated"}'
    # timestamp: as old as it was when it was scraped, since it may have been released in the meantime.
    age = (
        f"max by (cluster) (max {pod} (timestamp({is_gated})) - max {pod} (kube_pod_created)"
        f" and on (cluster, namespace, pod) {is_gated} == 1)"
    )
    # Longer than between two scrapes.
    lately = "max by (cluster) (max_over_time(forecast_seen_gated_longest_seconds[45s]))"
    blind = f"{age} and on (cluster) ({gone_advisor()}) unless on (cluster) {lately}"
    return (
        f"max by (cluster) (forecast_gated_longest_seconds) > {HELD_SECONDS}"
        f" or ({seen} unless on (cluster) ({by_quota})) > {HELD_SECONDS}"
        f" or ({blind}) > {HELD_SECONDS}"
    )
