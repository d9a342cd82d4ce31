"""Extension points of a scheduling cycle, with the vocabulary of the Kubernetes scheduling framework
(https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/).

    queue      QueueSort  FlowOrder  PreEnqueue                       FlowOrder is ours: whose turn it is
    cycle      Filter -> PostFilter (nothing fits)                     filters/filter.py, with PreFilter in one
                      -> NodePreference                                ours: which of the nodes that fit come first
                      -> Score -> Reserve                              scores/node_score.py, with PreScore in one
    binding    PreBind -> Bind -> PostBind                             slow, many at a time
               Unreserve after any failure from Reserve on

Filters and scores look at all nodes at once: arrays with one entry per row of the tables, not a call per node. A plugin
is stateless or guards itself; everything of the cycle is called by one thread, under the lock of the tables. A plugin
that raises fails the pod, not the scheduler.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, Filter, Rejection
from placement.status import Status


class EnqueueExtensions(Protocol):
    """A plugin that rejects says what may change its mind: every Filter, and every PostFilter."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Whether the event may make the plugin accept the pod. Quick: asked under the lock of the tables."""

    @property
    def woken_by(self) -> frozenset[EventKind]:
        """Kinds of events worth asking about."""


@dataclass(frozen=True, slots=True)
class SortedUnit:
    """What units are sorted by.

    since : unix seconds of its oldest waiting pod, or of its PodGroup's creation
    due   : unix seconds, the latest moment it may start; inf = whenever
    flow  : that it is of: units of one flow are sorted among themselves, FlowOrder decides between flows
    """

    priority: int
    since: float
    key: str
    due: float = math.inf
    flow: str = ""


class QueueSort(Protocol):
    """One per scheduler: all profiles share one queue."""

    def key(self, unit: SortedUnit) -> tuple[float, ...]:
        """Units of the lowest key come first; equal ones by `SortedUnit.key`."""


class Pick(Enum):
    """Which unit of a flow goes next."""

    FIRST = "first"  # as QueueSort has it
    DUE = "due"  # the one that has to start first, of the highest priority that any with such a time has
    LONGEST = "longest"  # the one whose pods were left alone longest


@dataclass(frozen=True, slots=True)
class FlowHead:
    """A flow that has active pods.

    first       : its unit that QueueSort has first
    pod         : the first pod of that
    due         : its unit for Pick.DUE; None = none of its units has a due time
    waits_since : the queue's own seconds, when the pod for Pick.LONGEST was let into the queue, or last tried
    n_pods      : active pods, or more than half as many
    """

    flow: str
    first: SortedUnit
    pod: PodInfo
    due: SortedUnit | None = None
    waits_since: float = math.inf
    n_pods: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """position: of the flow whose turn it is; most: pods of its unit at most, None = as many as the loop takes."""

    position: int
    most: int | None = None
    pick: Pick = Pick.FIRST


class FlowOrder(Protocol):
    """Whose turn it is. Called under the lock of the queue: it must be quick, and must not call the queue."""

    def next(self, heads: Sequence[FlowHead], now: float) -> Turn:
        """heads: one or more, in no particular order; now: the queue's own seconds, which never go back."""

    def taken(self, flow: str, n_pods: int) -> None:
        """Count pods of the flow that were popped, all of a gang; below 0: that many are back without a look."""


class PreEnqueue(Protocol):
    """Asked before a pod enters the active queue, and again whenever it or what it waits for changes."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Anything but success keeps the pod out, without an attempt."""


@dataclass(frozen=True, slots=True)
class Nomination:
    """Where room can be made for a pod.

    node    : name
    victims : pods to evict there, and the rest of gangs that break by that, wherever they are
    """

    node: str
    victims: tuple[PodInfo, ...]


class PostFilter(EnqueueExtensions, Protocol):
    """Asked when no node passes; the first that answers with a nomination decides."""

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Nomination | Status:
        """How room can be made, or why it cannot."""


@dataclass(frozen=True, slots=True)
class Preferred:
    """
    rows : (n_preferred,) those of the nodes that fit among which scores decide, in the order given; never none
    most : like pods that may be placed there before it is asked again, at least 1
    """

    rows: Ints
    most: int


class NodePreference(ABC):
    """Nodes that come first, however well others score. Several of a profile narrow one after the other.

    before_pools : whether it narrows before the pools of a policy: it keeps nodes for pods
    """

    name: str
    before_pools: bool = False

    @abstractmethod
    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """rows: (n_nodes,) ascending, not none, that passed all filters; n_pods: like pods that are to be placed."""

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Return what its answer depends on in addition to what like pods have in common, such as their owner; None =
        nothing. By default each pod is of its own kind.
        """
        return pod.uid


class Reserve(Protocol):
    """Notified when a pod has been given a node; in memory, in the cycle."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """Anything but success takes the node back."""

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """Undo; called after any later failure, also where `reserve` was not, and maybe twice."""


class PreBind(Protocol):
    """Work before binding, which others may take minutes to do: any number of pods wait in the event loop, and block
    none."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def concerns(self, pod: PodInfo) -> bool:
        """Whether there is anything to do. Quick: asked in the event loop, of every pod."""

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        """Anything but success ends the binding; a BindStatus may say that the pod is gone."""


class Bind(Protocol):
    """Binds a pod. The first that does not SKIP decides."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SUCCESS = it is bound to that node; UNSCHEDULABLE = it is not, and why; SKIP = another plugin binds it."""


class PostBind(Protocol):
    """Notified when a pod is bound."""

    @property
    def name(self) -> str:
        """Of the plugin."""

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """Nothing can be undone any more."""
