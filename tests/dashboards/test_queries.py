"""Every query of the dashboards against a real Prometheus in which all that they are about happens; no alert there."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from testing.processes.scorer_process import ROOT
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.kubectl.binary import kubectl
from tests.dashboards.grafana_queries import (
    Asked,
    annotation_queries,
    filled_in,
    panel_queries,
    variable_queries,
)
from tests.dashboards.steady_cluster import FIRST_POD
from tests.dashboards.steady_cluster import NODES as CLUSTER_NODES
from tests.dashboards.world import World
from tests.docs.pages import blocks, commands

FOLDER = ROOT / "dashboards" / "grafana"
NAMES = ("gpu-and-jobs", "model", "peaks", "scheduling")

_SHOWN_POD: Final = "shop/cart-7d9c5b6f4-x2x7p"

SHORT_SECONDS: Final = 1800
"""The world is young: what our processes say began minutes ago, and is only a point or two of the range shown first."""

NOT_THERE: Final = {"$cluster"}
"""Variables without values: a Prometheus of one cluster puts no such label on its own series."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("world")) as world:
        yield world


def dashboards() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in NAMES:
        yield name, json.loads((FOLDER / f"{name}.json").read_text())


def figures(world: World, asked: Asked, dashboard: Mapping[str, Any], seconds: int, **chosen: str) -> list[float]:
    """What is drawn: all values that are numbers."""
    query, step = filled_in(asked.query, dashboard, seconds, chosen)
    now = world.now.timestamp()
    if asked.is_instant:
        result = world.ask("query", query=query, time=f"{now:.3f}")["result"]
        pairs = [one["value"] for one in result]
    else:
        # Grafana asks at multiples of the step.
        end = math.ceil(now / step) * step
        asks = {"start": str(end - seconds // step * step), "end": str(end), "step": str(step)}
        result = world.ask("query_range", query=query, **asks)["result"]
        pairs = [pair for one in result for pair in one["values"]]
    values = [float(value) for _, value in pairs]
    return [value for value in values if not math.isnan(value)]


def test_every_panel_has_something_to_show(world: World) -> None:
    empty = []
    for name, dashboard in dashboards():
        for asked in panel_queries(name, dashboard):
            figures(world, asked, dashboard, asked.seconds)  # as it is opened first: no error and no warning
            if not figures(world, asked, dashboard, SHORT_SECONDS):
                empty.append((asked.where, filled_in(asked.query, dashboard, SHORT_SECONDS, {})[0]))
    assert not empty, "\n".join(map(str, empty))


def test_every_mark_is_made(world: World) -> None:
    for name, dashboard in dashboards():
        for asked in annotation_queries(name, dashboard):
            figures(world, asked, dashboard, asked.seconds)
            assert figures(world, asked, dashboard, SHORT_SECONDS), asked


def test_every_variable_has_values_and_narrows(world: World) -> None:
    for name, dashboard in dashboards():
        for where, series, label in variable_queries(name, dashboard):
            match = filled_in(series, dashboard, SHORT_SECONDS, {})[0]
            values = world.ask(f"label/{label}/values", **{"match[]": match})
            assert bool(values) != (f"${label}" in NOT_THERE), where
    name, peaks = "peaks", dict(dashboards())["peaks"]
    shown = [one for one in panel_queries(name, peaks) if "Tonight's hottest nodes: A" in one.where]
    (asked,) = shown
    node = CLUSTER_NODES[0]
    assert len(figures(world, asked, peaks, SHORT_SECONDS, node=node, resource="cpu")) == 1
    assert not figures(world, asked, peaks, SHORT_SECONDS, cluster="another")


def test_no_alert_on_a_healthy_cluster(world: World) -> None:
    rules = [rule for group in world.ask("rules")["groups"] for rule in group["rules"]]
    assert sum(rule["type"] == "alerting" for rule in rules) > 10
    loud = [one["annotations"]["summary"] for rule in rules for one in rule.get("alerts", ())]  # pending ones as well
    assert loud == []
    assert [rule["name"] for rule in rules if rule["health"] != "ok" or rule.get("lastError")] == []


@pytest.mark.parametrize("resource", ["cpu", "memory", "disk", "network", "log"])
def test_what_was_recorded_agrees_with_what_was_made(world: World, resource: str) -> None:
    """The rules of the running server go on where the back-filled series end."""
    recorded = world.value(f'sum(forecast:node_usage_share{{resource="{resource}"}})')
    n_nodes = world.value(f'count(forecast:node_usage_share{{resource="{resource}"}})')
    assert n_nodes == len(CLUSTER_NODES)
    assert 0 < recorded / n_nodes < 1


def test_usage_is_held_against_what_the_model_says_of_all_nodes(world: World) -> None:
    """And what is measured now moves what is predicted away from that."""
    assert world.value('forecast:nodes_compared{resource="cpu"}') == len(CLUSTER_NODES)
    assert world.value('count(forecast:node_error{resource="cpu"})') == len(CLUSTER_NODES)
    predicted, model = (
        f'max by (node) ({name}{{resource="cpu",quantile="0.5",job="forecast-scheduler-scorer"}})'
        for name in ("forecast_node_predicted_usage", "forecast_node_model_usage")
    )
    assert world.value(f"count({model})") >= len(CLUSTER_NODES)
    assert world.value(f"sum(abs({predicted} - {model}))") > 0


def test_every_command_of_the_runbooks_answers(world: World, tmp_path: Path) -> None:
    """Against the processes of this world, with the shipped trainer installed beside them."""
    with Api(world.plane) as api:
        for path, manifest in shipped("base/trainer/trainer.yaml"):
            api.request("POST", path, manifest)
        for name in ("models", "policies.yaml"):
            (tmp_path / name).symlink_to(world.directory / name)
        settings = {"models": {"location": "models"}, "prometheus": {"url": world.prometheus.url}}
        (tmp_path / "settings.yaml").write_text(json.dumps(settings))
        (tmp_path / "kubectl").symlink_to(kubectl())
        given = {
            "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(world.plane.kubeconfig),
            "SCORER": world.processes["scorer"].url,
            "PROMETHEUS": world.prometheus.url,
            "SCHEDULER": world.processes["schedule"].url,
            "REBALANCER": world.processes["rebalancer"].url,
        }
        hottest = world.processes["scorer"].get("/v1/nodes?sort=peak&top=1")["nodes"][0]["name"]
        # Our loops have no Lease here: one replica needs none.
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "forecast-scheduler"}}
        api.request("POST", "/apis/coordination.k8s.io/v1/namespaces/forecast-scheduler/leases", lease)
        runbooks = (ROOT / "docs" / "operate" / "alerts.md").read_text()
        lines = [line for block in blocks(runbooks) if block.language == "console" for line in commands(block)]
        assert len(lines) >= 15
        for line in (one.replace("worker-1", hottest).replace(_SHOWN_POD, "/".join(FIRST_POD)) for one in lines):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", line],
                cwd=tmp_path, env=os.environ | given | {"COLUMNS": "180"}, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            found_nothing = "| grep" in line and done.returncode == 1 and not done.stderr  # which is an answer
            # `status` ends with 1 if something is degraded; here parts are not installed as deploy/ does it.
            is_answer = done.returncode == 0 or (
                done.returncode == 1 and "scheduler status" in line and not done.stderr
            )
            assert is_answer or found_nothing, f"{line}: {done.stdout[-2000:]}{done.stderr}"
            if "models list" in line:  # all four took up the newer model
                assert re.search(r"\* \S+ .* extender 1, rebalancer 1, schedule 1, scorer 1 ", done.stdout), done.stdout
            assert not line.startswith("curl") or isinstance(json.loads(done.stdout), dict), line
        jobs = "/apis/batch/v1/namespaces/forecast-scheduler/jobs"
        assert [one["metadata"]["name"] for one in api.request("GET", jobs)["items"]] == ["train-now"]
