"""Writes statuses of Reservations: Taken, Expired, and why one waits.

A status is written on top of the version that was read, or not at all. What is not written is decided anew by the next
step, here or in the replica that leads then: the bound pod says which Reservation it has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Final

import msgspec

from cluster.assuming_cluster import AssumingCluster
from kube.client.api_answer import NOT_SENT
from kube.client.pod_writes import MERGE
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from placement.reservations.reservation import Reservation, Situation, status_change
from placement.reservations.reservations import Reservations
from scheduler.binding.reservation_binder import reservation_path
from scheduler.loop_role import LoopReports

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 100
"""Reservations per step: they are written one after the other, so that bindings, which matter more, go first."""

_SECONDS: Final = 5.0

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
        self._session, self._reading, self._reservations = session, reading, reservations
        self._may_write, self._clock = may_write, clock
        self._why: dict[str, str] = {}  # why Reservations wait, by UID
        self._sent: dict[str, tuple[str, float]] = {}  # version written upon, and when, by UID
        self._under_way: Future[None] | None = None
        self._notice = FailureNotice(
            logger, "statuses of Reservations are not written", "statuses of Reservations are written again"
        )

    def note(self, stand_in: PodInfo, message: str) -> None:
        """A Reservation has found no node, and why."""
        self._why[stand_in.uid] = message

    def step(self) -> None:
        """Begin to write what is due, unless the step before is not through yet."""
        if not self._may_write() or (self._under_way is not None and not self._under_way.done()):
            return
        now = self._clock()
        with self._reading() as cluster:
            known = self._reservations.all()
            due = [
                (one, change)
                for one in known
                if not one.phase.is_final
                and (change := status_change(one, self._situation(one, cluster), now)) is not None
                and self._is_due(one, now)
            ][:_AT_ONCE]
        uids = {one.uid for one in known}
        for memory in (self._why, self._sent):
            for uid in memory.keys() - uids:
                del memory[uid]
        if due:
            self._sent.update((one.uid, (one.version, now)) for one, _ in due)
            self._under_way = self._session.submit(self._write(due))

    # Inside

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

    def _is_due(self, one: Reservation, now: float) -> bool:
        version, at = self._sent.get(one.uid, ("", 0.0))
        return version != one.version or not 0 <= now - at < _AGAIN_SECONDS

    async def _write(self, due: list[tuple[Reservation, Mapping[str, Any]]]) -> None:
        """In the session's loop, one after the other."""
        for one, change in due:
            body = msgspec.json.encode({"metadata": {"resourceVersion": one.version}, "status": change})
            path = f"{reservation_path(one)}/status"
            answer = await self._session.request("PATCH", path, body, content_type=MERGE, seconds=_SECONDS)
            if answer.is_success:
                self._notice.succeeded()
            elif answer.status == 403:
                self._notice.failed("the API server forbids it (403): grant patch on reservations/status")
                return
            elif answer.status not in (404, 409, NOT_SENT):  # it has just changed: the watch will show it
                self._notice.failed(f"{path}: {answer.text}"[:500])


class ReservationReports:
    """Implements LoopReports. note: called with a stand-in and why it waits; quick, by any thread."""

    def __init__(self, of_pods: LoopReports, note: Callable[[PodInfo, str], None]) -> None:
        self._of_pods, self._note = of_pods, note

    def start(self) -> None:
        self._of_pods.start()

    def stop(self) -> None:
        self._of_pods.stop()

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """An attempt failed: no node, or an error."""
        if pod.stands_in:
            self._note(pod, message)
        else:
            self._of_pods.failed(pod, message, reason=reason)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """A gate has it wait by choice."""
        if pod.stands_in:
            self._note(pod, message)
        else:
            self._of_pods.paused(pod, message, by=by)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound. Of a stand-in the status says so."""
        if not pod.stands_in:
            self._of_pods.scheduled(pod, node)

    def preempted(self, pod: PodInfo, note: str) -> None:
        """It was evicted for another pod."""
        self._of_pods.preempted(pod, note)

    def forget(self, uid: str) -> None:
        """It is gone, or about to be bound."""
        self._of_pods.forget(uid)
