"""Events about overcommits: on nodes, which `kubectl describe node` shows, and on pods that were evicted for them."""

from __future__ import annotations

from typing import Any, Final

from kube.events.api_event import EventSource, api_event, pod_reference
from kube.events.node_event import node_event
from scheduler.overcommit.node_relief import RepairReport
from scheduler.overcommit.overcommit import Cause, Overcommit

CONTROLLER: Final = "forecast-scheduler.io/scheduler"
_ACTION: Final = "RepairingOvercommit"

_HOW: Final = {
    Cause.OWN: "although no other scheduler should place pods here",
    Cause.SHARED: "placed by schedulers that share the node",
    Cause.SHRUNK: "since the node has become smaller; nothing is evicted for that",
}


def event_of_overcommit(overcommit: Overcommit, *, at: float, instance: str) -> dict[str, Any]:
    """On the node: what is beyond its allocatable, and how that came about."""
    amounts = ", ".join(f"{units} {_unit(kind)}of {kind}" for kind, units in sorted(overcommit.excess.items()))
    note = f"pods request {amounts} more than is allocatable, {_HOW[overcommit.cause]}"
    return _on_node(overcommit.node, "NodeOvercommitted", note, at, instance)


def event_of_repair(report: RepairReport, *, at: float, instance: str) -> dict[str, Any]:
    """On the pod that was evicted, or on the node that could not be repaired."""
    if report.pod is None:
        return _on_node(report.node, "OvercommitNotRepaired", report.why, at, instance)
    pod = report.pod
    return api_event(
        pod_reference(pod),
        reason="EvictedForOvercommit",
        note=f"evicted: pods on node {report.node} request more than is allocatable there",
        at=at,
        source=EventSource(CONTROLLER, instance, _ACTION),
    )


def _on_node(node: str, reason: str, note: str, at: float, instance: str) -> dict[str, Any]:
    return node_event(node, reason=reason, note=note, at=at, source=EventSource(CONTROLLER, instance, _ACTION))


def _unit(kind: str) -> str:
    return {"cpu": "milli-cores ", "memory": "bytes ", "ephemeral-storage": "bytes "}.get(kind, "")
