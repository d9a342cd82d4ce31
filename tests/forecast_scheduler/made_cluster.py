"""Nodes, pods and other objects of cluster files, as the API server writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOMAIN = "forecast-scheduler.io/domain"


def made_node(
    name: str, *, domain: str | None = "forecast-scheduler", cpu: str = "4", **amounts: str
) -> dict[str, Any]:
    """A ready node. amounts: further allocatable resources."""
    labels = {} if domain is None else {DOMAIN: domain}
    all_amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110", **amounts}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": all_amounts,
            "allocatable": all_amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def made_pod(name: str, *, cpu: str = "1", scheduler: str = "forecast-scheduler", **spec: Any) -> dict[str, Any]:
    """A pod that waits; spec: further fields of its spec, or its metadata."""
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-10-13T12:00:00Z",
            **spec.pop("metadata", {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def seated(pod: dict[str, Any], node: str, *, started: str = "2026-10-13T10:00:00Z") -> dict[str, Any]:
    """The same pod, running on a node."""
    containers = [{"name": "main", "ready": True, "state": {"running": {"startedAt": started}}}]
    status = {"phase": "Running", "startTime": started, "containerStatuses": containers}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def made_object(kind: str, name: str, api_version: str, **more: Any) -> dict[str, Any]:
    """Any namespaced object; more: beside its metadata."""
    metadata = {"namespace": "shop", "name": name, "uid": f"{kind}-{name}", "creationTimestamp": "2026-10-13T12:00:00Z"}
    return {"kind": kind, "apiVersion": api_version, "metadata": {**metadata, **more.pop("metadata", {})}, **more}


def cluster_file(tmp_path: Path, *objects: dict[str, Any]) -> Path:
    """A file with these objects, as kubectl exports them."""
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return path
