"""`rules`: what a user loads into Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from forecast_scheduler.cli import run
from testing.servers.prometheus import promtool

SHIPPED = Path(__file__).parents[3] / "dashboards" / "recording-rules.yaml"


def test_the_shipped_rules_are_the_defaults_and_queries_replace_theirs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules"]) == 0
    assert capfd.readouterr().out == SHIPPED.read_text()
    assert run(["rules", "--output", str(tmp_path / "rules.yaml")]) == 0
    assert (tmp_path / "rules.yaml").read_text() == SHIPPED.read_text()
    config, output = tmp_path / "config.yaml", tmp_path / "rules.yaml"
    config.write_text("prometheus:\n  step: 10m\n  queries:\n    node_cpu: sum by (node) (rate(my_cpu[{window}]))\n")
    assert run(["rules", "--config", str(config), "--output", str(output)]) == 0
    promtool("check", "rules", output)
    rules = [rule for group in yaml.safe_load(output.read_text())["groups"] for rule in group["rules"]]
    expressions = [rule["expr"] for rule in rules if rule.get("labels") == {"resource": "cpu"}]
    assert "sum by (node) (rate(my_cpu[600s]))" in expressions


def test_rules_for_one_cluster_of_a_server_select_its_labels_and_record_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config, output = tmp_path / "config.yaml", tmp_path / "rules.yaml"
    config.write_text("prometheus: {cluster: {cluster: eu-1, env: prod}}\n")
    assert run(["rules", "--config", str(config), "--output", str(output)]) == 0
    promtool("check", "rules", output)
    for group in yaml.safe_load(output.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["cluster"] == "eu-1" and rule["labels"]["env"] == "prod"
            assert 'cluster="eu-1",env="prod"' in rule["expr"]
    config.write_text("prometheus: {cluster: {namespace: eu-1}}\n")
    assert run(["rules", "--config", str(config)]) == 2
    assert "'namespace' tells series of one cluster apart: name a label" in capfd.readouterr().err


def test_the_operator_s_object_carries_name_and_namespace(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--kubernetes", "monitoring/forecast"]) == 0
    rule = yaml.safe_load(capfd.readouterr().out)
    assert (rule["kind"], rule["metadata"]["namespace"], rule["metadata"]["name"]) == (
        "PrometheusRule",
        "monitoring",
        "forecast",
    )


@pytest.mark.parametrize("name", ["forecast", "/forecast", "monitoring/"])
def test_half_a_name_is_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--kubernetes", name]) == 2
    assert "write NAMESPACE/NAME" in capfd.readouterr().err


def test_an_unknown_query_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("prometheus: {queries: {nod_cpu: up}}\n")
    assert run(["rules", "--config", str(config)]) == 2
    assert "'nod_cpu' is no query: did you mean 'node_cpu'?" in capfd.readouterr().err
