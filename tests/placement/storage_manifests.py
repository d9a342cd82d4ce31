"""Manifests of storage objects and of pods that use them, what matters to the test named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]


def node(name: str, **labels: str) -> Manifest:
    """Underscores in the names of labels are slashes, two of them a dot."""
    return {"kind": "Node", "metadata": {"name": name, "labels": _named(labels)}}


def pod(name: str, *volumes: Manifest, node: str = "", namespace: str = "default", uid: str = "") -> Manifest:
    named = [{"name": f"v{number}"} | one for number, one in enumerate(volumes)]
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    spec = {"nodeName": node, "volumes": named, "containers": [{"name": "main"}]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec}


def using(*claims: str) -> list[Manifest]:
    """Volumes of claims."""
    return [{"persistentVolumeClaim": {"claimName": name}} for name in claims]


def term(key: str, *values: str, operator: str = "In") -> Manifest:
    """Node affinity of a volume."""
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def volume(
    name: str,
    size: str = "1Gi",
    *,
    storage_class: str = "",
    claim: str = "",
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    **spec: Any,
) -> Manifest:
    """A PersistentVolume; `claim` is that of the namespace `default` it is bound to."""
    spec |= {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim}
        phase = "Bound"
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def claim(
    name: str,
    size: str | None = "1Gi",
    *,
    storage_class: str | None = None,
    volume: str = "",
    bound: bool = True,
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    phase: str = "",
    namespace: str = "default",
    **spec: Any,
) -> Manifest:
    """A PersistentVolumeClaim; with a volume it is bound to it."""
    notes = dict(annotations or {})
    if volume and bound:
        notes["pv.kubernetes.io/bind-completed"] = "yes"
    metadata: Manifest = {"name": name, "namespace": namespace, "annotations": notes}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Pod", "name": "owner", "uid": owner, "controller": True}]
    spec |= {"accessModes": list(modes), "volumeName": volume}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": {"phase": phase or "Bound"}}


def storage_class(
    name: str,
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = "WaitForFirstConsumer",
    *,
    topology: Mapping[str, Sequence[str]] | None = None,
) -> Manifest:
    made: Manifest = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}
    if mode is not None:
        made["volumeBindingMode"] = mode
    if topology is not None:
        labels = [{"key": key, "values": list(values)} for key, values in topology.items()]
        made["allowedTopologies"] = [{"matchLabelExpressions": labels}]
    return made


def csi_node(name: str, limits: Mapping[str, int | None], *, migrated: str = "") -> Manifest:
    drivers = [
        {"name": driver, "nodeID": name} | ({} if limit is None else {"allocatable": {"count": limit}})
        for driver, limit in limits.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {"kind": "CSINode", "metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}


def csi_driver(name: str, *, reports_capacity: bool = False, is_required: bool = False) -> Manifest:
    spec = {"storageCapacity": reports_capacity, "preventPodSchedulingIfMissing": is_required}
    return {"kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(
    name: str,
    storage_class: str,
    topology: Mapping[str, str] | None,
    size: str | None = None,
    largest: str | None = None,
) -> Manifest:
    made: Manifest = {"kind": "CSIStorageCapacity", "metadata": {"name": name, "namespace": "default"}}
    made |= {"storageClassName": storage_class, "capacity": size, "maximumVolumeSize": largest}
    if topology is not None:
        made["nodeTopology"] = {"matchLabels": dict(topology)}
    return made


def _named(labels: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("__", ".").replace("_", "/"): value for key, value in labels.items()}
