"""Evicts offline pods from GPU nodes whose cores are about to be needed: looks every few seconds, in its own thread.

A replica that does not lead only looks. The next leader decides by the same cluster, and needs nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import numpy as np

from base.periodic_task import PeriodicTask
from cluster.readable_tables import ReadableTables
from kube.client.eviction import Evict, Evicted
from kube.objects.objects import PodInfo
from profiles.gpu.gpu_settings import IdleCpuOptions
from profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from profiles.gpu.idle_cpu.idle_cpu import Devices
from profiles.gpu.idle_cpu.strained_nodes import StrainedNode, plan_leaving, strained_nodes
from profiles.online.upper_bounds import UpperBounds
from scheduler.overcommit.node_relief import NodeRelief, RepairReport
from scheduler.overcommit.repair_victims import RepairPlan

logger = logging.getLogger(__name__)

_SECONDS: Final = 5.0

Tell = Callable[[PodInfo, str, str], None]
"""Posts an event soon, and never waits: the pod it is about, its reason, its note."""


class OfflineEviction:
    """`step` is called again and again by one thread; figures are for any."""

    def __init__(
        self,
        tables: ReadableTables,
        pods: GpuNodePods,
        devices: Devices,
        bounds: UpperBounds,
        options: IdleCpuOptions,
        scheduler_name: str,
        *,
        ceiling: float,
        evict: Evict,
        tell: Tell = lambda pod, reason, note: None,
        may_write: Callable[[], bool] = lambda: True,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        bounds               : of Colocation
        ceiling              : share of a node's CPU that its load should stay below
        scheduler_name       : of the GPU profile
        evict                : api_server_evict(api); it may block
        tell                 : called with pods that are evicted, or would be (EventRecorder.warn)
        may_write            : whether this replica leads
        after                : whether the cluster has been read
        clock                : unix seconds
        """
        self._tables, self._pods, self._devices = tables, pods, devices
        self._bounds, self._options, self._ceiling = bounds, options, ceiling
        self._name, self._tell, self._may_write = scheduler_name, tell, may_write
        self._strained: dict[str, StrainedNode] = {}
        self._would_go: frozenset[str] = frozenset()
        self._n_would_go = 0
        self._relief: NodeRelief[StrainedNode] = NodeRelief(
            lambda: list(self._strained.values()),
            self._planned,
            evict,
            what="a GPU node whose cores are needed",
            may_write=may_write,
            tell=self._evicted,
            clock=clock,
        )
        self._every = PeriodicTask("idle-cpu", _SECONDS, self.step, after=after)

    def start(self) -> None:
        """Begin. Once only."""
        self._every.start()

    def stop(self) -> None:
        """End; an eviction under way is waited for."""
        self._every.stop()

    def step(self) -> None:
        self._strained = {one.node: one for one in self._look()}
        if self._options.evict:
            self._relief.step()
        else:
            self._only_tell()

    # Figures

    @property
    def n_strained(self) -> int:
        """Nodes at the last look whose offline pods have to make room."""
        return len(self._strained)

    @property
    def n_unrelieved(self) -> int:
        """Of these, such as cannot be relieved at the moment."""
        return self._relief.unrepaired

    @property
    def evictions(self) -> Mapping[Evicted, int]:
        """Asked for since the start, by what became of them."""
        return self._relief.evictions

    @property
    def n_would_go(self) -> int:
        """Pods since the start that would have been evicted if evictions were on."""
        return self._n_would_go

    # Inside

    def _look(self) -> list[StrainedNode]:
        with self._tables.reading() as cluster:
            rows = np.array(sorted(self._pods.rows_with_offline), dtype=np.int64)
            rows = rows[self._devices.n_devices[rows] > 0]
            return strained_nodes(cluster, rows, self._pods, self._bounds, self._options, self._ceiling)

    def _planned(self, one: StrainedNode, leaving: Collection[str], refused: Collection[str]) -> RepairPlan:
        return plan_leaving(one, self._name, leaving=leaving, refused=refused)

    def _evicted(self, report: RepairReport) -> None:
        if report.pod is not None:
            self._tell(report.pod, "EvictedFromGpuNode", f"offline, and {self._strained[report.node].why}")

    def _only_tell(self) -> None:
        if not self._may_write():
            return
        would_go = {
            pod.uid: (pod, one) for one in self._strained.values() for pod in self._planned(one, (), ()).victims
        }
        for uid in would_go.keys() - self._would_go:
            pod, one = would_go[uid]
            self._n_would_go += 1
            fields = {"pod": f"{pod.namespace}/{pod.name}", "node": one.node, "why": one.why}
            logger.info("an offline pod would be evicted (evictions are off)", extra=fields)
            self._tell(pod, "WouldBeEvicted", f"evictions are off: offline, and {one.why}")
        self._would_go = frozenset(would_go)
