"""A decision in one sentence, as an Event on the pod: what `kubectl describe pod` shows."""

from __future__ import annotations

from typing import Any

from kube.events.api_event import EventSource, api_event, clipped_note
from placement.decisions.decision import Decision

_REASON, _ACTION = "ForecastScheduled", "Scheduling"


def event_of(decision: Decision, *, controller: str, instance: str) -> dict[str, Any]:
    """The Event, ready to be posted to the pod's namespace.

    controller : the component that decided; instance: which of its replicas
    """
    namespace, _, name = decision.pod.partition("/")
    return api_event(
        {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": decision.uid},
        reason=_REASON,
        note=note_of(decision),
        at=decision.time,
        source=EventSource(controller, instance, _ACTION),
    )


def note_of(decision: Decision) -> str:
    """node n1 of 60: predicted peak 61 % of capacity; 3 points ahead of n7; model 2026-11-21, metrics 20 s old"""
    words = f"{_placed(decision)}: {'; '.join(_facts(decision))}"
    return clipped_note(words)


def _placed(decision: Decision) -> str:
    if decision.node == decision.advised_node:
        return f"node {decision.node} of {decision.nodes}"
    rank = "" if decision.rank is None else f", rank {decision.rank}"
    advised = "no node was advised" if decision.advised_node is None else f"{decision.advised_node} was advised"
    return f"node {decision.node}{rank} of {decision.nodes}, {advised}"


def _facts(decision: Decision) -> list[str]:
    facts = []
    if decision.is_late:
        facts.append("the advice came too late and was not used")
    if decision.predicted_share is not None:
        facts.append(f"predicted peak {decision.predicted_share:.0%} of capacity".replace("%", " %"))
    if decision.node == decision.advised_node:
        if decision.margin is not None and decision.runner_up is not None:
            facts.append(f"{_points(decision.margin)} ahead of {decision.runner_up}")
    elif decision.elsewhere_because:
        facts.append(f"not there: {decision.elsewhere_because}")
    elif decision.advised_points is not None and decision.points is not None:
        facts.append(f"{_points(decision.advised_points - decision.points)} ahead of {decision.node}")
    model = "no model" if decision.model_version is None else f"model {decision.model_version}"
    age = decision.metrics_age_seconds
    facts.append(model if age is None else f"{model}, metrics {age:.0f} s old")
    if decision.policy_because:
        facts.append(f"policy {decision.policy} ({decision.policy_because})")
    facts.extend(decision.reasons)
    return facts


def _points(points: int) -> str:
    return f"{points} point{'' if points == 1 else 's'}"
