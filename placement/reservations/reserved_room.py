"""Filter ReservedRoom: what a node has left next to the room that is reserved there, and the nodes on which a pod
finds its own room. For the extender: kube-scheduler knows nothing of Reservations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRoom
from kube.objects.objects import PodInfo
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.rejections import found
from placement.plugins import NodePreference, Preferred
from placement.what_if import WithoutPods

_MOST_TRIED: Final = 512
"""Rooms that are tried for one pod: thousands of one owner would keep all other pods waiting."""

Passes = Callable[[], Bools]
"""(n_rows,) nodes that the pod passes as the tables are now."""

_REASON: Final = "node(s) reserve their room for other pods"

_MOST_ROOMS: Final = 8
"""Nodes with room of its own that a pod is offered: it takes one."""


def own_row(pod: PodInfo, view: ClusterView, cluster: AssumingCluster, filters: Sequence[Filter]) -> int | None:
    """Return the row of the node whose room the pod takes over; None = none is reserved for it where it fits.

    The room that the pod names comes first, then the oldest. Under the lock of the tables.
    """
    rooms = cluster.rooms.open_for(pod)
    if not rooms:
        return None
    found = rows_with_own_room(rooms, view, lambda: verdict(pod, view, filters).passes)
    return found[0] if found else None


def rows_with_own_room(rooms: Sequence[HeldRoom], view: ClusterView, passes: Passes, *, most: int = 1) -> list[int]:
    """Return rows of nodes that a pod passes once one of these rooms there is free, in the order of the rooms.

    most : rows at most
    """
    rooms = rooms[:_MOST_TRIED]
    if len(rooms) > 1:
        # Nearly always the filters have to be asked twice only: with all of them free, and with the first that fits.
        with WithoutPods(view) as free:
            for room in rooms:
                free.take(room.uid)
            at_best = passes()
        rooms = [room for room in rooms if _is_in(_row(room, view), at_best)]
    found = list[int]()
    for room in rooms:
        row = _row(room, view)
        with WithoutPods(view) as free:
            free.take(room.uid)
            if row not in found and _is_in(row, passes()):
                found.append(row)
        if len(found) == most:
            break
    return found


def _row(room: HeldRoom, view: ClusterView) -> int:
    return view.state.row_of.get(room.stand_in.node, -1)


def _is_in(row: int, passes: Bools) -> bool:
    return 0 <= row < len(passes) and bool(passes[row])


class ReservedRoom(PlainFilter, NodePreference):
    """Implements Filter and NodePreference, under the lock of the tables."""

    name = "ReservedRoom"
    before_pools = True

    def __init__(self, cluster: AssumingCluster) -> None:
        self._cluster, self._fit = cluster, NodeResourcesFit()

    @property
    def has_any(self) -> bool:
        """Return whether some room is reserved."""
        return len(self._cluster.rooms) > 0

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Reject nodes with reserved room where the pod does not fit in addition to it. Evicting pods may help."""
        reserving = self._reserving(view)
        if not reserving.any():
            return ()
        full = np.zeros(view.n_rows, dtype=bool)
        for rejection in self._fit.filter(pod, view):
            full |= rejection.nodes
        return found(full & reserving, view, _REASON, preemptible=True)

    def own_rows(self, pod: PodInfo, view: ClusterView, filters: Iterable[Filter]) -> list[int]:
        """Return rows of nodes that the pod passes once room there that is reserved for it is free."""
        rooms, asked = self._cluster.rooms.open_for(pod), (*filters, self)

        def passes() -> Bools:
            rejected = np.zeros(view.n_rows, dtype=bool)
            for one in asked:
                for rejection in one.filter(pod, view):
                    rejected |= rejection.nodes
            return ~rejected

        return rows_with_own_room(rooms, view, passes, most=_MOST_ROOMS) if rooms else []

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """The nodes with room that is reserved for the pod, one pod at a time."""
        row_of = view.state.row_of
        own = [row_of.get(room.stand_in.node, -1) for room in self._cluster.rooms.open_for(pod)]
        there = rows[np.isin(rows, own)] if own else rows[:0]
        return Preferred(there, 1) if len(there) else Preferred(rows, n_pods)

    def tells_apart(self, pod: PodInfo) -> bool:
        """Whether some room is reserved for it."""
        return bool(self._cluster.rooms.open_for(pod))

    def _reserving(self, view: ClusterView) -> Bools:
        """(n_rows,) nodes where room is held."""
        reserving = np.zeros(view.n_rows, dtype=bool)
        rooms = self._cluster.rooms
        held = (room for room in rooms if rooms.taker(room.uid) is None)
        rows = [row for room in held if (row := view.state.row_of.get(room.stand_in.node)) is not None]
        reserving[rows] = True
        return reserving
