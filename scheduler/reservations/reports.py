"""Reports about pods that keep stand-ins apart: why a Reservation waits is written into its own status."""

from __future__ import annotations

from collections.abc import Callable

from kube.objects.objects import PodInfo
from scheduler.loop_parts import LoopReports


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
