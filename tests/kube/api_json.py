"""A pod and a node as the API server writes them, and how to change them."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "cart-7d9f-x2x4z",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "5",
        "creationTimestamp": "2026-11-21T16:00:00Z",
        "labels": {"app": "cart", "pod-template-hash": "7d9f"},
        "annotations": {"forecast-scheduler.io/policy": "spread", "cni.projectcalico.org/podIP": "10.1.2.3/32"},
        "ownerReferences": [
            {"kind": "Backup", "name": "nightly", "uid": "b", "apiVersion": "example.org/v1"},
            {"kind": "ReplicaSet", "name": "cart-7d9f", "uid": "rs1", "apiVersion": "apps/v1", "controller": True},
        ],
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
    },
    "spec": {
        "nodeName": "n1",
        "priority": 1000,
        "schedulerName": "ours",
        "containers": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
            },
            {"name": "log", "resources": {}},
        ],
        "initContainers": [{"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": "2026-11-21T16:00:01Z",
        "containerStatuses": [
            {
                "name": "main",
                "state": {"running": {"startedAt": "2026-11-21T16:00:09Z"}},
                "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}},
            },
            {
                "name": "log",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"startedAt": "2026-11-21T16:00:07Z", "exitCode": 1}},
            },
        ],
    },
}

NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"other": "x"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "110"},
        "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "ExternalIP", "address": "1.2.3.4"},
            {"type": "Hostname", "address": "n1.local"},
        ],
        "images": [{"names": ["a"], "sizeBytes": 1}],
    },
}


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def changed(original: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path replaced."""
    copy = deepcopy(original)
    *way, last = path.split(".")
    at: Any = copy
    for key in way:
        at = at[int(key)] if key.isdigit() else at[key]
    at[last] = value
    return copy
