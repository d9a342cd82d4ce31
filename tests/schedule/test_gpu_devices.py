"""Devices on a real API server: each is given out once, whatever is killed meanwhile, and pods say which they have."""

from __future__ import annotations

from collections import Counter

from testing.clusters.gpu_nodes import GPUS, devices_said, gpu_node, gpu_pod, overlapping
from testing.clusters.own_nodes import (
    assert_settled,
    bound,
    condition,
    nodes_of,
)
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.waiting import eventually
from tests.schedule.conftest import Started

PROFILES = {"profiles": ["gpu"]}
GROUP, ROLE = "scheduling.x-k8s.io/pod-group", "forecast-scheduler.io/role"


def settled(writer: ClusterWriter, process: ScorerProcess) -> dict[str, str]:
    """Node by pod; and all devices are as they must be."""
    found = assert_settled(writer, [process], scheduler=GPUS)
    assert overlapping(writer.list_all("pods"), writer.list_all("nodes")) == []
    return found


def the_pod(writer: ClusterWriter, name: str) -> Manifest:
    (found,) = [one for one in writer.list_all("pods") if one["metadata"]["name"] == name]
    return found


def test_whole_shared_and_several_of_two_types(writer: ClusterWriter, start: Started) -> None:
    """All that there is is asked for, thousandth by thousandth, and then a little more."""
    writer.create_many([gpu_node(f"a100-{i}", 4) for i in range(2)] + [gpu_node("t4", 2, model="Tesla-T4")])
    process = start(**PROFILES)
    a100, t4 = {"gpu-type": "A100"}, {"gpu-type": "T4"}
    writer.create(gpu_pod("four", gpus=4, says=a100))
    writer.create_many(gpu_pod(f"two-{i}", gpus=1, says=a100) for i in range(2))
    assert eventually(lambda: bound(writer) == 3), process.log[-3000:]
    writer.create_many(gpu_pod(f"share-{i}", milli=250, says=a100) for i in range(8))
    writer.create_many(gpu_pod(f"t4-{i}", milli=500, says=t4) for i in range(4))
    assert eventually(lambda: bound(writer) == 15), (nodes_of(writer), process.log[-3000:])
    at = settled(writer, process)
    assert {name.partition("-")[0] for name, node in at.items() if node == "t4"} == {"t4"}
    said = devices_said(writer.list_all("pods"))
    shared = Counter(device for name, device in said.items() if name.startswith("share"))
    assert shared == dict.fromkeys({"0", "1", "2", "3"} - {said["two-0"], said["two-1"]}, 4)
    assert said["four"] == "0,1,2,3"

    writer.create_many([gpu_pod("more", milli=1, says=t4), gpu_pod("wrong", milli=1001)])
    assert eventually(lambda: all(all(condition(the_pod(writer, name))) for name in ("more", "wrong")))
    assert "no device with enough free thousandths" in condition(the_pod(writer, "more"))[1]
    assert "it must be a whole number from 1 to 1000" in condition(the_pod(writer, "wrong"))[1]
    writer.delete_many([the_pod(writer, "t4-2")])
    assert eventually(lambda: bound(writer, "more") == 1), process.log[-3000:]
    settled(writer, process)
