"""Paths and bodies of the requests that resize pods.

Every write names the UID and the resourceVersion that was read: a pod that changed meanwhile, or a later one of the
same name, is left alone (409). The API server drops metadata from a patch of the subresource, so the annotation is a
write of its own, before the first resize and after the last.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from autoscaling.requests.pod_resources import (
    NAMES,
    ORIGINAL,
    PROOF,
    RESIZED_LABEL,
    OptedPod,
    Requests,
    original_text,
)
from autoscaling.requests.proven_records import RecordKey
from autoscaling.requests.rounding import cpu_text, memory_text
from kube.client.pod_writes import pod_path

_PAGE: Final = 500


def pods_path(selector: str, *, namespace: str = "", token: str = "") -> str:
    """The path of a page of the pods that carry labels; namespace: '' = of all; token: of the page, '' = the first."""
    place = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if namespace else "/api/v1/pods"
    query = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
    return f"{place}?{urlencode(query | ({'continue': token} if token else {}))}"


def namespaces_path(selector: str) -> str:
    """The path of the namespaces that carry a label."""
    return f"/api/v1/namespaces?{urlencode({'labelSelector': selector})}"


def resize_path(pod: OptedPod) -> str:
    """The path of the subresource."""
    return f"{pod_path(pod)}/resize"


def resize_body(pod: OptedPod, requests: Requests) -> bytes:
    """A strategic merge patch of the requests that change."""
    containers = []
    for name, of_one in requests.items():
        changed = {
            resource: _text(resource, of_one[resource])
            for resource in NAMES.values()
            if resource in of_one and of_one[resource] != pod.requests[name].get(resource)
        }
        if changed:
            containers.append({"name": name, "resources": {"requests": changed}})
    return msgspec.json.encode({"metadata": _identity(pod), "spec": {"containers": containers}})


def mark_body(pod: OptedPod, key: RecordKey) -> bytes:
    """A merge patch that records the requests as they are."""
    record = original_text(pod.requests)
    return _metadata(pod, record, key.proof(pod.uid, record), "true")


def unmark_body(pod: OptedPod) -> bytes:
    """A merge patch that takes the record away."""
    return _metadata(pod, None, None, None)


def _metadata(pod: OptedPod, record: str | None, proof: str | None, label: str | None) -> bytes:
    change = {"annotations": {ORIGINAL: record, PROOF: proof}, "labels": {RESIZED_LABEL: label}}
    return msgspec.json.encode({"metadata": _identity(pod) | change})


def _identity(pod: OptedPod) -> dict[str, Any]:
    return {"uid": pod.uid, "resourceVersion": pod.version}


def _text(resource: str, value: float) -> str:
    return cpu_text(value) if resource == "cpu" else memory_text(value)
