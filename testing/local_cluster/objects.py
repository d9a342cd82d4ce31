"""The nodes, pods and ReplicaSets of the sample at one moment, as API objects, and two pods that wait to be created."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from forecast.resources import CPU, MEMORY, RESOURCES
from testing.local_cluster.sample import NodeCourse, PodCourse
from testing.servers.cluster_objects import Manifest, node, pod, replica_set, running

# As kubelets report it; what moves pods leaves those that are not ready.
_READY: Manifest = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

_NODE_INFO = (
    *("machineID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)
"""What a node says of itself beside systemUUID; empty here."""


def machine(node: str, cluster: str) -> dict[str, str]:
    """Address and identity of a node, as kube_node_info has them: one name in two clusters is two machines."""
    number = zlib.crc32(f"{cluster}/{node}".encode())
    system = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node}.{cluster}"))
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {"internal_ip": address, "system_uuid": system, "provider_id": f"played://{system}"}


def node_object(of: NodeCourse, cluster: str) -> Manifest:
    """Ready, with what it can do of the resources that Kubernetes does not count in an annotation."""
    facts = machine(of.name, cluster)
    cores, memory = float(of.capacity[CPU]), float(of.capacity[MEMORY])
    reserved = f"{round((cores - of.allocatable[0]) * 1000)}m"
    made = node(of.name, cpu=f"{cores:g}", memory=f"{memory:.0f}", reserved_cpu=reserved)
    made["status"]["allocatable"]["memory"] = f"{of.allocatable[1]:.0f}"
    made["spec"]["providerID"] = facts["provider_id"]
    made["status"]["addresses"].append({"type": "InternalIP", "address": facts["internal_ip"]})
    made["status"]["nodeInfo"] = dict.fromkeys(_NODE_INFO, "") | {"systemUUID": facts["system_uuid"]}
    others = {
        resource.name: f"{of.capacity[index]:.0f}"
        for index, resource in enumerate(RESOURCES)
        if index not in (CPU, MEMORY) and np.isfinite(of.capacity[index])
    }
    made["metadata"]["annotations"] = {CAPACITY_ANNOTATION: json.dumps(others)}
    return made


def replica_set_objects(pods: Iterable[PodCourse]) -> list[Manifest]:
    """Those whose pods are there, as their Deployments made them."""
    counts: dict[tuple[str, str, str], int] = {}
    for one in pods:
        if one.owner[0] == "Deployment":
            key = (one.namespace, one.controller[1], one.owner[1])
            counts[key] = counts.get(key, 0) + 1
    return [
        replica_set(name, namespace=namespace, deployment=deployment, desired_replicas=count)
        for (namespace, name, deployment), count in sorted(counts.items())
    ]


def pod_object(of: PodCourse, made_sets: Mapping[tuple[str, str], Manifest]) -> Manifest:
    """Running where it was. made_sets: ReplicaSets as the API server has them, by namespace and name."""
    kind, name = of.controller
    owner: Manifest = made_sets.get((of.namespace, name)) or {
        "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{of.namespace}-{name}"
    }  # fmt: skip
    return pod(
        of.name,
        namespace=of.namespace,
        node=of.node,
        owner=owner,
        requests={"cpu": f"{round(of.requests[0] * 1000)}m", "memory": f"{of.requests[1]:.0f}"},
        labels=_labels(made_sets.get((of.namespace, name))) or {"app": name},
        status=running() | {"conditions": [_READY]},
    )


def one_more(
    sibling: PodCourse, made_set: Manifest, name: str, scheduler_name: str, gates: Iterable[str] = ()
) -> Manifest:
    """Another pod of a service, that has no node yet."""
    waiting = pod_object(sibling, {(sibling.namespace, made_set["metadata"]["name"]): made_set})
    del waiting["spec"]["nodeName"], waiting["status"]
    waiting["metadata"]["name"] = name
    waiting["spec"]["schedulerName"] = scheduler_name
    if gates:
        waiting["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return waiting


def _labels(made_set: Manifest | None) -> dict[str, str]:
    return dict(made_set["spec"]["template"]["metadata"]["labels"]) if made_set else {}
