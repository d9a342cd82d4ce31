"""An Event of events.k8s.io/v1, of any object or of a node, within what the API server lets through.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kube.objects.objects import PodInfo

# What pkg/apis/core/validation/events.go of Kubernetes 1.36 lets through, in bytes.
_LONGEST_NOTE = 1024
_LONGEST_INSTANCE = 128
_LONGEST_NAME = 253


def api_event(
    regarding: Mapping[str, str],
    *,
    reason: str,
    note: str,
    at: float,
    controller: str,
    instance: str,
    action: str,
    is_warning: bool = False,
) -> dict[str, Any]:
    """Ready to be posted to the namespace of the object, or to `default` if it has none.

    regarding  : apiVersion, kind, name and uid of the object it is about, and its namespace if it has one
    at         : unix seconds
    controller : who says so, doing what (action); instance: which of our replicas
    """
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    # As client-go names events: the object, and a number that the next one does not have.
    suffix = f"{int(at * 1e6):x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "namespace": regarding.get("namespace", "default"),
            "name": f"{regarding['name'][: _LONGEST_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}",
        },
        "eventTime": moment,
        "reportingController": controller,
        "reportingInstance": instance[:_LONGEST_INSTANCE] or "unknown",
        "action": action,
        "reason": reason,
        "type": "Warning" if is_warning else "Normal",
        "regarding": dict(regarding),
        "note": clipped_note(note),
    }


def pod_reference(pod: PodInfo) -> dict[str, str]:
    """What an event about a pod regards."""
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def node_reference(node: str) -> dict[str, str]:
    """What an event about a node regards. As the kubelet writes it: the name stands for the UID."""
    return {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}


def clipped_note(text: str) -> str:
    """As much of it as an event may hold."""
    return text.encode(errors="replace")[:_LONGEST_NOTE].decode(errors="ignore")
