"""The rules beside the code are what the code makes, valid, and the same for the operator; all of them are shipped."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards.alerting import RUNBOOKS, files
from dashboards.alerting.rule_files import alert_groups
from dashboards.alerting.runbooks import runbook_page
from testing.servers.prometheus import promtool
from trainer.prometheus.prometheus_settings import PrometheusOptions

ROOT: Final = Path(__file__).parents[2]
DASHBOARDS: Final = ROOT / "dashboards"
RULES: Final = ("prometheus/peaks.yaml", "prometheus/alerts.yaml")


def _groups(path: str) -> Any:
    return yaml.safe_load((DASHBOARDS / path).read_text())["groups"]


@pytest.mark.parametrize("path", list(files()))
def test_files_are_up_to_date(path: str) -> None:
    assert (DASHBOARDS / path).read_text() == files()[path], "run make dashboards"


def test_the_page_of_runbooks_is_up_to_date() -> None:
    assert (ROOT / RUNBOOKS).read_text() == runbook_page(), "run make dashboards"


def test_promtool_accepts_them() -> None:
    n_alerts = sum(map(len, alert_groups().values()))
    said = promtool("check", "rules", *(DASHBOARDS / path for path in RULES)).stdout
    assert "19 rules found" in said and f"{n_alerts} rules found" in said


def test_the_operators_objects_hold_the_same_rules() -> None:
    objects = list(yaml.safe_load_all((DASHBOARDS / "kubernetes" / "prometheus-rules.yaml").read_text()))
    assert [one["spec"]["groups"] for one in objects] == [_groups("recording-rules.yaml"), *map(_groups, RULES)]
    assert {one["kind"] for one in objects} == {"PrometheusRule"}
    assert len({one["metadata"]["name"] for one in objects}) == len(objects)


def test_rules_for_one_cluster_of_several_select_it_and_record_it(tmp_path: Path) -> None:
    settings = PrometheusOptions(cluster={"k8s": "eu"}, queries={"pod_cpu": "my_cpu"})
    for path, text in files(settings=settings).items():
        (tmp_path / Path(path).name).write_text(text)
    promtool("check", "rules", *(tmp_path / Path(path).name for path in RULES))
    for one in yaml.safe_load_all((tmp_path / "prometheus-rules.yaml").read_text()):
        for rule in (rule for group in one["spec"]["groups"] for rule in group["rules"]):
            assert rule["labels"]["k8s"] == "eu" and 'k8s="eu"' in rule["expr"], rule
    assert 'expr: my_cpu{k8s="eu"}' in (tmp_path / "prometheus-rules.yaml").read_text()


def test_peaks_are_recorded_often_enough_to_be_seen() -> None:
    """An instant query looks five minutes back; what is recorded from others comes after them."""
    for group in _groups("prometheus/peaks.yaml"):
        assert group["interval"] == "300s"
        assert _read_too_early(group["rules"]) == []


def _read_too_early(rules: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Who reads what is recorded after it, and what that is."""
    records = [rule["record"] for rule in rules]
    return [
        (rule["record"], name)
        for number, rule in enumerate(rules)
        for name in records[number:]
        if re.search(rf"(?<![\w:]){re.escape(name)}(?![\w:])", rule["expr"])
    ]


def test_kustomize_takes_every_dashboard_and_every_rule() -> None:
    kustomization = yaml.safe_load((DASHBOARDS / "kustomization.yaml").read_text())
    taken = {file for one in kustomization["configMapGenerator"] for file in one["files"]}
    assert taken == {str(path.relative_to(DASHBOARDS)) for path in DASHBOARDS.glob("grafana/*.json")}
    assert kustomization["resources"] == ["kubernetes/prometheus-rules.yaml"]
    assert kustomization["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}


def test_the_check_names_files_that_are_not_up_to_date(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dashboards", "--output", str(tmp_path), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    written = run("--runbooks", "https://git.example.org/alerts.md")
    assert written.returncode == 0, written.stderr
    checked = run("--check")
    assert checked.returncode == 1
    for path in ("prometheus/alerts.yaml", "kubernetes/prometheus-rules.yaml"):
        assert f"{tmp_path / path} is not what the code makes" in checked.stderr
    assert "peaks.yaml" not in checked.stderr
    (tmp_path / "settings.yaml").write_text("prometheus: {cluster: {cluster: eu}}")
    checked = run("--check", "--config", str(tmp_path / "settings.yaml"))
    assert checked.returncode == 1 and "peaks.yaml" in checked.stderr and "grafana/peaks.json" in checked.stderr
