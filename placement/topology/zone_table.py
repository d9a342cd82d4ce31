"""What the NUMA zones of all nodes have left, one row per node; follows the cluster and NodeResourceTopologies.

    NodeResourceTopology --ZoneNews--> available, as the node's exporter published it
    pods                 ------------> less what those take that it cannot include yet, each from every zone

A node publishes its kubelet's choice of a zone seconds later, and until then the zone is unknown. So pods placed there
since count in every zone, as in scheduler-plugins' over-reserving cache
(pkg/noderesourcetopology/cache/overreserve.go). A pod is included once something was published after it had started, or
has started `settle` ago: its resources are set aside before its containers start.

Everything is called under the lock of the tables.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from base.arrays import Bools, Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo, QosClass
from placement.node_rule_settings import TopologyOptions
from placement.topology.aligned_needs import AlignedNeeds, Units, aligned_needs
from placement.topology.alignment import ZonesLeft
from placement.topology.node_zones import CardLayout, NodeZones, labelled_threads
from placement.topology.zone_columns import ZoneColumns

_BEHIND: Final = 2.0
"""Seconds by which a publication may lag its measurement; start times are in whole seconds."""

_NeedsOf = dict[tuple[int, int, QosClass], AlignedNeeds | None]
"""By identity of what pods request, which like pods share."""


@dataclass(frozen=True, slots=True)
class ZoneChanges:
    """
    objects : new or changed
    at      : unix seconds when they came
    is_all  : these are all there are
    gone    : name of a node whose object is gone, '' = none
    """

    objects: tuple[NodeZones, ...]
    at: float
    is_all: bool = False
    gone: str = ""


class ZoneNews:
    """Keeps what the watch brings until the thread with the lock of the tables takes it: the watch never waits.

    Implements ResourceSink for one thread; `take` is for another.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._news: deque[ZoneChanges] = deque()

    def replace(self, objects: Sequence[NodeZones]) -> None:
        """Note a whole list."""
        self._news.append(ZoneChanges(tuple(objects), self._clock(), is_all=True))

    def put(self, obj: NodeZones) -> None:
        """Note an object that is new or has changed."""
        self._news.append(ZoneChanges((obj,), self._clock()))

    def delete(self, obj: NodeZones) -> None:
        """Note that an object is gone."""
        self._news.append(ZoneChanges((), self._clock(), gone=obj.node))

    def take(self) -> Iterator[ZoneChanges]:
        """What has come since the last call, in order."""
        for _ in range(len(self._news)):
            yield self._news.popleft()


@dataclass(slots=True)
class _Unsettled:
    """A pod that is not yet included. started: unix seconds, None = it has not."""

    node: str
    units: Units
    started: float | None


