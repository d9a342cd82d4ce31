"""A queue with plugins, gate and clock that a test sets by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import EnqueueExtensions, FlowOrder, QueueSort
from placement.status import SUCCESS, Code, Status
from scheduler.loop_settings import QueueOptions
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import Popped, UnitOf
from scheduler.queue.scheduling_queue import SchedulingQueue
from tests.placement.small_cluster import node_of, pod_of

BEGIN = 1_000.0
FIT, SPREAD, STRANGE = "NodeResourcesFit", "PodTopologySpread", "Strange"
"""Woken by nodes of the pod's zone; by pods that came or left; without hints."""


def a_pod(
    name: str,
    *,
    unit: str = "",
    gang: str = "",
    zone: str = "",
    priority: int = 0,
    flow: str = "",
    due: float = math.inf,
) -> PodInfo:
    """A pod of a unit: of a PodGroup, or of a controller, or alone."""
    labels = {"zone": zone} | ({"gang": gang} if gang else {})
    labels |= ({"flow": flow} if flow else {}) | ({"due": str(due)} if due < math.inf else {})
    return replace(pod_of(name, labels, owner_uid=unit), uid=name, priority=priority)


def node_added(zone: str = "") -> ClusterEvent:
    """A new node of a zone."""
    return ClusterEvent(EventKind.NODE_ADDED, node=node_of("new", {"zone": zone}))


@dataclass
class Plugin:
    """A plugin with hints; `asked` counts."""

    name: str
    woken_by: frozenset[EventKind]
    says: Callable[[PodInfo, ClusterEvent], bool]
    asked: int = 0

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        self.asked += 1
        return Hint.QUEUE if self.says(pod, event) else Hint.SKIP


def _fits(pod: PodInfo, event: ClusterEvent) -> bool:
    node: NodeInfo | None = event.node
    return node is None or node.labels.get("zone") == pod.labels["zone"]


@dataclass
class World:
    """gated: reasons by UID; waits: seconds by UID; since: of gangs."""

    options: QueueOptions = field(default_factory=QueueOptions)
    sort: QueueSort = field(default_factory=PrioritySort)
    flows: FlowOrder | None = None
    now: float = BEGIN
    gated: dict[str, str] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    since: dict[str, float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fit = Plugin(FIT, frozenset({EventKind.NODE_ADDED}), _fits)
        self.spread = Plugin(SPREAD, frozenset({EventKind.POD_BOUND, EventKind.POD_LEFT}), lambda *_: True)
        self.plugins: dict[str, EnqueueExtensions] = {FIT: self.fit, SPREAD: self.spread}
        self.gate_asked = 0
        self.queue = SchedulingQueue(
            sort=self.sort,
            gate=self.gate,
            hints=self.hints,
            units=self,
            options=self.options,
            clock=lambda: self.now,
            flows=self.flows,
        )

    def unit_of(self, pod: PodInfo) -> UnitOf:
        flow, due = pod.labels.get("flow", ""), float(pod.labels.get("due", math.inf))
        if gang := pod.labels.get("gang"):
            return UnitOf(gang, self.since.get(gang), True, flow, due)
        return UnitOf(pod.owner_uid or f"pod:{pod.uid}", None, False, flow, due)

    def gate(self, pod: PodInfo) -> Status:
        self.gate_asked += 1
        if pod.uid in self.waits:
            return Status(Code.WAIT, "Pause", "pauses", self.waits[pod.uid])
        if pod.uid in self.gated:
            return Status(Code.UNRESOLVABLE, "Gate", self.gated[pod.uid])
        return SUCCESS

    def hints(self, pod: PodInfo) -> Mapping[str, EnqueueExtensions]:
        return self.plugins

    def put(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.queue.put(pod)

    def pop(self, most: int = 100) -> Popped | None:
        return self.queue.pop(most=most, wait_seconds=0)

    def popped(self, most: int = 100) -> list[str]:
        """UIDs of what is popped next."""
        first = self.pop(most)
        return [] if first is None else [queued.pod.uid for queued in first.pods]

    def reject(self, *by: str, most: int = 100, message: str = "0/3 nodes are available") -> list[str]:
        """Pop, and find no node."""
        first = self.pop(most)
        assert first is not None
        self.queue.rejected(first.pods, frozenset(by), message)
        return [queued.pod.uid for queued in first.pods]

    def after(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds
        self.queue.tick()

    def parts(self) -> dict[str, str]:
        """Part by UID."""
        return {waiting.uid: waiting.part.value for waiting in self.queue.waiting()}

    def all_popped(self) -> Iterable[list[str]]:
        """One after the other until nothing is active."""
        while first := self.popped():
            yield first
