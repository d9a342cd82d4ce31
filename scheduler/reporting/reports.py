"""All reports to users about a pod, in one place: conditions while it waits, events when something happens."""

from __future__ import annotations

from kube.events.event_recorder import session_post
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node
from kube.session.api_session import ApiSession
from kube.status.pod_condition_writer import ConditionWriter
from kube.status.pod_conditions import WaitingCondition
from placement.decisions.recorder import DecisionRecorder
from scheduler.reporting.scheduling_events import SchedulingEvents


class Reports:
    """For any thread; nothing here waits. To be started after the session, and stopped before it."""

    def __init__(self, session: ApiSession, *, instance: str, decisions: DecisionRecorder | None = None) -> None:
        """
        instance  : name of this replica, as events show it
        decisions : notified of each pod that is bound, and where
        """
        self._decisions = decisions
        self.conditions = ConditionWriter(session)
        self.events = SchedulingEvents(session_post(session), instance=instance)

    def start(self) -> None:
        self.conditions.start()
        self.events.start()

    def stop(self) -> None:
        """End; events that wait have two seconds."""
        self.conditions.stop()
        self.events.stop()

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """An attempt failed: no node (Unschedulable), or an error (SchedulerError)."""
        self.conditions.put(WaitingCondition.of(pod, reason, message))
        self.events.failed(pod, message)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """A gate has it wait by choice: WaitingForValley. No event: nothing went wrong.

        Not Unschedulable, by which autoscalers know pods that want more nodes.
        """
        self.conditions.put(WaitingCondition.of(pod, f"WaitingFor{by}", message))

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound. The API server itself sets the condition PodScheduled=True then."""
        self.forget(pod.uid)
        self.events.scheduled(pod, node)
        if self._decisions is not None:
            self._decisions.bound(on_node(pod, node))

    def preempted(self, pod: PodInfo, note: str) -> None:
        """It was evicted for another pod."""
        self.events.preempted(pod, note)

    def forget(self, uid: str) -> None:
        """It is gone, or about to be bound."""
        self.conditions.forget(uid)
        self.events.forget(uid)
