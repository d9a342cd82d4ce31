"""Pods and nodes with the fields that matter named, and the rest filled in."""

from __future__ import annotations

from typing import Any

from forecast.service_key import NO_OWNER
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, QosClass


def node_info(name: str, **fields: Any) -> NodeInfo:
    """Return a ready node; its capacity is what it can allocate, unless given."""
    amounts = fields.get("allocatable", {})
    defaults: dict[str, Any] = {
        "labels": {},
        "annotations": {},
        "taints": (),
        "unschedulable": False,
        "ready": True,
        "capacity": amounts,
        "allocatable": amounts,
    }
    return NodeInfo(name=name, **(defaults | fields))


def pod_info(name: str, **fields: Any) -> PodInfo:
    """Return a pod without an owner that runs on its node, or waits without one. Its UID is its name, unless given."""
    requests = fields.get("requests", {})
    defaults: dict[str, Any] = {
        "uid": name,
        "namespace": "shop",
        "node": "",
        "labels": {},
        "annotations": {},
        "owner": NO_OWNER,
        "owner_uid": "",
        "requests": {},
        "nonzero_requests": (requests.get("cpu", 0.1), requests.get("memory", 2e8)),
        "limits": {},
        "qos": QosClass.BURSTABLE,
        "phase": PodPhase.RUNNING if fields.get("node") else PodPhase.PENDING,
        "terminating": False,
        "started": None,
        "created": 0.0,
    }
    return PodInfo(name=name, **(defaults | fields))
