"""An Event of events.k8s.io/v1, of any object or of a node, within what the API server lets through.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kube.objects.objects import PodInfo

# What pkg/apis/core/validation/events.go of Kubernetes 1.36 lets through, in bytes.
_LONGEST_NOTE = 1024
_LONGEST_INSTANCE = 128
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class EventSource:
    """Who says so, doing what. instance: which of our replicas."""

    controller: str
    instance: str
    action: str


def api_event(
    regarding: Mapping[str, str], *, reason: str, note: str, at: float, source: EventSource, is_warning: bool = False
) -> dict[str, Any]:
    """Ready to be posted to the namespace of the object.

    regarding : apiVersion, kind, namespace, name and uid of the object it is about
    at        : unix seconds
    """
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    # As client-go names events: the object, and a number that the next one does not have.
    suffix = f"{int(at * 1e6):x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "namespace": regarding["namespace"],
            "name": f"{regarding['name'][: _LONGEST_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}",
        },
        "eventTime": moment,
        "reportingController": source.controller,
        "reportingInstance": source.instance[:_LONGEST_INSTANCE] or "unknown",
        "action": source.action,
        "reason": reason,
        "type": "Warning" if is_warning else "Normal",
        "regarding": dict(regarding),
        "note": clipped_note(note),
    }


def pod_reference(pod: PodInfo) -> dict[str, str]:
    """What an event about a pod regards."""
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def clipped_note(text: str) -> str:
    """As much of it as an event may hold."""
    return text.encode(errors="replace")[:_LONGEST_NOTE].decode(errors="ignore")


def node_event(node: str, *, reason: str, note: str, at: float, source: EventSource) -> dict[str, Any]:
    """Returns a warning about a node, ready to be posted to the namespace `default`.

    at : unix seconds
    """
    # As the kubelet writes them: the name stands for the UID, and the event is in `default`, which the node is not.
    regarding = {"apiVersion": "v1", "kind": "Node", "namespace": "default", "name": node, "uid": node}
    event = api_event(regarding, reason=reason, note=note, at=at, source=source, is_warning=True)
    del event["regarding"]["namespace"]
    return event
