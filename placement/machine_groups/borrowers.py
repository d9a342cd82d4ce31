"""Follower: who borrows machines of groups, and whether their owners want them back; with its metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import WAITING_SECONDS, waits
from kube.objects.objects import PodInfo
from placement.devices.device_demand import gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.pod_annotations import MACHINE_GROUP, comes_with_node
from placement.machine_groups.membership import Membership, asks_to_borrow


@dataclass(frozen=True, slots=True)
class Lent:
    """Of one group, at the moment.

    pods, milli, cpu : that borrow, thousandths of cards and cores that they request
    waiting          : pods of its owners that name it and have no node
    """

    pods: int = 0
    milli: int = 0
    cpu: float = 0.0
    waiting: int = 0


class GroupUse(NodesAndPodsOnly):
    """Everything but `lent` is called under the lock of the tables. What is remembered is of pods that are there.

    on_change : called under the lock if a group is no longer wanted: it may lend again. The queue is to receive it as
                FORECAST_CHANGED
    """

    def __init__(
        self,
        state: ClusterState,
        membership: Membership,
        devices: DeviceTable | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        devices : None = cards are not counted
        clock   : unix seconds
        """
        self._state, self._membership, self._devices, self._clock = state, membership, devices, clock
        self._borrowers: dict[str, tuple[int, PodInfo]] = {}  # by UID: row, and the pod
        self._waiting: dict[str, dict[str, float]] = {name: {} for name in membership.names}  # group: UID: created
        self.on_change: list[Callable[[], None]] = []
        self._wanted: set[str] = set()  # groups, at the last look
        self.rebuild()

    def is_wanted(self, group: str) -> bool:
        """Whether pods of its owners wait for a machine of the group, ten minutes long at most: one that has found none
        by then may never, as a pod that asks for more than any machine has."""
        now = self._clock()
        return any(_is_heeded(created, now) for created in self._waiting.get(group, {}).values())

    def look(self) -> None:
        """Time has passed, or pods have gone: is what was wanted wanted no more?"""
        before, self._wanted = self._wanted, {name for name in self._waiting if self.is_wanted(name)}
        for listener in self.on_change if before - self._wanted else ():
            listener()

    def lent(self) -> dict[str, Lent]:
        """By name of the group. Without the lock: each figure is right by itself."""
        found = {name: Lent(waiting=len(waiting)) for name, waiting in self._waiting.items()}
        for name, pod in self._lendings():
            demand = None if self._devices is None else gpu_demand(pod, self._devices.options)
            milli = 0 if demand is None else demand.count * demand.milli
            so_far = found[name]
            cpu = so_far.cpu + pod.requests.get("cpu", 0.0)
            found[name] = Lent(so_far.pods + 1, so_far.milli + milli, cpu, so_far.waiting)
        return found

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        has_ended = False
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                has_ended |= self._pod_changed(change.pod, None if change.after is None else change.after.node)
        if has_ended:
            self.look()

    def rebuild(self) -> None:
        """From the tables as they are."""
        self._borrowers.clear()
        for waiting in self._waiting.values():
            waiting.clear()
        for uid, pod in self._state.pods.items():
            seat = self._state.seat_of.get(uid)
            self._pod_changed(pod, None if seat is None else seat.node)
        self.look()

    # Inside

    def _pod_changed(self, pod: PodInfo, row: int | None) -> bool:
        """Whether it waited for a machine of a group, and does so no more."""
        uid = pod.uid
        if row is not None and asks_to_borrow(pod) and not comes_with_node(pod):
            self._borrowers[uid] = (row, pod)
        else:
            self._borrowers.pop(uid, None)
        is_to_be_placed = row is None and uid in self._state.pods and waits(pod) and not (pod.gates or pod.terminating)
        named = self._membership.owned_by(pod) if is_to_be_placed else ()
        has_ended = False
        for name, waiting in self._waiting.items():
            if name in named:
                waiting[uid] = pod.created
                if _is_heeded(pod.created, self._clock()):
                    self._wanted.add(name)
            elif waiting.pop(uid, None) is not None:
                has_ended = True
        return has_ended

    def _lendings(self) -> Iterator[tuple[str, PodInfo]]:
        """Groups and the pods that borrow machines of theirs."""
        for row, pod in list(self._borrowers.values()):
            node = self._state.nodes[row] if row < len(self._state.nodes) else None
            name = "" if node is None else node.labels.get(MACHINE_GROUP, "")
            if name in self._waiting and name not in self._membership.owned_by(pod):
                yield name, pod


def _is_heeded(created: float, now: float) -> bool:
    return now < created + WAITING_SECONDS


class GroupCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(self, use: GroupUse) -> None:
        self._use = use

    def collect(self) -> Iterator[Metric]:
        """Of all groups that lend."""
        lent = self._use.lent()
        gauges = {
            "forecast_gpu_group_borrowing_pods": "Pods that borrow machines of a group that is not theirs.",
            "forecast_gpu_group_borrowed_thousandths": "Thousandths of cards that these pods request.",
            "forecast_gpu_group_borrowed_cpu_cores": "Cores that these pods request.",
            "forecast_gpu_group_waiting_owner_pods": "Pods of a group's owners that name it and have no node.",
        }
        families = [GaugeMetricFamily(name, text, labels=["group"]) for name, text in gauges.items()]
        for group, figures in lent.items():
            values = (figures.pods, figures.milli, figures.cpu, figures.waiting)
            for family, value in zip(families, values, strict=True):
                family.add_metric([group], float(value))
        yield from families
