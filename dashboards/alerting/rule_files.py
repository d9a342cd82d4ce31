"""Which files do the rules come in? Rule files of Prometheus, and the same as objects of the Prometheus operator.

prometheus/peaks.yaml                  actual peaks (peaks.py, services.py)
prometheus/alerts.yaml                 alerts
kubernetes/prometheus-rules.yaml       PrometheusRules: these two, and the recording rules that the trainer reads
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dashboards.alerting.advisor_alerts import advisor_alerts
from dashboards.alerting.alert import Alert
from dashboards.alerting.autoscaling_alerts import autoscaling_alerts
from dashboards.alerting.causes import graded
from dashboards.alerting.forecast_alerts import forecast_alerts
from dashboards.alerting.gpu_and_job_alerts import gpu_and_job_alerts
from dashboards.alerting.loop_alerts import loop_alerts
from dashboards.alerting.operating_alerts import operating_alerts
from dashboards.alerting.peaks import INTERVAL_SECONDS, node_peaks
from dashboards.alerting.rebalancing_alerts import rebalancing_alerts
from dashboards.alerting.services import service_peaks
from dashboards.alerting.tenant_alerts import tenant_alerts
from forecast.hot_share import HOT_SHARE
from trainer.prometheus.prometheus_settings import PrometheusOptions
from trainer.prometheus.recording_rules import of_cluster, prometheus_rule, rule_file, rule_file_text

RUNBOOKS: Final = "docs/operate/alerts.md"
"""Where the runbooks are, from the top of the repository. `--runbooks` gives the address where the page is hosted."""

_OFTEN: Final = {"forecast-advice": {"interval": "10s"}}
"""Groups that Prometheus evaluates more often than it does others: pods that are held wait for a person."""

_MADE_BY: Final = "python -m dashboards"


def files(
    runbooks: str = RUNBOOKS, settings: PrometheusOptions | None = None, hot: float = HOT_SHARE
) -> dict[str, str]:
    """Path below dashboards/ -> text.

    runbooks : address of docs/operate/alerts.md, where alerts link to
    settings : queries that are recorded, and the cluster that all rules are about
    hot      : share of its capacity above which a node is hot
    """
    settings = settings or PrometheusOptions()
    cluster = settings.cluster
    peaks, alerts = of_cluster(_peaks(), cluster), of_cluster(_alerts(runbooks, cluster, hot), cluster)
    recording = rule_file(settings.templates, settings.step_seconds, settings.log_source, cluster)
    objects = (
        prometheus_rule(recording, name="forecast-scheduler-recording"),
        prometheus_rule(peaks, name="forecast-scheduler-peaks"),
        prometheus_rule(alerts, name="forecast-scheduler-alerts"),
    )
    return {
        "prometheus/peaks.yaml": rule_file_text(peaks, made_by=_MADE_BY),
        "prometheus/alerts.yaml": rule_file_text(alerts, made_by=_MADE_BY),
        "kubernetes/prometheus-rules.yaml": rule_file_text(*objects, made_by=_MADE_BY),
    }


def alert_groups(hot: float = HOT_SHARE) -> dict[str, list[Alert]]:
    """All alerts, by the name of their group. hot: share of its capacity above which a node is hot"""
    groups = {
        "forecast": forecast_alerts(hot),
        "forecast-advice": advisor_alerts(),
        "forecast-scheduling": loop_alerts(),
        "forecast-rebalancing": rebalancing_alerts(),
        "forecast-autoscaling": autoscaling_alerts(),
        "forecast-gpus-and-jobs": gpu_and_job_alerts(),
        "forecast-tenants": tenant_alerts(),
        "forecast-operating": operating_alerts(),
    }
    return {name: graded(alerts) for name, alerts in groups.items()}


def _peaks() -> dict[str, Any]:
    interval = f"{INTERVAL_SECONDS}s"
    groups = {"forecast-node-peaks": node_peaks(), "forecast-service-peaks": service_peaks()}
    return {"groups": [{"name": name, "interval": interval, "rules": rules} for name, rules in groups.items()]}


def _alerts(runbooks: str, cluster: Mapping[str, str], hot: float) -> dict[str, Any]:
    return {
        "groups": [
            {"name": name, **_OFTEN.get(name, {}), "rules": [alert.rule(runbooks, cluster) for alert in alerts]}
            for name, alerts in alert_groups(hot).items()
        ]
    }
