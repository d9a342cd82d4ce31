"""Slices, classes and claims as manifests, and decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from profiles.gpu.dra.dra_decoding import WATCHED_CLAIMS, WATCHED_CLASSES, WATCHED_SLICES, WATCHED_TAINT_RULES
from profiles.gpu.dra.dra_objects import ClassInfo, ResourceClaimInfo, SliceInfo, TaintRule

Manifest = dict[str, Any]

DRIVER = "gpu.example.com"
_KINDS = {str: "string", int: "int", bool: "bool"}


def device(name: str, *, memory: str = "80Gi", taints: Sequence[Manifest] = (), **attributes: Any) -> Manifest:
    """attributes: of this driver; a dict is taken as it is, {"version": "1.0.0"}."""
    made: Manifest = {
        "name": name,
        "attributes": {
            key: value if isinstance(value, dict) else {_KINDS[type(value)]: value} for key, value in attributes.items()
        },
        "capacity": {"memory": {"value": memory}},
    }
    return made | ({"taints": list(taints)} if taints else {})


def resource_slice(
    name: str,
    *devices: Manifest,
    node: str = "",
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> Manifest:
    where: Manifest = {"nodeName": node} if node else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool or node or name, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            **where,
            **spec,
        },
    }


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Manifest:
    chosen = expressions or (f'device.driver == "{DRIVER}"',)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": one}} for one in chosen], **spec},
    }


def request(
    name: str = "r", *expressions: str, of: str = "gpu", first: Sequence[Manifest] = (), **exactly: Any
) -> Manifest:
    """first: entries of firstAvailable, made by this function, too."""
    if first:
        return {"name": name, "firstAvailable": [{"name": one["name"], **one["exactly"]} for one in first]}
    made: Manifest = {"deviceClassName": of, **exactly}
    if expressions:
        made["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": made}


def claim(
    name: str, *requests: Manifest, namespace: str = "shop", status: Manifest | None = None, **devices: Any
) -> Manifest:
    """One request for one device of the class `gpu` unless it says otherwise."""
    made: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "10"},
        "spec": {"devices": {"requests": list(requests or (request(),)), **devices}},
    }
    return made if status is None else made | {"status": status}


def taint_rule(name: str, effect: str = "NoSchedule", **selector: str) -> Manifest:
    """A taint with the key `broken`, of the devices with this driver, pool and device."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}},
    }


def consumer(pod: str) -> Manifest:
    return {"resource": "pods", "name": pod, "uid": pod}


def slice_of(manifest: Mapping[str, Any]) -> SliceInfo:
    return WATCHED_SLICES.decoded(json.dumps(manifest).encode())[0]


def class_of(manifest: Mapping[str, Any]) -> ClassInfo:
    return WATCHED_CLASSES.decoded(json.dumps(manifest).encode())[0]


def claim_of(manifest: Mapping[str, Any]) -> ResourceClaimInfo:
    return WATCHED_CLAIMS.decoded(json.dumps(manifest).encode())[0]


def taint_rule_of(manifest: Mapping[str, Any]) -> TaintRule:
    return WATCHED_TAINT_RULES.decoded(json.dumps(manifest).encode())[0]
