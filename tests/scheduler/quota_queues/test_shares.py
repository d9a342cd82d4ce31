from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from scheduler.quota_queues.owner_shares import OwnerShare, OwnerUse, ShareGauges, Shares, dominant, pods_to_level
from scheduler.quota_queues.queue_of import QUEUE_ANNOTATION, QueueOf, QueueOwner
from scheduler.quota_queues.quota_queue_settings import PodQueue
from tests.scheduler.quota_queues.queue_pods import PROFILES, a_job_pod, a_node

A, B = QueueOwner("default", "a"), QueueOwner("default", "b")


class Cluster:
    """The tables, and shares that follow them."""

    def __init__(self, *nodes: NodeInfo, otherwise: Callable[[NodeInfo], bool] = lambda node: False) -> None:
        self.state, self.otherwise = ClusterState(), otherwise
        for node in nodes:
            self.state.put_node(node)
        self.shares = self.counted_anew()

    def counted_anew(self) -> Shares:
        queue_of = QueueOf([PodQueue(name="other")], PROFILES)
        return Shares(
            self.state,
            queue_of=queue_of,
            counts=lambda node: not node.name.startswith("virtual"),
            otherwise=self.otherwise,
        )

    def put(self, pod: PodInfo) -> None:
        self.shares.apply(self.state.put_pod(pod))

    def delete(self, uid: str) -> None:
        self.shares.apply(self.state.delete_pod(uid))

    def put_node(self, node: NodeInfo) -> None:
        self.shares.apply(self.state.put_node(node))


def test_like_pods_that_are_assumed_at_once_are_charged_at_once() -> None:
    cluster = Cluster(a_node("n", 10, 100))
    pods = [a_job_pod(f"p{n}", namespace="a", cpu=0.5) for n in range(4)]
    for pod in pods:
        cluster.put(pod)
    cluster.shares.apply([cluster.state.seat_all(pods, [0] * 4)])
    assert cluster.shares.held(A) == OwnerUse(4, (2.0, 4.0))
    cluster.put(replace(pods[0], node="n"))  # the watch says so, too
    assert cluster.shares.held(A) == OwnerUse(4, (2.0, 4.0))


def test_a_pod_that_sits_stays_with_the_queue_it_came_from() -> None:
    cluster = Cluster(a_node("n", 10, 100))
    pod = a_job_pod("p", namespace="a", node="n")
    cluster.put(pod)
    cluster.put(replace(pod, annotations={QUEUE_ANNOTATION: "other"}, requests={"cpu": 3.0, "memory": 1.0}))
    assert cluster.shares.held(A) == OwnerUse(1, (3.0, 1.0))


def test_the_total_is_that_of_the_nodes_that_count() -> None:
    cluster = Cluster(a_node("n", 10, 100), a_node("virtual-1", 1e6, 1e6))
    assert cluster.shares.total == (10.0, 100.0)
    cluster.put_node(a_node("m", 5, 50))
    cluster.put_node(a_node("n", 20, 100))
    assert cluster.shares.total == (25.0, 150.0)
    cluster.shares.apply(cluster.state.delete_node("m"))
    assert cluster.shares.total == (20.0, 100.0)


def test_a_resource_that_a_node_brings_counts_from_then_on() -> None:
    cluster = Cluster(a_node("n", 10, 100))
    cluster.put(a_job_pod("p", namespace="a", node="n", further={"nvidia.com/gpu": 2.0, "x.com/y": 1.0}))
    assert cluster.shares.held(A).amounts == (1.0, 1.0)
    cluster.put_node(a_node("g", 10, 100, nvidia_gpu=1.0, nvidia__gpu=4.0))
    assert cluster.shares.resources == ("cpu", "memory", "nvidia/gpu")
    cluster.put_node(replace(a_node("g", 10, 100), allocatable={"cpu": 10.0, "memory": 100.0, "nvidia.com/gpu": 4.0}))
    assert cluster.shares.resources == ("cpu", "memory", "nvidia.com/gpu")
    assert cluster.shares.report() == (OwnerShare("default", "a", 1, 0.5, "nvidia.com/gpu"),)


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.sampled_from(["", "n", "m", "gone", "ended"])), max_size=30
)


@given(steps=STEPS)
def test_following_is_as_good_as_counting_anew(steps: list[tuple[int, str, str]]) -> None:
    cluster = Cluster(a_node("n", 10, 100), a_node("m", 10, 100))
    for number, namespace, then in steps:
        pod = a_job_pod(f"p{number}", namespace=namespace, cpu=0.1 * (number + 1))
        if then == "gone":
            cluster.delete(pod.uid)
        elif then == "ended":
            cluster.put(replace(pod, node="n", phase=PodPhase.FAILED))
        else:
            cluster.put(replace(pod, node=then))
        anew = cluster.counted_anew()
        for member in (A, B):
            assert cluster.shares.held(member).n_pods == anew.held(member).n_pods
            assert cluster.shares.held(member).amounts == pytest.approx(anew.held(member).amounts)


def test_what_owners_hold_is_exported() -> None:
    state = ClusterState()
    state.put_node(a_node("n", 10, 100))
    state.put_pod(a_job_pod("p", namespace="a", node="n", cpu=2))
    registry = CollectorRegistry()
    registry.register(ShareGauges(Shares(state, queue_of=QueueOf([], PROFILES))))
    labels = {"queue": "default", "owner": "a"}
    assert registry.get_sample_value("forecast_queue_owner_pods", labels) == 1
    assert registry.get_sample_value("forecast_queue_owner_dominant_share", labels) == 0.2


AMOUNTS = st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0, 10.0]), min_size=3, max_size=3).map(tuple)


@given(used=AMOUNTS, demand=AMOUNTS, total=AMOUNTS, share=st.sampled_from([0.1, 0.5, 0.9]))
def test_it_is_as_if_pods_were_added_one_by_one(
    used: tuple[float, ...], demand: tuple[float, ...], total: tuple[float, ...], share: float
) -> None:
    fewest = pods_to_level(used, demand, total, share)
    if fewest == math.inf:
        assert not any(one > 0 and of_all > 0 for one, of_all in zip(demand, total, strict=True))
        return
    # Only what it asks for counts: of the rest it may have more than its share already.
    held = [one if asked > 0 else 0.0 for one, asked in zip(used, demand, strict=True)]
    n_pods = 0
    while dominant(held, total)[0] < share - 1e-6:
        held = [one + more for one, more in zip(held, demand, strict=True)]
        n_pods += 1
    assert fewest == n_pods
