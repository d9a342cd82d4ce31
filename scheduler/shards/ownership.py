"""Filter Shard: on which nodes this replica places, and until when it may bind there.

node --label, name--> shard --Lease--> replica          one owner of every node at any moment
arrives: its last owner handed it over; used once our tables know all pods that it had there
leaves:  we hand it over; no pod is placed any more, and it goes once none of ours is on the way there
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools
from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved
from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import NODE_EVENTS
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from placement.status import Code, Status
from scheduler.shards.node_shards import WANTED, HandedOver, LoanRequest, handed_over, pods_digest, shard_of, wanted

_REASON: Final = "node(s) belonged to another replica"
_NOT_OURS: Final = -1


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A node that was in another shard before.

    pods       : digest of the pods that its last owner knew there; '' = there is no record of it
    not_before : by the clock; until then the last owner may still bind
    since      : by the clock
    """

    pods: str
    not_before: float
    since: float


class NodeOwnership(NodesAndPodsOnly, PlainFilter):
    """Implements Filter, Bind (as a guard) and Follower. Under the lock of the tables, but for
    `why_not` and `bind`.

    count     : number of shards
    may_use   : whether this replica may act for a shard now; quick, from any thread
    settle    : seconds that a node rests which came from another shard without a record of its last owner
    version   : another number whenever a node is in another shard than before
    """

    name = "Shard"
    woken_by = NODE_EVENTS

    def __init__(
        self,
        cluster: AssumingCluster,
        count: int,
        *,
        may_use: Callable[[int], bool],
        settle: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._count, self._may_use, self._settle, self._clock = cluster, count, may_use, settle, clock
        self._shard_of_row = np.full(0, _NOT_OURS, dtype=np.int64)
        self._shard_of: dict[str, int] = {}  # by name; what any thread reads
        self._name_of_row: dict[int, str] = {}
        self._gone: dict[str, tuple[int, float]] = {}  # last shard of nodes that were deleted, until all have seen it
        self._arriving: dict[str, _Arrival] = {}
        self._leaving: set[str] = set()
        self._wanted: dict[str, tuple[LoanRequest, float]] = {}  # and when we first saw that, by the clock
        self._usable: frozenset[int] = frozenset()
        self._own: Bools | None = None
        self._is_lifted, self.version = False, 0

    # Filter and guard

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Unresolvable: evicting pods makes no node ours."""
        return () if self._is_lifted else found(~self.own(), view, _REASON, preemptible=False)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """As if every node were ours inside, for a plan over all nodes."""
        self._is_lifted = True
        try:
            yield
        finally:
            self._is_lifted = False

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = the node is ours. To be asked before the plugin that binds."""
        why = self.why_not(node)
        return Status(Code.UNSCHEDULABLE if why else Code.SKIP, self.name, why)

    def why_not(self, node: str) -> str:
        """Return why nothing may be bound to the node now; '' = it may. For any thread, without the lock."""
        shard = self._shard_of.get(node, _NOT_OURS)
        if shard not in self._usable or not self._may_use(shard):
            return f"node {node} belongs to another replica now"
        return f"node {node} comes from another replica" if node in self._arriving else ""

    # What is ours

    def own(self) -> Bools:
        """(n_rows,) nodes that are ours to place on; not to be written."""
        n_rows = self._cluster.state.n_rows
        if self._own is None or len(self._own) != n_rows:
            shards = self.shards()
            own = np.isin(shards, list(self._usable)) if self._usable else np.zeros(n_rows, dtype=bool)
            row_of = self._cluster.state.row_of
            blocked = [row_of[name] for name in (*self._arriving, *self._leaving) if name in row_of]
            own[blocked] = False
            self._own = own
        return self._own

    def use(self, shards: Collection[int]) -> None:
        """Place on the nodes of these shards from now on, and on no others."""
        if (usable := frozenset(shards)) != self._usable:
            self._usable, self._own = usable, None

    @property
    def has_shards(self) -> bool:
        """Return whether this replica placed on a shard when the Leases were last looked at. For any thread."""
        return bool(self._usable)

    def owns_any(self) -> bool:
        """Return whether a shard is ours. For any thread."""
        return any(self._may_use(shard) for shard in self._usable)

    def has_others(self) -> bool:
        """Return whether there are nodes on which this replica does not place."""
        return bool((~self.own() & self._cluster.state.alive).any())

    def shard(self, node: str) -> int:
        """Return the shard of a node, -1 = there is no such node."""
        return self._shard_of.get(node, _NOT_OURS)

    def shards(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """(n_rows,) number of the shard of each node; -1 = there is none in the row."""
        n_rows = self._cluster.state.n_rows
        if len(self._shard_of_row) < n_rows:
            more = np.full(max(n_rows, 2 * len(self._shard_of_row)), _NOT_OURS, dtype=np.int64)
            more[: len(self._shard_of_row)] = self._shard_of_row
            self._shard_of_row = more
        return self._shard_of_row[:n_rows]

    def is_quiet(self, nodes: Collection[str]) -> bool:
        """Return whether no pod that this process placed is still on its way to one of these nodes."""
        state = self._cluster.state
        rows = {state.row_of[name] for name in nodes if name in state.row_of}
        seats = (state.seat_of.get(uid) for uid in self._cluster.assumed.uids())
        return not any(seat is not None and seat.node in rows for seat in seats)

    def nodes_in(self, shard: int) -> list[str]:
        """Return the nodes of a shard."""
        return [name for name, number in self._shard_of.items() if number == shard]

    # Hand-over

    def leave(self, node: str) -> None:
        """Place no more on a node that is to be handed over."""
        self._leaving.add(node)
        self._own = None

    def stay(self, node: str) -> None:
        """The node was not handed over after all, or has gone."""
        self._leaving.discard(node)
        self._own = None

    def digest(self, node: str) -> str:
        """Return the digest of the pods on a node."""
        return self._digests([node])[node]

    def lent(self) -> list[tuple[str, HandedOver]]:
        """Return nodes in our shards that are to go back to another one, with the record that says so."""
        found_nodes = []
        for row in np.flatnonzero(self.own()):
            node = self._cluster.state.nodes[row]
            record = None if node is None else handed_over(node)
            if node is not None and record is not None and record.home >= 0 and record.to == self.shard(node.name):
                found_nodes.append((node.name, record))
        return found_nodes

    def wishes(self, seconds: float) -> list[tuple[str, LoanRequest]]:
        """Return nodes of ours for which the leader has asked within this time. By our clock: its own may be ahead."""
        now = self._clock()
        return [
            (name, wish)
            for name, (wish, since) in self._wanted.items()
            if now - since < seconds and self._shard_of.get(name) in self._usable and 0 <= wish.to < self._count
        ]

    def may_own(self, node: str) -> bool:
        """Return whether the pods of a node are to be followed: its shard is ours, perhaps still to be read, or not
        known. For any thread, without the lock."""
        shard = self._shard_of.get(node, _NOT_OURS)
        return shard == _NOT_OURS or self._may_use(shard)

    def welcome(self, *, read_since: float | None = None, nodes: Collection[str] = ()) -> bool:
        """Take nodes into use whose pods are all known; returns whether there are any.

        read_since : nodes and pods were read anew, by a list that began then (by the clock)
        nodes      : or only the pods of these
        """
        now = self._clock()
        due = {name: one for name, one in self._arriving.items() if now >= one.not_before}
        digests = self._digests([name for name, one in due.items() if one.pods])
        ready = [
            name
            for name, one in due.items()
            if (one.pods and one.pods == digests.get(name))
            or (read_since is not None and read_since >= max(one.since, one.not_before))
            or (name in nodes)
        ]
        for name in ready:
            del self._arriving[name]
        if ready:
            self._own = None
        return bool(ready)

    def overdue(self, seconds: float) -> list[str]:
        """Return nodes of ours that have waited that long for the pods of their last owner, and may be read now."""
        now = self._clock()
        return [
            name
            for name, one in self._arriving.items()
            if now >= max(one.not_before, one.since + seconds) and self._shard_of.get(name) in self._usable
        ]

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, NodeAdded | NodeChanged | NodeRemoved):
                self._node_changed(change.row)

    def rebuild(self) -> None:
        state = self._cluster.state
        for name in [name for name in self._shard_of if name not in state.row_of]:
            self._forget(name)
        self._name_of_row.clear()
        for row in range(state.n_rows):
            self._node_changed(row)

    # Inside

    def _node_changed(self, row: int) -> None:
        state = self._cluster.state
        node = state.nodes[row] if row < len(state.nodes) else None
        self._own = None
        if row < state.n_rows:
            self.shards()[row] = _NOT_OURS
        if node is None:
            if row in self._name_of_row:
                self._forget(self._name_of_row.pop(row))
            return
        self._name_of_row[row] = node.name
        shard, before = shard_of(node, self._count), self._last_shard(node.name)
        if before is not None and before != shard:
            self._arriving[node.name] = self._arrival(node, before, shard)
            self._leaving.discard(node.name)
        self.version += self._shard_of.get(node.name) != shard
        self._shard_of[node.name] = shard
        self.shards()[row] = shard
        wish = wanted(node) if WANTED in node.annotations else None
        known = self._wanted.get(node.name)
        if wish is None:
            self._wanted.pop(node.name, None)
        elif known is None or known[0] != wish:
            self._wanted[node.name] = wish, self._clock()

    def _arrival(self, node: NodeInfo, before: int, shard: int) -> _Arrival:
        now, record = self._clock(), handed_over(node)
        if record is not None and (record.source, record.to) == (before, shard):
            return _Arrival(record.pods, now, now)
        # Its label was changed by a client that is none of us: what the last owner sends may be on its way.
        return _Arrival("", now + self._settle, now)

    def _last_shard(self, name: str) -> int | None:
        """A node that was made anew counts, too: the owner of the one before may still bind to the name."""
        shard, until = self._gone.pop(name, (_NOT_OURS, 0.0))
        return self._shard_of.get(name, shard if self._clock() < until else None)

    def _forget(self, name: str) -> None:
        now = self._clock()
        self._gone = {one: gone for one, gone in self._gone.items() if now < gone[1]}
        if (shard := self._shard_of.pop(name, None)) is not None:
            self._gone[name] = shard, now + self._settle
            self.version += 1
        self._arriving.pop(name, None)
        self._wanted.pop(name, None)
        self._leaving.discard(name)

    def _digests(self, names: Iterable[str]) -> dict[str, str]:
        state = self._cluster.state
        name_of = {state.row_of[name]: name for name in names if name in state.row_of}
        uids: dict[str, list[str]] = {name: [] for name in name_of.values()}
        if name_of:
            for uid, seat in state.seat_of.items():
                if (name := name_of.get(seat.node)) is not None and not state.pods[uid].stands_in:
                    uids[name].append(uid)
        return {name: pods_digest(found_pods) for name, found_pods in uids.items()}
