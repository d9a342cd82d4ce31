"""NUMA zones and physical cores hold for pods of every profile, through the loop that `schedule` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_object, made_pod
from tests.forecast_scheduler.test_dry_run import by_name, plan

PROFILES = {"online": "forecast-scheduler", "gpu": "gpu-scheduler", "job": "job-scheduler"}

every_profile = pytest.mark.parametrize("scheduler", PROFILES.values(), ids=PROFILES)


def topology(node: str, *available: int, policy: str = "single-numa-node", **further: str) -> dict[str, Any]:
    """Zones of 16 CPUs with so many left; further: attributes."""
    said = {"topologyManagerPolicy": policy, "topologyManagerScope": "pod", "threadsPerCore": "2", **further}
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [{"name": "cpu", "capacity": "16", "allocatable": "16", "available": str(left)}],
        }
        for number, left in enumerate(available)
    ]
    made = made_object("NodeResourceTopology", node, "topology.node.k8s.io/v1alpha2", zones=zones)
    return {**made, "attributes": [{"name": name, "value": value} for name, value in said.items()]}


def whole_cores(name: str, scheduler: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    containers = [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]
    return made_pod(name, scheduler=scheduler, containers=containers)


def planned(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], scheduler: str, cpu: str, *topologies: dict[str, Any]
) -> dict[str, Any]:
    """What becomes of one pod on nodes of 32 CPUs with these topologies."""
    nodes = [made_node(one["metadata"]["name"], cpu="32") for one in topologies]
    cluster = cluster_file(tmp_path, *nodes, *topologies, whole_cores("asks", scheduler, cpu))
    return by_name(plan(capfd, cluster, "--profile", ",".join(PROFILES)))["asks"]


@every_profile
@pytest.mark.parametrize(
    ("policy", "cpu"), [("single-numa-node", "7"), ("single-numa-node", "17"), ("restricted", "12")]
)
def test_a_pod_goes_where_the_kubelet_admits_it(
    scheduler: str, policy: str, cpu: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    split, other = topology("split", 6, 6, policy=policy), topology("other", 6, 6, policy="none")
    assert planned(tmp_path, capfd, scheduler, cpu, split, other)["node"] == "other"
    alone = planned(tmp_path, capfd, scheduler, cpu, split)
    assert alone["node"] is None and "1 node(s) cannot align pod" in alone["message"]


@every_profile
def test_a_core_in_use_is_filled_first(scheduler: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first of two equal nodes has the core in use, then the second."""
    for left in ((15, 16), (16, 15)):
        nodes = [topology(f"n-{at}", one, one) for at, one in enumerate(left)]
        assert planned(tmp_path, capfd, scheduler, "1", *nodes)["node"] == f"n-{left.index(15)}"
