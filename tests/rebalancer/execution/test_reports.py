"""What people see of moves: events on pods and plans, and metrics."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from kube.events.event_recorder import EventRecorder
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_events import report_move
from rebalancer.execution.move_metrics import ExecutionCollector, ExecutionFigures
from rebalancer.execution.observation import Reply
from rebalancer.execution.plan_executor import MoveReport
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus, PlanStatus, moment
from tests.rebalancer.execution.small_cluster import SmallCluster, spec_of

MOVE = MoveSpec("shop", "cart-1", "uid-1", "Deployment/cart", source="a", to="b", reason="small-01 gets hot")
AT = moment(1_800_000_000)


def posted(*records: MoveStatus) -> list[dict[str, Any]]:
    """Events about these states of one move."""
    found: list[dict[str, Any]] = []

    def post(path: str, body: bytes) -> int:
        found.append(json.loads(body))
        return 201

    recorder = EventRecorder(post, what="moves", instance="r-0", clock=lambda: 1_800_000_000.0)
    plan = RebalancePlan("p", "uid-p", "7", AT, spec_of(SmallCluster(), MOVE), PlanStatus())
    recorder.start()
    for record in records:
        report_move(recorder, MoveReport(plan, MOVE, record))
    recorder.stop()
    return found


def test_the_pod_hears_of_its_eviction_and_the_replacement_of_the_end() -> None:
    done = MoveStatus("uid-1", MoveState.DONE, AT, replacement="cart-2", replacement_uid="uid-2", node="b")
    began, ended = posted(MoveStatus("uid-1", MoveState.EVICTING, AT), done)
    assert (began["reason"], began["regarding"]["name"], began["type"]) == ("RebalanceStarted", "cart-1", "Normal")
    assert began["note"] == "RebalancePlan p moves shop/cart-1 from a to b (small-01 gets hot)"
    assert (ended["reason"], ended["regarding"]["name"]) == ("Rebalanced", "cart-2")


def test_a_stuck_move_is_a_warning_on_the_plan_too() -> None:
    events = posted(MoveStatus("uid-1", MoveState.STUCK, AT, message="not ready"))
    assert [one["regarding"]["kind"] for one in events] == ["Pod", "RebalancePlan"]
    assert all(one["type"] == "Warning" and one["note"].endswith(": not ready") for one in events)
    assert events[1]["metadata"]["namespace"] == "default" and "namespace" not in events[1]["regarding"]


def test_metrics_count_states_and_answers() -> None:
    figures = ExecutionFigures()
    figures.count_state(MoveStatus("u", MoveState.DONE, AT, evicted_at=moment(1_799_999_990), ended_at=AT))
    figures.count_eviction(Reply.BUDGET)
    registry = CollectorRegistry()
    registry.register(ExecutionCollector(figures))
    text = generate_latest(registry).decode()
    assert 'forecast_rebalance_moves_total{state="done"} 1.0' in text
    assert 'forecast_rebalance_moves_total{state="stuck"} 0.0' in text
    assert 'forecast_rebalance_evictions_total{outcome="refused"} 1.0' in text
    assert "forecast_rebalance_ready_seconds_total 10.0" in text
