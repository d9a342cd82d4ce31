"""NodePreference ReservedTargets: the replacement of a pod that is being moved goes to the node that the plan names.

    RebalancePlans --watch--> reservations, by service --prefer--> the next pod of the service: its node first
    a pod of the service takes a seat there --> the reservation is used up

A preference only: if a filter rejects the node, the pod goes wherever others of its service go. The rebalancer records
a move before it evicts the pod, and waits a moment, so that the reservation is known before the replacement is created.

The room itself is held by a Reservation (placement/reservations), where the definition is installed. Where it is not,
this preference is all: what takes the room between eviction and the new pod's seat costs one replacement its target.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.client.kubernetes_contract import Subscription
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference, Preferred
from placement.reservations.watched_plans import LONGEST_SECONDS, WATCHED_PLANS, KeptTarget, PlanReservations
from scorer.scoring_policy import opts_out

_Reservations = Mapping[ServiceKey, tuple[KeptTarget, ...]]
_NONE: Final[_Reservations] = {}


class ReservedTargets(NodesAndPodsOnly, NodePreference):
    """Implements NodePreference, Follower and, in `plans`, the sink of the watch.

    The watch hands in plans in its own thread, and swaps all reservations at once. All else is called under the lock
    of the tables.
    """

    name = "ReservedTargets"
    before_pools = True

    def __init__(self, state: ClusterState, *, clock: Callable[[], float]) -> None:
        """clock: unix seconds"""
        self._state, self._clock = state, clock
        self._reserved = _NONE
        self._taken: dict[str, str] = {}  # UID of the pod that took the place, by UID of the one that moves
        self.plans: Final = _PlanSink(self._swap)

    @property
    def has_any(self) -> bool:
        """Return whether some node is kept for some pod."""
        return bool(self._reserved)

    def subscription(self) -> Subscription[PlanReservations]:
        """Return what has to be followed."""
        return Subscription(WATCHED_PLANS, self.plans)

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """The nodes that are kept for a pod of its service, if it passes the filters there; one pod at a time."""
        if not self._reserved or opts_out(pod):
            return Preferred(rows, n_pods)
        row_of, now = self._state.row_of, self._clock()
        kept = {
            row_of.get(one.node, -1)
            for one in self._reserved.get(self._state.service_key(pod), ())
            if one.moving not in self._taken and one.moving != pod.uid and now < one.until < now + 2 * LONGEST_SECONDS
        }
        there = rows[np.isin(rows, np.fromiter(kept, dtype=np.int64, count=len(kept)))]
        return Preferred(there, 1) if len(there) else Preferred(rows, n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """The service, while nodes are kept: pods of two services may be alike in all else."""
        return self._state.service_key(pod) if self._reserved else None

    # Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """A pod that takes a seat uses a reservation up; one that loses it again does not."""
        if not self._reserved:
            self._taken.clear()
            return
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._follow(change)

    def rebuild(self) -> None:
        """Count on every reservation again: at worst a second pod of the service gets the node."""
        self._taken.clear()

    def _follow(self, change: PodChange) -> None:
        pod = change.pod
        if change.after is None:
            self._taken = {moving: uid for moving, uid in self._taken.items() if uid != pod.uid}
        elif change.before is None and pod.uid not in self._taken.values():
            for one in self._reserved.get(self._state.service_key(pod), ()):
                if one.node == pod.node and one.moving != pod.uid and one.moving not in self._taken:
                    self._taken[one.moving] = pod.uid
                    return

    def _swap(self, reservations: Sequence[KeptTarget]) -> None:
        by_service: dict[ServiceKey, tuple[KeptTarget, ...]] = {}
        for one in reservations:
            by_service[one.service] = (*by_service.get(one.service, ()), one)
        self._reserved = by_service


class _PlanSink:
    """Implements OptionalSink; called from one thread."""

    def __init__(self, changed: Callable[[Sequence[KeptTarget]], None]) -> None:
        self._changed = changed
        self._plans: dict[str, tuple[KeptTarget, ...]] = {}

    def replace(self, objects: Sequence[PlanReservations]) -> None:
        """These are all plans."""
        self._plans = {one.plan: one.reservations for one in objects}
        self._notify()

    def absent(self) -> None:
        """The definition is not installed."""
        self.replace(())

    def put(self, obj: PlanReservations) -> None:
        """A plan is new or has changed."""
        self._plans[obj.plan] = obj.reservations
        self._notify()

    def delete(self, obj: PlanReservations) -> None:
        """A plan is gone."""
        self._plans.pop(obj.plan, None)
        self._notify()

    def _notify(self) -> None:
        self._changed([one for reservations in self._plans.values() for one in reservations])
