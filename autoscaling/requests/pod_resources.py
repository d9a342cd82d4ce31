"""The pods that may be resized, as the API server lists them, and what a resize of one may change.

Rules of the API server for PATCH pods/NAME/resize (KEP-1287, validation of pod resizes in Kubernetes 1.35 to 1.37):
only CPU and memory of containers; no request is added or removed; a request stays at or below its limit; the QoS class
stays. So a Guaranteed pod, whose limits would have to move along, and a BestEffort pod, which has no requests, are
left alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from forecast.errors import InputError
from forecast.resources import CPU, MEMORY
from forecast.service_key import Owner, ServiceKey, owner_from_references, service_of_pod
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.quantity import parse_quantity

RESIZE_LABEL: Final = f"{ANNOTATION_PREFIX}resize"
"""On a pod, or on its namespace: "true" = it may be resized."""
RESIZED_LABEL: Final = f"{ANNOTATION_PREFIX}resized"
"""On pods that bear the annotation, so that they are found again."""
ORIGINAL: Final = f"{ANNOTATION_PREFIX}original-requests"
"""Annotation: requests by container before the first resize, as JSON."""

NAMES: Final = {CPU: "cpu", MEMORY: "memory"}
_MIRROR: Final = "kubernetes.io/config.mirror"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})

Requests = Mapping[str, Mapping[str, float]]
"""Base units by container and name of the resource."""


@dataclass(frozen=True, slots=True)
class OptedPod:
    """A pod with a node, as it was listed. Implements kube.client.pod_writes.PodIdentity.

    requests, limits : of its containers; sidecars and init containers stay as they are
    original  : of its containers before the first resize; None = it was never resized
    kept      : why it may not be resized; '' = it may
    refused_at: unix seconds since when its node cannot carry out the last resize; None = it can
    moving    : a resize is under way
    """

    namespace: str
    name: str
    uid: str
    version: str
    node: str
    service: ServiceKey
    asks: bool
    requests: Requests
    limits: Requests
    original: Requests | None
    kept: str = ""
    refused_at: float | None = None
    refused_why: str = ""
    moving: bool = False

    def total(self, resource: str) -> float:
        """What its containers request together."""
        return total(self.requests, resource)

    def original_total(self, resource: str) -> float:
        """What they requested before the first resize."""
        return total(self.requests if self.original is None else self.original, resource)


@dataclass(frozen=True, slots=True)
class PodContainers:
    """Containers of a pod, in their order."""

    requests: Requests
    limits: Requests


def total(requests: Requests, resource: str) -> float:
    """Sum over the containers."""
    return sum(of_one.get(resource, 0.0) for of_one in requests.values())


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Policy(msgspec.Struct, rename="camel"):
    resource_name: str = ""
    restart_policy: str = ""


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    resize_policy: list[_Policy] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[_Container] = []
    resources: _Resources | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    qos_class: str = ""
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


class _ListMetadata(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _PodList(msgspec.Struct):
    items: list[_Pod] = []
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


_list_decoder = msgspec.json.Decoder(_PodList)
_pod_decoder = msgspec.json.Decoder(_Pod)


def read_pods(body: bytes, *, asking_namespaces: frozenset[str] = frozenset()) -> tuple[list[OptedPod], str]:
    """The pods of a list that have a node and go on, and the token of the next page; '' = the last one.

    Raises InputError where the body is no list of pods.
    """
    try:
        listed = _list_decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InputError(f"the API server's list of pods cannot be read: {error}") from error
    return [found for pod in listed.items if (found := _seen(pod, asking_namespaces))], listed.metadata.token


def read_pod(body: bytes) -> OptedPod | None:
    """One pod; None = it has no node, or its time is over. Raises InputError."""
    try:
        return _seen(_pod_decoder.decode(body), frozenset())
    except msgspec.DecodeError as error:
        raise InputError(f"the API server's pod cannot be read: {error}") from error


def read_containers(body: bytes) -> PodContainers:
    """The containers of a pod in JSON. Raises InputError."""
    try:
        pod = _pod_decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InputError(f"a pod of the API server cannot be read: {error}") from error
    return PodContainers(*_containers(pod))


def original_text(requests: Requests) -> str:
    """Return requests by container as the annotation ORIGINAL holds them: JSON, base units."""
    return msgspec.json.encode({name: dict(of_one) for name, of_one in requests.items()}, order="sorted").decode()


def _seen(pod: _Pod, asking: frozenset[str]) -> OptedPod | None:
    meta, status = pod.metadata, pod.status
    if not pod.spec.node_name or status.phase in _TERMINAL or meta.deletion_timestamp is not None:
        return None
    labels, annotations = meta.labels or {}, meta.annotations or {}
    asked = labels.get(RESIZE_LABEL)
    conditions = {one.type: one for one in status.conditions or () if one.status == "True"}
    pending = conditions.get("PodResizePending")
    owner: Owner = owner_from_references(meta.owner_references)
    original, why = _original(annotations.get(ORIGINAL))
    requests, limits = _containers(pod)
    return OptedPod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        node=pod.spec.node_name,
        service=service_of_pod(meta.namespace, meta.name, owner, pod_labels=labels),
        asks=asked == "true" or (asked is None and meta.namespace in asking),
        requests=requests,
        limits=limits,
        original=original,
        kept=why or _kept(pod, annotations),
        refused_at=_since(pending),
        refused_why=f"{pending.reason}: {pending.message}" if pending is not None else "",
        moving="PodResizeInProgress" in conditions,
    )


def _containers(pod: _Pod) -> tuple[Requests, Requests]:
    """Their requests and their limits."""
    resources = [(one.name, one.resources or _Resources()) for one in pod.spec.containers]
    return {name: _amounts(one.requests) for name, one in resources}, {
        name: _amounts(one.limits) for name, one in resources
    }


def _kept(pod: _Pod, annotations: Mapping[str, str]) -> str:
    if pod.status.qos_class != "Burstable":
        return f"its QoS class is {pod.status.qos_class or 'unknown'}: only Burstable pods keep theirs in a resize"
    if _MIRROR in annotations:
        return "its kubelet owns it"
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        return "it has requests of the pod as a whole"
    restarts = [
        one.name
        for one in pod.spec.containers
        if any(policy.restart_policy == "RestartContainer" for policy in one.resize_policy or ())
    ]
    return f"a resize restarts its container {restarts[0]}" if restarts else ""


def _original(text: str | None) -> tuple[Requests | None, str]:
    """Of the annotation, and why it cannot be read."""
    if text is None:
        return None, ""
    try:
        return msgspec.json.decode(text, type=dict[str, dict[str, float]]), ""
    except msgspec.DecodeError:
        return None, f"its annotation {ORIGINAL} cannot be read: remove it, and the label {RESIZED_LABEL}"


def _amounts(quantities: Mapping[str, str | int | float] | None) -> dict[str, float]:
    return {name: parse_quantity(text) for name, text in (quantities or {}).items() if name in NAMES.values()}


def _since(condition: _Condition | None) -> float | None:
    if condition is None:
        return None
    return condition.last_transition_time.timestamp() if condition.last_transition_time is not None else 0.0


def scaled(pod: OptedPod, resource: str, wanted: float) -> Requests:
    """Requests of its containers with this total, each in its share of the original, at most at its limit.

    CPU in whole millicores, memory in whole MiB, both rounded up.
    """
    before = pod.requests if pod.original is None else pod.original
    whole, unit = total(before, resource), 0.001 if resource == "cpu" else 2.0**20
    changed: dict[str, Mapping[str, float]] = {}
    for name, now in pod.requests.items():
        share = before.get(name, {}).get(resource, 0.0) / whole if whole > 0 else 0.0
        if share <= 0 or resource not in now:
            changed[name] = now
            continue
        value = math.ceil(wanted * share / unit - 1e-6) * unit
        changed[name] = {**now, resource: min(value, pod.limits[name].get(resource, math.inf))}
    return changed


def stays_burstable(pod: OptedPod, requests: Requests) -> bool:
    """Whether a pod would keep the class Burstable: not all its requests are at their limits."""
    return any(
        of_one.get(resource, 0.0) < pod.limits[name].get(resource, math.inf)
        for name, of_one in requests.items()
        for resource in NAMES.values()
    )
