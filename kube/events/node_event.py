"""An Event on a Node, which `kubectl describe node` shows."""

from __future__ import annotations

from typing import Any

from kube.events.api_event import EventSource, api_event


def node_event(node: str, *, reason: str, note: str, at: float, source: EventSource) -> dict[str, Any]:
    """Returns a warning about a node, ready to be posted to the namespace `default`.

    at : unix seconds
    """
    # As the kubelet writes them: the name stands for the UID, and the event is in `default`, which the node is not.
    regarding = {"apiVersion": "v1", "kind": "Node", "namespace": "default", "name": node, "uid": node}
    event = api_event(regarding, reason=reason, note=note, at=at, source=source, is_warning=True)
    del event["regarding"]["namespace"]
    return event
