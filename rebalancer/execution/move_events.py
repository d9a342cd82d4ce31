"""Events about moves: on the pod that goes, on its replacement, and on the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kube.events.api_event import EventSource, api_event
from kube.events.event_recorder import EventRecorder
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.plan_executor import MoveReport
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import API_VERSION, KIND

_CONTROLLER: Final = "forecast-scheduler/rebalancer"

_REASONS: Final = {
    MoveState.SURGING: "RebalanceStarted",
    MoveState.EVICTING: "RebalanceStarted",
    MoveState.DONE: "Rebalanced",
    MoveState.SKIPPED: "RebalanceSkipped",
    MoveState.REFUSED: "RebalanceRefused",
    MoveState.ELSEWHERE: "RebalancedElsewhere",
    MoveState.STUCK: "RebalanceStuck",
}
_WARNINGS: Final = frozenset({MoveState.STUCK, MoveState.ELSEWHERE})


class ExecutionEvents:
    """`report` is what an Executor calls."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def report(self, report: MoveReport) -> None:
        """Post an event about a state of a move, if people want to know of it."""
        state = report.record.state
        if state not in _REASONS or (state is MoveState.EVICTING and report.record.replicas is not None):
            return
        self._record(partial(_pod_event, report, self._recorder.instance))
        if state in _WARNINGS:
            self._record(partial(_plan_event, report, self._recorder.instance))

    def _record(self, make: Callable[[float], dict[str, Any]]) -> None:
        at = self._recorder.clock()
        self._recorder.record(partial(make, at), at=at)


def _pod_event(report: MoveReport, instance: str, at: float) -> dict[str, Any]:
    move, record = report.move, report.record
    regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": move.namespace, "name": move.pod, "uid": move.uid}
    if record.state is not MoveState.SKIPPED and record.replacement_uid:
        regarding |= {"name": record.replacement, "uid": record.replacement_uid}
    return _event(report, regarding, instance, at)


def _plan_event(report: MoveReport, instance: str, at: float) -> dict[str, Any]:
    return _event(report, plan_reference(report.plan), instance, at)


def plan_reference(plan: RebalancePlan) -> dict[str, str]:
    """Return what an event about a plan regards. Plans have no namespace; their events are in `default`."""
    return {"apiVersion": API_VERSION, "kind": KIND, "namespace": "default", "name": plan.name, "uid": plan.uid}


def _event(report: MoveReport, regarding: dict[str, str], instance: str, at: float) -> dict[str, Any]:
    move, record = report.move, report.record
    note = f"RebalancePlan {report.plan.name} moves {move.namespace}/{move.pod} from {move.source} to {move.to}"
    note += f" ({move.reason})" if move.reason else ""
    note += f": {record.message}" if record.message else ""
    event = api_event(
        regarding,
        reason=_REASONS[record.state],
        note=note,
        at=at,
        source=EventSource(_CONTROLLER, instance, "Rebalancing"),
        is_warning=record.state in _WARNINGS,
    )
    if regarding["kind"] == KIND:
        del event["regarding"]["namespace"]  # as of events about nodes
    return event
