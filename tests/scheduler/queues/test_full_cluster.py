"""The queue with the turns of jobs on a full cluster: how many cycles that costs, and who waits for how long."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kube.objects.objects import PodInfo
from kube.tables.state import ClusterState
from placement.plugins import EnqueueExtensions
from placement.status import SUCCESS
from scheduler.queue.options import QueueOptions
from scheduler.queue.queued import Popped
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queues.fair_order import FairFlows
from scheduler.queues.options import FairOptions, Order, PodQueue
from scheduler.queues.queue_of import QueueOf
from scheduler.queues.shares import Shares
from scheduler.queues.sorting import FlowSort
from scheduler.queues.units import QueueUnits
from tests.placement.small_cluster import pod_of
from tests.scheduler.queue.queue_world import FIT, Plugin
from tests.scheduler.queues.queue_pods import PROFILES, a_job_pod, a_node, is_job

CORES = 1000


class FullCluster:
    """Every pod takes a core; free: cores."""

    def __init__(self, options: FairOptions | None = None, free: int = CORES) -> None:
        self.now, self.free, self.sizes, self.seated = 1000.0, free, list[int](), Counter[str]()
        self.state = ClusterState()
        self.state.put_node(a_node("n", CORES, 4 * CORES))
        queue_of = QueueOf([PodQueue(name="default")], PROFILES)
        self.shares = Shares(self.state, queue_of=queue_of)
        hints: Mapping[str, EnqueueExtensions] = {FIT: Plugin(FIT, frozenset(), lambda *_: True)}
        self.queue = SchedulingQueue(
            sort=FlowSort(queue_of.queues),
            gate=lambda pod: SUCCESS,
            hints=lambda pod: hints,
            units=QueueUnits(None, is_job=is_job, due=lambda pod: float("inf"), queue_of=queue_of),
            options=QueueOptions(),
            clock=lambda: self.now,
            flows=FairFlows(queue_of.queues, self.shares, options=options),
        )

    def comes(self, name: str, namespace: str, priority: int = 0) -> None:
        pod = a_job_pod(name, namespace=namespace, priority=priority)
        self.state.put_pod(pod)
        self.queue.put(pod)

    def place(self, popped: Popped) -> None:
        """As many as there are cores for."""
        self.sizes.append(len(popped.pods))
        for queued in popped.pods[: self.free]:
            self.shares.apply(self.state.put_pod(replace(queued.pod, node="n")))
            self.queue.done(queued.pod.uid)
            self.seated[queued.pod.namespace] += 1
        self.queue.rejected(popped.pods[self.free :], frozenset({FIT}), "no room")
        self.free = max(0, self.free - len(popped.pods))

    def place_all(self) -> None:
        while popped := self.queue.pop(most=1024, wait_seconds=0):
            self.place(popped)


def test_a_pod_that_found_no_node_has_its_turn_again_though_more_important_ones_never_end() -> None:
    wait = 30.0
    cluster = FullCluster(FairOptions(longest_wait=wait), free=0)
    cluster.comes("low", "a")
    cluster.place_all()
    tries: list[float] = []
    for second in range(300):
        cluster.now += 1
        cluster.comes(f"high-{second}", "b", priority=9)
        cluster.queue.wake_units({one.unit for one in cluster.queue.waiting()})
        popped = cluster.queue.pop(most=1024, wait_seconds=0)  # one turn a second: something active is always left
        assert popped is not None
        if popped.pods[0].pod.name == "low":
            tries.append(cluster.now)
        cluster.place(popped)
        cluster.comes(f"more-{second}", "b", priority=9)
    between = [b - a for a, b in itertools.pairwise(tries)]
    assert len(tries) >= 8
    assert wait <= statistics.median(between) <= max(between) <= wait + 4


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


def test_a_storm_of_one_owner_leaves_room_for_the_pods_of_others() -> None:
    storm = [a_job_pod(f"s{n}", namespace="storm") for n in range(2000)]
    few = [a_job_pod(f"f{n}", namespace="few") for n in range(5)]
    at = [at for at, batch in enumerate(batches([*storm, *few], Order.DRF)) if "f0" in batch]
    assert at[0] <= 33  # though nothing is charged here, and the storm came first
    online = [replace(pod_of(f"o{n}", owner_uid="web"), uid=f"o{n}") for n in range(5)]
    at = [at for at, batch in enumerate(batches([*storm, *online], Order.FIFO)) if "o0" in batch]
    assert at[0] <= 1
