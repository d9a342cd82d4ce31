"""Writes statuses of Reservations: Taken, Expired, and why one waits.

A status is written on top of the version that was read, or not at all. What is not written is decided anew by the next
step, here or in the replica that leads then: the bound pod says which Reservation it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from kube.status.status_patches import StatusChange, StatusPatches
from placement.reservations.reservation import Reservation, Situation, status_change
from placement.reservations.reservations import Reservations
from scheduler.binding.reservation_binder import reservation_path
from scheduler.pod_reports import LoopReports

_AGAIN_SECONDS: Final = 10.0
"""Seconds after which what was written is written again if the watch does not show it."""


class ReservationWriter:
    """`step` is called again and again by one thread; `note` for any.

    may_write : whether this replica leads, and has read the cluster
    clock     : unix seconds
    """

    def __init__(
        self,
        session: Session,
        reading: Callable[[], AbstractContextManager[AssumingCluster]],
        reservations: Reservations,
        *,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reading, self._reservations = reading, reservations
        self._why: dict[str, str] = {}  # why Reservations wait, by UID
        self._patches = StatusPatches(
            session, "Reservations", each_seconds=0.0, again_seconds=_AGAIN_SECONDS, may_write=may_write, clock=clock
        )

    def note(self, stand_in: PodInfo, message: str) -> None:
        """A Reservation has found no node, and why."""
        self._why[stand_in.uid] = message

    def step(self) -> None:
        """Begin to write what is due, unless the step before is not through yet."""
        self._patches.step(self._changes)

    def _changes(self, now: float) -> Iterable[StatusChange]:
        with self._reading() as cluster:
            known = self._reservations.all()
            changes = [
                StatusChange(reservation_path(one), one.version, change, "reservations/status", one.version, one.uid)
                for one in known
                if not one.phase.is_final
                and (change := status_change(one, self._situation(one, cluster), now)) is not None
            ]
        for uid in self._why.keys() - {one.uid for one in known}:
            del self._why[uid]
        return changes

    def _situation(self, one: Reservation, cluster: AssumingCluster) -> Situation:
        taker = cluster.rooms.taker(one.uid)
        is_assumed = (taker is not None and taker.uid in cluster.assumed) or one.uid in cluster.assumed
        row = cluster.state.row_of.get(one.node) if one.node else None
        return Situation(
            taker=None if is_assumed else taker,
            is_in_use=is_assumed,
            has_node=row is not None and cluster.state.nodes[row] is not None,
            why_waiting=self._why.get(one.uid, ""),
        )


class ReservationReports(LoopReports):
    """note: called with a stand-in and why it waits; quick, by any thread."""

    def __init__(self, of_pods: LoopReports, note: Callable[[PodInfo, str], None]) -> None:
        self._of_pods, self._note = of_pods, note

    def start(self) -> None:
        self._of_pods.start()

    def stop(self) -> None:
        self._of_pods.stop()

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        if pod.stands_in:
            self._note(pod, message)
        else:
            self._of_pods.failed(pod, message, reason=reason)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        if pod.stands_in:
            self._note(pod, message)
        else:
            self._of_pods.paused(pod, message, by=by)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound. Of a stand-in the status says so."""
        if not pod.stands_in:
            self._of_pods.scheduled(pod, node)

    def preempted(self, pod: PodInfo, note: str) -> None:
        self._of_pods.preempted(pod, note)

    def forget(self, uid: str) -> None:
        self._of_pods.forget(uid)
