"""Where a pod finds room that is reserved for it: on nodes where it passes all filters once that room is free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from base.arrays import Bools
from cluster.assuming_cluster import AssumingCluster
from cluster.held_rooms import HeldRoom
from kube.objects.objects import PodInfo
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter
from placement.what_if import WithoutPods

_MOST_TRIED: Final = 512
"""Rooms that are tried for one pod: thousands of one owner would keep all other pods waiting."""

Passes = Callable[[], Bools]
"""(n_rows,) nodes that the pod passes as the tables are now."""


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
