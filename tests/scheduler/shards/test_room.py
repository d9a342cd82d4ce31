"""Room of nodes and shards: the lesser of requests and forecast, the scarcer of CPU and memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kube.objects.objects import NodeInfo
from scheduler.shards.room import node_rooms, shard_rooms
from scorer.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info


def node(name: str, cpu: float = 4.0, memory: float = 8.0) -> NodeInfo:
    return node_info(name, allocatable={"cpu": cpu, "memory": memory, "pods": 110.0})


def cluster_of(*nodes: NodeInfo) -> AssumingCluster:
    cluster = AssumingCluster(ScorerOptions(), now=0.0)
    for one in nodes:
        cluster.put(one)
    return cluster


def test_room_is_the_share_of_the_cluster_that_is_not_requested() -> None:
    cluster = cluster_of(node("a"), node("b", cpu=12.0))
    cluster.put(pod_info("pod", node="b", requests={"cpu": 4.0, "memory": 4.0}))
    assert node_rooms(cluster) == pytest.approx(np.array([[0.25, 0.5], [0.5, 0.25]]))


def test_nodes_that_take_no_pods_have_none() -> None:
    cluster = cluster_of(node("a"), replace(node("b"), unschedulable=True), replace(node("c"), ready=False), node("d"))
    cluster.delete(node("d"))
    assert node_rooms(cluster)[1:].max() == 0.0
    assert node_rooms(cluster)[0] == pytest.approx([1 / 3, 1 / 3])


def test_a_shard_has_the_scarcer_of_both_of_its_sums() -> None:
    rooms = np.array([[0.1, 0.3], [0.2, 0.1], [0.5, 0.5], [9.0, 9.0]])
    assert shard_rooms(rooms, np.array([0, 0, 2, -1]), 3) == pytest.approx([0.3, 0.0, 0.5])
