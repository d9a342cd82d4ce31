"""A decision in one sentence, as an Event on the pod: what `kubectl describe pod` shows.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from extender.decisions.decision import Decision

__all__ = ["REASON", "SHADOW_REASON", "event_of", "note_of"]

REASON, SHADOW_REASON = "ForecastScheduled", "ForecastShadow"

_CONTROLLER = "forecast-scheduler.io/extender"
_ACTION = "Scheduling"

# What pkg/apis/core/validation/events.go of Kubernetes 1.36 lets through, in bytes.
_LONGEST_NOTE = 1024
_LONGEST_INSTANCE = 128
_LONGEST_NAME = 253


def event_of(decision: Decision, *, instance: str) -> dict[str, Any]:
    """The Event, ready to be posted to the pod's namespace. instance: which of our replicas says so."""
    namespace, _, name = decision.pod.partition("/")
    moment = datetime.fromtimestamp(decision.time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    # As client-go names events: the object, and a number that the next one does not have.
    suffix = f"{int(decision.time * 1e6):x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "namespace": namespace,
            "name": f"{name[: _LONGEST_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}",
        },
        "eventTime": moment,
        "reportingController": _CONTROLLER,
        "reportingInstance": instance[:_LONGEST_INSTANCE] or "unknown",
        "action": _ACTION,
        "reason": SHADOW_REASON if decision.is_shadow else REASON,
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": decision.uid},
        "note": note_of(decision),
    }


def note_of(decision: Decision) -> str:
    """node n1 of 60: predicted peak 61 % of capacity; 3 points ahead of n7; model 2026-11-21, metrics 20 s old"""
    words = f"{'shadow mode: ' if decision.is_shadow else ''}{_placed(decision)}: {'; '.join(_facts(decision))}"
    return words.encode()[:_LONGEST_NOTE].decode(errors="ignore")


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
    elif decision.advised_points is not None and decision.points is not None:
        facts.append(f"{_points(decision.advised_points - decision.points)} ahead of {decision.node}")
    model = "no model" if decision.model_version is None else f"model {decision.model_version}"
    age = decision.metrics_age_seconds
    facts.append(model if age is None else f"{model}, metrics {age:.0f} s old")
    facts.extend(decision.reasons)
    return facts


def _points(points: int) -> str:
    return f"{points} point{'' if points == 1 else 's'}"
