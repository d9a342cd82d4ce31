"""Owners of different demands on one full cluster, over minutes in which pods end and others take their room."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo, PodPhase
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import EnqueueExtensions
from placement.status import SUCCESS
from scheduler.loop_settings import QueueOptions
from scheduler.queue.queued_pods import QueuedPodInfo
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.quota_queues.fair_order import FairFlows
from scheduler.quota_queues.owner_shares import Shares, dominant
from scheduler.quota_queues.queue_of import QueueOf, QueueOwner
from scheduler.quota_queues.quota_queue_settings import Order, PodQueue
from scheduler.quota_queues.quota_units import FlowSort, QueueUnits
from tests.scheduler.quota_queues.queue_pods import PROFILES, a_job_pod, a_node, is_job

NODES, CPU, MEMORY = 20, 50.0, 200.0
BATCH, WAITING, SECONDS, SETTLED, RUN_SECONDS = 1024, 150, 100, 40, 30.0


@dataclass(frozen=True)
class Demand:
    """Of each pod of an owner, and the share it is entitled to."""

    cpu: float
    memory: float
    weight: float = 1.0


MIXED = {
    "computes": Demand(2, 2),
    "remembers": Demand(1, 12),
    "serves": Demand(1, 4),
    "small": Demand(0.5, 1),
    "large": Demand(4, 8),
}
WEIGHTED = {"a": Demand(1, 2, weight=2.0), "b": Demand(1, 2), "c": Demand(1, 8)}


class FitHint:
    name = "Fit"
    woken_by = frozenset({EventKind.POD_LEFT})

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.QUEUE


class Simulation:
    """Every owner always has pods that wait; each runs for a while and another one of its owner follows it."""

    def __init__(self, owners: Mapping[str, Demand], order: Order) -> None:
        self.now, self.owners, self.rng, self.n_made = 1000.0, owners, random.Random(8), 0
        self.state = ClusterState()
        for number in range(NODES):
            self.state.put_node(a_node(f"n{number}", CPU, MEMORY))
        weights = {owner: demand.weight for owner, demand in owners.items()}
        queue_of = QueueOf([PodQueue(name="default", order=order, owner_weights=weights)], PROFILES)
        self.shares = Shares(self.state, queue_of=queue_of)
        hints: Mapping[str, EnqueueExtensions] = {"Fit": FitHint()}
        self.queue = SchedulingQueue(
            sort=FlowSort(queue_of.queues),
            gate=lambda pod: SUCCESS,
            hints=lambda pod: hints,
            units=QueueUnits(None, is_job=is_job, due=lambda pod: float("inf"), queue_of=queue_of),
            options=QueueOptions(),
            clock=lambda: self.now,
            flows=FairFlows(queue_of.queues, self.shares),
        )
        self.free = [[CPU, MEMORY] for _ in range(NODES)]
        self.running: list[tuple[float, PodInfo]] = []

    def run(self) -> dict[str, float]:
        """Dominant shares by owner, on average from when things have settled."""
        for owner in self.owners:
            for _ in range(WAITING + 1000):
                self.a_pod_comes(owner)
        sums = dict.fromkeys(self.owners, 0.0)
        for second in range(SECONDS):
            self.now += 1
            self.pods_end()
            while popped := self.queue.pop(most=BATCH, wait_seconds=0):
                self.place(popped.pods)
            if second >= SETTLED:
                for owner in sums:
                    held = self.shares.held(QueueOwner("default", owner))
                    sums[owner] += dominant(held.amounts, self.shares.total)[0]
        return {owner: total / (SECONDS - SETTLED) for owner, total in sums.items()}

    def a_pod_comes(self, owner: str) -> None:
        demand = self.owners[owner]
        self.n_made += 1
        pod = a_job_pod(f"p{self.n_made}", namespace=owner, cpu=demand.cpu, memory=demand.memory)
        self.state.put_pod(pod)
        self.queue.put(pod)

    def place(self, pods: tuple[QueuedPodInfo, ...]) -> None:
        """On the first node that has room, as one cycle does it: what does not fit one does not fit others like it."""
        for at, queued in enumerate(pods):
            pod = queued.pod
            cpu, memory = pod.requests["cpu"], pod.requests["memory"]
            row = next((row for row, free in enumerate(self.free) if free[0] >= cpu and free[1] >= memory), None)
            if row is None:
                self.queue.rejected(pods[at:], frozenset({"Fit"}), "no room")
                return
            self.free[row][0] -= cpu
            self.free[row][1] -= memory
            seated = replace(pod, node=f"n{row}")
            self.shares.apply(self.state.put_pod(seated))
            self.queue.done(pod.uid)
            self.running.append((self.now + self.rng.uniform(0.5, 1.5) * RUN_SECONDS, seated))

    def pods_end(self) -> None:
        ended = [pod for end, pod in self.running if end <= self.now]
        self.running = [(end, pod) for end, pod in self.running if end > self.now]
        for pod in ended:
            row = int(pod.node[1:])
            self.free[row][0] += pod.requests["cpu"]
            self.free[row][1] += pod.requests["memory"]
            self.shares.apply(self.state.put_pod(replace(pod, phase=PodPhase.SUCCEEDED)))
            self.shares.apply(self.state.delete_pod(pod.uid))
            self.a_pod_comes(pod.namespace)
        if ended:
            self.queue.happened(ClusterEvent(EventKind.POD_LEFT, pod=ended[0]))


def ideal_shares(owners: Mapping[str, Demand]) -> dict[str, float]:
    """Progressive filling of the whole cluster: a pod for who has least, until nobody's next pod fits."""
    total = (NODES * CPU, NODES * MEMORY)
    free = list(total)
    shares = dict.fromkeys(owners, 0.0)
    able = set(owners)
    while able:
        owner = min(sorted(able), key=lambda name: shares[name] / owners[name].weight)
        demand = owners[owner]
        if demand.cpu > free[0] or demand.memory > free[1]:
            able.remove(owner)
            continue
        free = [free[0] - demand.cpu, free[1] - demand.memory]
        shares[owner] += max(demand.cpu / total[0], demand.memory / total[1])
    return shares


def furthest_off(owners: Mapping[str, Demand], order: Order) -> float:
    """Of all owners, as a share of what would be ideal."""
    shares, ideal = Simulation(owners, order).run(), ideal_shares(owners)
    return max(abs(shares[owner] / ideal[owner] - 1) for owner in owners)


@pytest.mark.parametrize(
    "owners", [pytest.param(MIXED, id="mixed", marks=pytest.mark.long), pytest.param(WEIGHTED, id="weighted")]
)
def test_shares_are_within_5_percent_of_ideal(owners: Mapping[str, Demand]) -> None:
    assert furthest_off(owners, Order.DRF) < 0.05