class ZoneTable(NodesAndPodsOnly):
    """Implements Follower. All that is public is to be read only, after `catch_up`.

    news    : where the watch puts objects
    on_room : called by `tick` when a pod was rejected for want of room in a zone and there may be some now; quick
    """

    def __init__(
        self,
        state: ClusterState,
        options: TopologyOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Starts from what the state holds now. clock: unix seconds."""
        self.news = ZoneNews(clock)
        self.on_room: list[Callable[[], None]] = []
        self._state, self._options, self._clock = state, options or TopologyOptions(), clock
        self._objects: dict[str, NodeZones] = {}
        self._published: dict[str, float] = {}  # unix seconds, by node
        self._unsettled: dict[str, _Unsettled] = {}  # by pod UID
        self._on_node: dict[str, dict[str, Units]] = {}  # the same by node
        self._is_awaited = self._may_have_grown = False
        self._next_look = 0.0
        self._columns = ZoneColumns()
        self.rebuild()

    # What is read: one row per node, valid until the next change

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def unsettled(self) -> int:
        """Pods that what nodes have published cannot include yet; of nodes without an object, too."""
        return len(self._unsettled)

    @property
    def layouts(self) -> Sequence[CardLayout]:
        """Which cards are near each other, all that nodes have had; the first one says nothing."""
        return self._columns.layouts

    @property
    def is_single(self) -> Bools:
        """(n_rows,) the node's kubelet lets no pod in that does not fit into single zones."""
        return self._columns.single[: self._n_rows()]

    @property
    def is_pod_scope(self) -> Bools:
        """(n_rows,) pods are aligned as a whole there, else their containers one by one."""
        return self._columns.pod_scope[: self._n_rows()]

    @property
    def layout(self) -> Ints:
        """(n_rows,) number in `layouts`."""
        return self._columns.layout[: self._n_rows()]

    @property
    def is_restricted(self) -> Bools:
        """(n_rows,) the node's kubelet lets no pod in that takes more zones than it has to."""
        return self._columns.restricted[: self._n_rows()]

    @property
    def is_best_effort(self) -> Bools:
        """(n_rows,) the node's kubelet lets every pod in, and aligns those that it can."""
        return self._columns.best[: self._n_rows()]

    @property
    def is_full_cores(self) -> Bools:
        """(n_rows,) the node's kubelet gives whole physical cores only; `threads` is known."""
        return self._columns.full_cores[: self._n_rows()] & (self.threads > 0)

    @property
    def fills_cores(self) -> Bools:
        """(n_rows,) the node's kubelet takes what is left of a physical core before it breaks another."""
        return self._columns.fills[: self._n_rows()]

    @property
    def threads(self) -> Ints:
        """(n_rows,) CPUs of one physical core, 0 = not known."""
        return self._columns.threads[: self._n_rows()]

    def left(self, rows: Ints, *, expected: bool = False, most_zones: int | None = None) -> ZonesLeft:
        """Of the nodes of these rows.

        expected   : by where pods probably are, rather than by where they may be
        most_zones : no node of these has more; None = as many as any node has
        """
        self._n_rows()
        return self._columns.left(rows, most_zones, expected=expected)

    def costs(self, row: int) -> Mapping[int, Mapping[int, int]]:
        """Distances between the zones of a node, by number."""
        found = self._objects.get(self._state.names[row])
        return {} if found is None else {zone.number: zone.costs for zone in found.zones}

    def awaited(self) -> None:
        """Note that a pod found no room: `on_room` is called when there may be some."""
        self._is_awaited = True

    # What happens

    def catch_up(self) -> None:
        """With what the watch has put by, and with the time."""
        for news in self.news.take():
            if news.is_all:
                for name in self._objects.keys() - {one.node for one in news.objects}:
                    self._forget(name)
            if news.gone:
                self._forget(news.gone)
            for one in news.objects:
                self._objects[one.node] = one
                self._published[one.node] = news.at
                self._settle(one.node, news.at - _BEHIND)
                self._write(one.node)
                self._may_have_grown = True
        now = self._clock()
        if now >= self._next_look or now < self._next_look - self._options.settle - 1.0:
            self._settle_by_time(now)

    def tick(self) -> None:
        """Time has passed: every second or so."""
        self.catch_up()
        if self._is_awaited and self._may_have_grown:
            self._is_awaited = self._may_have_grown = False
            for listener in self.on_room:
                listener()

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        needs_of: _NeedsOf = {}
        for change in one_by_one(changes):
            match change:
                case PodChange(pod, before, after):
                    if before is not None or after is not None:
                        self._pod_changed(pod, after is not None, needs_of)
                case NodeAdded(row) | NodeChanged(row) | NodeRemoved(row):
                    self._write_row(row)
                case _:
                    pass

    def rebuild(self) -> None:
        """From the tables as they are, and the objects that came."""
        self._unsettled.clear()
        self._on_node.clear()
        state = self._state
        needs_of: _NeedsOf = {}
        for uid in state.seat_of:
            self._pod_changed(state.pods[uid], True, needs_of)
        for row in range(self._n_rows()):
            self._write_row(row)

    # Pods

    def _pod_changed(self, pod: PodInfo, sits: bool, needs_of: _NeedsOf) -> None:
        before = self._unsettled.get(pod.uid)
        is_included = pod.started is not None and self._includes(pod.node, pod.started)
        if before is not None:
            if sits and before.node == pod.node and not is_included:
                before.started = pod.started
                return
            self._drop(pod.uid, before)
            self._write(before.node)
        self._may_have_grown |= not sits or before is not None
        if not sits or is_included:
            return
        key = (id(pod.requests), id(pod.containers), pod.qos)
        if key not in needs_of:
            needs_of[key] = aligned_needs(pod)
        needs = needs_of[key]
        if needs is not None:
            self._unsettled[pod.uid] = _Unsettled(pod.node, needs.pod, pod.started)
            self._on_node.setdefault(pod.node, {})[pod.uid] = needs.pod
            self._write(pod.node)

    def _includes(self, node: str, started: float) -> bool:
        """Whether what the node published includes a pod that started then (unix seconds)."""
        by_time = self._clock() - self._options.settle
        return started <= max(by_time, self._published.get(node, -math.inf) - _BEHIND)

    def _settle(self, node: str, latest: float) -> None:
        """Pods of a node that had started by then (unix seconds) are included."""
        for uid in list(self._on_node.get(node, ())):
            pod = self._unsettled[uid]
            if pod.started is not None and pod.started <= latest:
                self._drop(uid, pod)

    def _settle_by_time(self, now: float) -> None:
        self._next_look = now + 1.0
        limit = now - self._options.settle
        over = [(uid, pod) for uid, pod in self._unsettled.items() if pod.started is not None and pod.started <= limit]
        for uid, pod in over:
            self._drop(uid, pod)
        for node in {pod.node for _, pod in over}:
            self._write(node)
            self._may_have_grown = True

    def _drop(self, uid: str, pod: _Unsettled) -> None:
        del self._unsettled[uid]
        there = self._on_node[pod.node]
        del there[uid]
        if not there:
            del self._on_node[pod.node]

    # Columns

    def _n_rows(self) -> int:
        """Rows of the tables, and there is a column entry for each."""
        self._columns.ensure(self._state.n_rows)
        return self._state.n_rows

    def _forget(self, name: str) -> None:
        if self._objects.pop(name, None) is not None:
            del self._published[name]
            self._write(name)

    def _write(self, node: str) -> None:
        row = self._state.row_of.get(node)
        if row is not None:
            self._write_row(row)

    def _write_row(self, row: int) -> None:
        """As its object and the pods there have it. The row may have been freed, or taken again, meanwhile."""
        names = self._state.names
        found = self._objects.get(names[row]) if row < len(names) else None
        if found is None:
            self._columns.write(row, None, (), 0)
            return
        node = self._state.nodes[row]
        taken = tuple(self._on_node.get(found.node, {}).values())
        self._columns.write(row, found, taken, 0 if node is None else labelled_threads(node.labels))
