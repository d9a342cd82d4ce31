"""Events about moves: on the pod that goes, on its replacement, and on the plan."""

from __future__ import annotations

from typing import Final

from kube.events.event_recorder import EventRecorder
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.plan_executor import MoveReport
from rebalancer.execution.plan_wire import API_VERSION, KIND

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


def report_move(recorder: EventRecorder, report: MoveReport) -> None:
    """Post events about a state of a move, if people want to know of it: on its pod, and on the plan if it fails."""
    move, record, plan = report.move, report.record, report.plan
    state = record.state
    if state not in _REASONS or (state is MoveState.EVICTING and record.replicas is not None):
        return
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": move.namespace, "name": move.pod, "uid": move.uid}
    if state is not MoveState.SKIPPED and record.replacement_uid:
        pod |= {"name": record.replacement, "uid": record.replacement_uid}
    note = f"RebalancePlan {plan.name} moves {move.namespace}/{move.pod} from {move.source} to {move.to}"
    note += f" ({move.reason})" if move.reason else ""
    note += f": {record.message}" if record.message else ""
    recorder.record(pod, _REASONS[state], note, is_warning=state in _WARNINGS)
    if state in _WARNINGS:
        of_plan = {"apiVersion": API_VERSION, "kind": KIND, "name": plan.name, "uid": plan.uid}
        recorder.record(of_plan, _REASONS[state], note)
