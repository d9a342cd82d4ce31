"""Every alert fires where it should, says what it should, and is silent where things are just not bad enough."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards.alerting.alert import Alert
from dashboards.alerting.rule_files import RUNBOOKS, alert_groups, files
from tests.dashboards.alert_scenes import SCENES
from tests.dashboards.promtool_tests import run_rule_tests, series
from tests.dashboards.scene import Scene
from trainer.prometheus.prometheus_settings import PrometheusOptions

ROOT: Final = Path(__file__).parents[2]
ALERTS: Final = ROOT / "dashboards" / "prometheus" / "alerts.yaml"
RUNBOOK_PAGE: Final = ROOT / RUNBOOKS
_LONG_MINUTES: Final = 600

# Series may have a label `cluster` or not: each scene is there twice, and alerts fire for both without mixing them.

CLUSTERS: Final[tuple[dict[str, str], ...]] = ({}, {"cluster": "eu-1"})


def _alerts() -> Iterator[Alert]:
    for alerts in alert_groups().values():
        yield from alerts


def _by_name() -> dict[str, list[Alert]]:
    found: dict[str, list[Alert]] = defaultdict(list)
    for alert in _alerts():
        found[alert.name].append(alert)
    return dict(found)


def _checks(scene: Scene, clusters: Sequence[Mapping[str, str]] = CLUSTERS) -> dict[str, Any]:
    """What is to be seen in a scene: series, and what is asked of the alert, which fires in the clusters."""
    rules = {alert.severity.value: alert for alert in _by_name()[scene.alert]}
    annotations = {name: rule.rule(RUNBOOKS)["annotations"] for name, rule in rules.items()}
    fires = [
        {
            "exp_labels": {**scene.alert_labels(), **cluster, "severity": severity},
            "exp_annotations": {**annotations[severity], "summary": summary},
        }
        for severity, summary in scene.fires.items()
        for cluster in clusters
    ]
    silent = "|".join(sorted(set(rules) - set(scene.fires)))
    at = f"{scene.at}m"
    # Not even pending: an alert that has to last would be silent for that alone.
    none = {"eval_time": at, "expr": f'ALERTS{{alertname="{scene.alert}",severity=~"{silent}"}}', "exp_samples": []}
    return {
        "input_series": [
            *(one.with_labels(cluster).written() for one in scene.given for cluster in clusters),
            *(one.written() for one in scene.elsewhere),
        ],
        "alert_rule_test": [{"eval_time": at, "alertname": scene.alert, "exp_alerts": fires}],
        "promql_expr_test": [none] if silent else [],
    }


def _metrics(scene: Scene) -> tuple[set[str], set[str]]:
    """Metrics that the scene has, and those that its alert reads."""
    read = {name for alert in _by_name()[scene.alert] for name in _METRIC.findall(alert.expression)}
    return {one.name for one in scene.given}, read


_METRIC: Final = re.compile(r"\b(?:forecast[\w:]+|kube_pod_\w+|process_start_time_seconds|up)\b")


def _together(scenes: Sequence[Scene]) -> list[dict[str, Any]]:
    """As few tests as possible, each costs promtool half a second: scenes of other metrics do not see each other."""
    groups: list[tuple[set[str], set[str], list[Scene]]] = []
    for scene in scenes:
        given, read = _metrics(scene)
        apart = (one for one in groups if not given & (one[0] | one[1]) and not read & one[0])
        there, asked, members = next(apart, (set[str](), set[str](), list[Scene]()))
        if not members:
            groups.append((there, asked, members))
        there |= given
        asked |= read
        members.append(scene)
    tests = []
    for _, _, members in groups:
        test: dict[str, Any] = {"name": "; ".join(f"{one.alert}: {one.about}" for one in members), "interval": "1m"}
        for scene in members:
            for key, value in _checks(scene).items():
                test.setdefault(key, []).extend(value)
        tests.append(test)
    return tests


@pytest.mark.parametrize("every", ["5m", "30m"])  # of scenes that last a day or two; every minute takes far longer
def test_alerts_fire_and_are_silent(tmp_path: Path, every: str) -> None:
    scenes = [scene for scene in SCENES if (scene.at > _LONG_MINUTES) == (every == "30m")]
    complaints = run_rule_tests(tmp_path, [ALERTS], _together(scenes), every=every)
    assert not complaints, complaints


_ASKS_OR_NOT: Final = ("ForecastHotSpotTonight", "ForecastModelStale")
"""Alerts with and without a query in their summary."""


def test_alerts_for_one_cluster_of_several_see_that_one_alone(tmp_path: Path) -> None:
    """Also the nodes that a summary names, which its template asks for; elsewhere are the same series once more."""
    chosen = {"cluster": "50 % of it", "env": "prod"}
    rules = tmp_path / "alerts.yaml"
    rules.write_text(files(settings=PrometheusOptions(cluster=chosen))["prometheus/alerts.yaml"])
    scenes = [next(scene for scene in SCENES if scene.alert == name) for name in _ASKS_OR_NOT]
    tests = [
        {"interval": "1m", **_checks(replace(scene, elsewhere=(*scene.elsewhere, *scene.given)), [chosen])}
        for scene in scenes
    ]
    complaints = run_rule_tests(tmp_path, [rules], tests, every="5m")
    assert not complaints, complaints


def test_a_run_that_stays_away_is_told_of_for_longer_than_its_last_success_is_remembered(tmp_path: Path) -> None:
    """Its figures are lost a day later; a week after that nobody knows of them any more, but the model is still old."""
    given = (
        series("forecast_train_last_success_timestamp_seconds", "0+0x360 _x3000", instance="pushgateway"),
        series("forecast_model_age_seconds", "0+240x3360", instance="scorer"),
    )
    firing = 'ALERTS{alertname="ForecastTrainFailed",alertstate="firing"}'
    asked = [
        {"eval_time": f"{hours}h", "expr": f"count({firing})", "exp_samples": [{"labels": "{}", "value": 1}]}
        for hours in (34, 191, 193, 220)
    ]
    test = {"interval": "4m", "input_series": [one.written() for one in given], "promql_expr_test": asked}
    complaints = run_rule_tests(tmp_path, [ALERTS], [test], every="1h")
    assert not complaints, complaints


def test_every_alert_has_a_scene_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    fires = {(scene.alert, severity) for scene in SCENES for severity in scene.fires}
    silent = {
        (scene.alert, alert.severity.value)
        for scene in SCENES
        for alert in _by_name()[scene.alert]
        if alert.severity.value not in scene.fires
    }
    every = {(alert.name, alert.severity.value) for alert in _alerts()}
    assert fires == every and silent == every
    assert len(every) == len(list(_alerts())), "one rule for each severity"


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    sections = re.findall(r"^### (Forecast\w+)$", RUNBOOK_PAGE.read_text(), re.MULTILINE)
    assert sections == list(_by_name()), "in the same order"


def test_links_go_where_runbooks_are_hosted() -> None:
    hosted = "https://git.example.org/platform/forecast-scheduler/docs/operate/alerts.md"
    for text, base in (
        (files()["prometheus/alerts.yaml"], RUNBOOKS),
        (files(hosted)["prometheus/alerts.yaml"], hosted),
    ):
        rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
        assert {rule["annotations"]["runbook_url"] for rule in rules} == {
            f"{base}#{name.lower()}" for name in _by_name()
        }
