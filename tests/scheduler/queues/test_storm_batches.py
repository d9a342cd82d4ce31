"""The queue with the units, the sort and the turns of jobs: what is popped of a storm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kube.objects.objects import PodInfo
from kube.tables.state import ClusterState
from placement.status import SUCCESS
from scheduler.queue.options import QueueOptions
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queues.fair_order import FairFlows
from scheduler.queues.options import Order, PodQueue
from scheduler.queues.queue_of import QueueOf
from scheduler.queues.shares import Shares
from scheduler.queues.sorting import FlowSort
from scheduler.queues.units import QueueUnits
from tests.placement.small_cluster import pod_of
from tests.scheduler.queues.queue_pods import PROFILES, a_job_pod, a_node, is_job

NOW = 100_000.0


def batches(pods: Sequence[PodInfo], order: Order) -> list[list[str]]:
    """Names of what is popped, one after the other; the cluster is empty and stays so."""
    state = ClusterState()
    state.put_node(a_node("n", 1000, 1000))
    queue_of = QueueOf([PodQueue(name="default", order=order)], PROFILES)
    now = NOW
    queue = SchedulingQueue(
        sort=FlowSort(queue_of.queues),
        gate=lambda pod: SUCCESS,
        hints=lambda pod: {},
        units=QueueUnits(
            None, is_job=is_job, due=lambda pod: float(pod.annotations.get("due", math.inf)), queue_of=queue_of
        ),
        options=QueueOptions(),
        clock=lambda: now,
        flows=FairFlows(queue_of.queues, Shares(state, queue_of=queue_of)),
    )
    for pod in pods:
        queue.put(pod)
        now += 0.001
    popped = []
    while first := queue.pop(most=1024, wait_seconds=0):
        popped.append([queued.pod.name for queued in first.pods])
    return popped


def test_a_storm_of_many_jobs_of_one_owner_is_few_batches() -> None:
    pods = [a_job_pod(f"p{n}", job=f"job-{n // 10}") for n in range(3000)]
    for order in Order:
        assert [len(batch) for batch in batches(pods, order)] == [1024, 1024, 952]


def test_fifo_takes_who_waits_longest_whatever_the_priority() -> None:
    pods = [a_job_pod("a", namespace="a"), a_job_pod("b", namespace="b", priority=5), a_job_pod("c", namespace="c")]
    assert batches(pods, Order.FIFO) == [["a"], ["b"], ["c"]]
    assert batches(pods, Order.PRIORITY) == [["b"], ["a"], ["c"]]
    assert batches(pods, Order.DRF) == [["b"], ["a"], ["c"]]


def test_deadline_takes_who_has_to_start_first_within_a_priority() -> None:
    dues = [("late", 90_000, 0), ("whenever", math.inf, 0), ("soon", 50_000, 0), ("important", 95_000, 1)]
    pods = [a_job_pod(name, annotations={"due": str(NOW + due)}, priority=by) for name, due, by in dues]
    assert batches(pods, Order.DEADLINE) == [["important"], ["soon"], ["late"], ["whenever"]]
    assert batches(pods, Order.PRIORITY) == [["important"], ["late"], ["whenever"], ["soon"]]


def test_a_storm_of_one_owner_leaves_room_for_the_pods_of_others() -> None:
    storm = [a_job_pod(f"s{n}", namespace="storm") for n in range(2000)]
    few = [a_job_pod(f"f{n}", namespace="few") for n in range(5)]
    at = [at for at, batch in enumerate(batches([*storm, *few], Order.DRF)) if "f0" in batch]
    assert at[0] <= 33  # though nothing is charged here, and the storm came first
    online = [replace(pod_of(f"o{n}", owner_uid="web"), uid=f"o{n}") for n in range(5)]
    at = [at for at, batch in enumerate(batches([*storm, *online], Order.FIFO)) if "o0" in batch]
    assert at[0] <= 1
