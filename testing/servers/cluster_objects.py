"""Kubernetes objects for tests: manifests with real defaults, and a writer that puts many into an API server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlencode

import urllib3

Manifest = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")

_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "CronJob": "/apis/batch/v1/namespaces/{namespace}/cronjobs",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_KINDS = {path.rpartition("/")[2]: kind for kind, path in _PATHS.items()}
_WITH_STATUS = ("Node", "Pod", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget")


def node(
    name: str,
    *,
    cpu: str = "16",
    memory: str = "64Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    extended: Mapping[str, str] | None = None,
    reserved_cpu: str = "200m",
    ready: bool = True,
) -> Manifest:
    """A Node with capacity, allocatable (CPU less by `reserved_cpu`) and a Ready condition.

    extended : further resources, such as {"nvidia.com/gpu": "8"}
    """
    capacity = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": str(pods)} | dict(extended or {})
    allocatable = capacity | {"cpu": f"{round(float(cpu) * 1000) - int(reserved_cpu.removesuffix('m'))}m"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | dict(labels or {})},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletReady"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    node: str = "",
    owner: Mapping[str, Any] | None = None,
    cpu: str = "100m",
    memory: str = "128Mi",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    scheduler_name: str = "default-scheduler",
    status: Mapping[str, Any] | None = None,
) -> Manifest:
    """A Pod of one container.

    owner    : one of the answers of ClusterWriter.create, or what `owned_by` made of it
    requests : replaces cpu and memory
    """
    resources = {"requests": dict(requests) if requests is not None else {"cpu": cpu, "memory": memory}}
    if limits:
        resources["limits"] = dict(limits)
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, labels, annotations, owner),
        "spec": {
            "containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}],
            "schedulerName": scheduler_name,
        },
    }
    if node:
        manifest["spec"]["nodeName"] = node
    if status is not None:
        manifest["status"] = dict(status)
    return manifest


def running(started: str = "2026-01-01T00:00:00Z", *, container: str = "main") -> Manifest:
    """The status of a pod whose container runs."""
    state = {"running": {"startedAt": started}}
    return {
        "phase": "Running",
        "startTime": started,
        "containerStatuses": [
            {"name": container, "ready": True, "restartCount": 0, "image": "", "imageID": "", "state": state}
        ],
    }


def replica_set(
    name: str,
    *,
    namespace: str = "default",
    deployment: str = "",
    revision: int = 1,
    desired_replicas: int = 1,
) -> Manifest:
    """A ReplicaSet as a Deployment of that name would have made it; none without a name."""
    annotations = {
        "deployment.kubernetes.io/revision": str(revision),
        "deployment.kubernetes.io/desired-replicas": str(desired_replicas),
    }
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "uid": f"uid-{deployment}"}
    selected = {"app": deployment or name, "pod-template-hash": name.rpartition("-")[2]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _metadata(
            name,
            namespace,
            selected,
            annotations if deployment else None,
            owner if deployment else None,
        ),
        "spec": {
            "replicas": desired_replicas,
            "selector": {"matchLabels": selected},
            "template": {
                "metadata": {"labels": selected},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


def job(name: str, *, namespace: str = "default", cron_job: str = "") -> Manifest:
    """A Job as a CronJob of that name would have made it; none without a name."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job, "uid": f"uid-{cron_job}"}
    container = {"name": "main", "image": "app:1"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(name, namespace, None, None, owner if cron_job else None),
        "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }


def owned_by(owner: Mapping[str, Any]) -> Manifest:
    """The ownerReference to an object (as the API server returned it) or to {apiVersion, kind, name, uid}."""
    uid = owner["metadata"]["uid"] if "metadata" in owner else owner["uid"]
    name = owner["metadata"]["name"] if "metadata" in owner else owner["name"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": uid, "controller": True}


def _metadata(
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    owner: Mapping[str, Any] | None,
) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if owner is not None:
        metadata["ownerReferences"] = [owned_by(owner)]
    return metadata


class _Plane(Protocol):
    url: str
    token: str
    ca_file: Path


class ClusterWriter:
    """Writes to an API server with up to `in_flight` requests at once. Raises RuntimeError for what it refuses.

    patience_seconds : so long a request is repeated that a server which is being restarted did not take
    """

    def __init__(self, plane: _Plane, *, in_flight: int = 32, patience_seconds: float = 0.0) -> None:
        self._url, self._in_flight, self._patience = plane.url, in_flight, patience_seconds
        self._headers = {"Authorization": f"Bearer {plane.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), maxsize=in_flight, retries=False, timeout=30)

    def create(self, manifest: Manifest) -> Manifest:
        """POST an object and, where the manifest has one, patch its status; returns what the server made of it."""
        created = self._request("POST", _collection(manifest), manifest)
        if manifest["kind"] in _WITH_STATUS and "status" in manifest:
            return self.patch_status(created, manifest["status"])
        return created

    def create_many(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """`create` for each, in the order given."""
        return self.in_parallel(self.create, manifests)

    def bind(self, name: str, node: str, *, namespace: str = "default") -> None:
        """Bind a pod to a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self._request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)

    def patch(self, manifest: Manifest, change: Manifest) -> Manifest:
        """Merge a change into an object (RFC 7396)."""
        return self._request("PATCH", f"{_collection(manifest)}/{manifest['metadata']['name']}", change)

    def patch_status(self, manifest: Manifest, status: Mapping[str, Any]) -> Manifest:
        """Merge a change into an object's status."""
        path = f"{_collection(manifest)}/{manifest['metadata']['name']}/status"
        return self._request("PATCH", path, {"status": status})

    def delete(self, manifest: Manifest, *, grace_seconds: int = 0) -> None:
        """Delete an object, at once without a grace period; one that is gone already is fine.

        With one, a pod that is bound stays, terminating, for ever: there is no kubelet to end it.
        """
        options = {"gracePeriodSeconds": grace_seconds, "propagationPolicy": "Background"}
        path = f"{_collection(manifest)}/{manifest['metadata']['name']}"
        self._request("DELETE", path, options, accepted=(404,))

    def delete_many(self, manifests: Iterable[Manifest]) -> None:
        """`delete` for each."""
        self.in_parallel(self.delete, manifests)

    def list_all(self, plural: str, *, field_selector: str = "") -> list[Manifest]:
        """All objects of a kind (nodes, pods, ...), in all namespaces; of pods perhaps those of "spec.nodeName="."""
        kind = _KINDS[plural]
        path = _PATHS[kind].replace("/namespaces/{namespace}", "")
        if field_selector:
            path += "?" + urlencode({"fieldSelector": field_selector})
        return [{"kind": kind} | item for item in self._request("GET", path)["items"]]

    def in_parallel(self, act: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply to each with up to `in_flight` at once."""
        with ThreadPoolExecutor(self._in_flight) as threads:
            return list(threads.map(act, items))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def _request(
        self, method: str, path: str, body: Manifest | None = None, *, accepted: tuple[int, ...] = ()
    ) -> Manifest:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        text, headers = json.dumps(body) if body is not None else None, self._headers | {"Content-Type": kind}
        answer, repeated = self._answer(method, path, text, headers)
        if repeated and method == "POST" and answer.status == 409 and body is not None and "name" in body["metadata"]:
            # It had been taken before the connection was lost; of a binding, too, nothing more is to be done.
            return {} if body["kind"] == "Binding" else self._request("GET", f"{path}/{body['metadata']['name']}")
        if answer.status >= 300 and answer.status not in accepted:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.data.decode(errors='replace')[:500]}")
        return dict(json.loads(answer.data))

    def _answer(
        self, method: str, path: str, text: str | None, headers: Mapping[str, str]
    ) -> tuple[urllib3.BaseHTTPResponse, bool]:
        """And whether it had been asked before."""
        deadline, repeated = time.monotonic() + self._patience, False
        while True:
            is_last = time.monotonic() >= deadline
            try:
                answer = self._pool.request(method, self._url + path, body=text, headers=headers)
                if is_last or answer.status not in _COMES_BACK:
                    return answer, repeated
            except urllib3.exceptions.HTTPError:
                if is_last:
                    raise
            repeated = True
            time.sleep(0.2)


_COMES_BACK = (429, 503)


def _collection(manifest: Manifest) -> str:
    return _PATHS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace", "default"))
