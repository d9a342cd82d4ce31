"""Events of the watch of pods, as long as those of a real API server, for what is measured without one."""

from __future__ import annotations

import json
from typing import Any, Final

from kube.objects.objects import PodInfo
from testing.servers.cluster_objects import pod as pod_manifest

_FIELDS: Final = [
    {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-05T07:11:13Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}}},
            "f:spec": {
                "f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:resources": {"f:requests": {}}}}
            },
        },
    }
]
_FILLED_IN: Final[dict[str, Any]] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "securityContext": {},
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "tolerations": [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for taint in ("not-ready", "unreachable")
    ],
}


def pod_line(event: str, pod: PodInfo, version: int, *, node: str = "") -> bytes:
    """Return a line of the watch of pods. event: ADDED, MODIFIED; node: where it is bound, '' = it waits."""
    made = pod_manifest(
        pod.name,
        namespace=pod.namespace,
        cpu="100m",
        memory="128Mi",
        labels=dict(pod.labels),
        scheduler_name=pod.scheduler_name,
    )
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": pod.owner.name, "uid": pod.owner_uid}
    made["metadata"] |= {
        "uid": pod.uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-05T07:11:13Z",
        "managedFields": _FIELDS,
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
    }
    made["spec"] |= _FILLED_IN | ({"nodeName": node} if node else {})
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-05T07:11:14Z"}]
    made["status"] = {"phase": "Pending", "qosClass": "Burstable", "conditions": conditions if node else []}
    body = {"type": event, "object": {"apiVersion": "v1", "kind": "Pod"} | made}
    return json.dumps(body, separators=(",", ":")).encode()
