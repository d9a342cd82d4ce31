"""Questions as kube-scheduler asks them, in short."""

from __future__ import annotations

from typing import Any

from testing.app_client import AppClient

POD = {
    "metadata": {"namespace": "shop", "name": "cart-1", "uid": "uid-1"},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
}
BINDING = {"PodName": "cart-1", "PodNamespace": "shop", "PodUID": "uid-1", "Node": "node-1"}


def nodes_question(*nodes: str, pod: Any = POD) -> dict[str, Any]:
    """Body of /filter and /prioritize."""
    return {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}


def victims_question(**uids: list[str]) -> dict[str, Any]:
    """Body of /preempt, by node."""
    meta = {n: {"Pods": [{"UID": u} for u in of], "NumPDBViolations": 0} for n, of in uids.items()}
    return {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}


def count_of(client: AppClient, series: str) -> float:
    """Value of a series on /metrics; 0 = it is not there."""
    for line in client.get("/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        if name == series:
            return float(value)
    return 0.0
