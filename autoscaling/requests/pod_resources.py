"""The pods that may be resized, as the API server lists them, and what a resize of one may change.

Rules of the API server for PATCH pods/NAME/resize (KEP-1287, validation of pod resizes in Kubernetes 1.35 to 1.37):
only CPU and memory of containers; no request is added or removed; a request stays at or below its limit; the QoS class
stays. So a Guaranteed pod, whose limits would have to move along, and a BestEffort pod, which has no requests, are
left alone.

Whoever may write a pod may write what is read here. So a pod that cannot be read costs no other its turn, and the
record of its original requests counts only with a proof (proven_records.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from base.errors import InputError
from forecast.resources import CPU, MEMORY
from forecast.service_key import Owner, ServiceKey, owner_from_references, service_of_pod
from kube.decoding.watched_kinds import Watched, decode_page
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.quantity import parse_quantity

RESIZE_LABEL: Final = f"{ANNOTATION_PREFIX}resize"
"""On a pod, or on its namespace: "true" = it may be resized."""
RESIZED_LABEL: Final = f"{ANNOTATION_PREFIX}resized"
"""On pods that bear the annotation, so that they are found again."""
ORIGINAL: Final = f"{ANNOTATION_PREFIX}original-requests"
"""Annotation: requests by container before the first resize, as JSON."""
PROOF: Final = f"{ANNOTATION_PREFIX}original-requests-proof"
"""Annotation: that ORIGINAL is ours, see proven_records.py."""

NOT_OURS: Final = f"the record in its annotation {ORIGINAL} is not ours"

NAMES: Final = {CPU: "cpu", MEMORY: "memory"}
_MIRROR: Final = "kubernetes.io/config.mirror"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_MOST: Final = 1e15
"""Cores or bytes beyond any node: kube-scheduler's own sums overflow there."""

IsOurs = Callable[[str, str, str], bool]
"""UID of a pod, record, proof -> whether we wrote the record: RecordKey.is_ours."""

Requests = Mapping[str, Mapping[str, float]]
"""Base units by container and name of the resource."""


@dataclass(frozen=True, slots=True)
class OptedPod:
    """A pod with a node, as it was listed. Implements kube.client.pod_writes.PodIdentity.

    requests, limits : of its containers; sidecars and init containers stay as they are
    original  : of its containers before the first resize, as we recorded it; None = it was never resized
    is_foreign: it bears a record that is not ours, and is left alone
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
    is_foreign: bool = False
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


_pod_decoder = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True)
class PodReader:
    """Reads pods in JSON. asking: namespaces that ask for their pods"""

    is_ours: IsOurs = lambda uid, record, proof: False
    asking: frozenset[str] = frozenset()

    def page(self, body: bytes) -> tuple[list[OptedPod], str, tuple[str, ...]]:
        """The pods of a list that have a node and go on, the token of the next page ('' = the last one), and why others
        cannot be read. Raises InputError where the body is no list.
        """
        page = decode_page(Watched("pods", "Pod", "/api/v1/pods", self._decode), body)
        return [pod for pod in page.objects if pod is not None], page.continue_token, page.undecodable

    def pod(self, body: bytes) -> OptedPod | None:
        """One pod; None = it has no node, or its time is over. Raises InputError."""
        return Watched("pods", "Pod", "/api/v1/pods", self._decode).decoded(body)[0]

    def _decode(self, body: bytes | Raw) -> tuple[OptedPod | None, str]:
        pod = _pod_decoder.decode(body)
        return _seen(pod, self), pod.metadata.resource_version


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


def _seen(pod: _Pod, reader: PodReader) -> OptedPod | None:
    meta, status = pod.metadata, pod.status
    if not pod.spec.node_name or status.phase in _TERMINAL or meta.deletion_timestamp is not None:
        return None
    labels, annotations = meta.labels or {}, meta.annotations or {}
    asked = labels.get(RESIZE_LABEL)
    conditions = {one.type: one for one in status.conditions or () if one.status == "True"}
    pending = conditions.get("PodResizePending")
    owner: Owner = owner_from_references(meta.owner_references)
    record = annotations.get(ORIGINAL)
    is_ours = record is not None and reader.is_ours(meta.uid, record, annotations.get(PROOF, ""))
    original = msgspec.json.decode(record, type=dict[str, dict[str, float]]) if record is not None and is_ours else None
    requests, limits = _containers(pod)
    return OptedPod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        node=pod.spec.node_name,
        service=service_of_pod(meta.namespace, meta.name, owner, pod_labels=labels),
        asks=asked == "true" or (asked is None and meta.namespace in reader.asking),
        requests=requests,
        limits=limits,
        original=original,
        is_foreign=record is not None and not is_ours,
        kept=(NOT_OURS if record is not None and not is_ours else "") or _kept(pod, annotations, requests),
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


def _kept(pod: _Pod, annotations: Mapping[str, str], requests: Requests) -> str:
    if pod.status.qos_class != "Burstable":
        return f"its QoS class is {pod.status.qos_class or 'unknown'}: only Burstable pods keep theirs in a resize"
    if _MIRROR in annotations:
        return "its kubelet owns it"
    if any(value > _MOST for of_one in requests.values() for value in of_one.values()):
        return "it requests more than any node has"
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        return "it has requests of the pod as a whole"
    restarts = [
        one.name
        for one in pod.spec.containers
        if any(policy.restart_policy == "RestartContainer" for policy in one.resize_policy or ())
    ]
    return f"a resize restarts its container {restarts[0]}" if restarts else ""


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


def restored(pod: OptedPod, room: Sequence[float]) -> tuple[Requests, bool]:
    """The original requests of a pod, as far as its node has room, and whether that is all of them.

    room : cores and bytes that no request takes on its node
    """
    assert pod.original is not None
    recorded = {
        name: {
            resource: min(pod.original.get(name, {}).get(resource, value), pod.limits[name].get(resource, math.inf))
            for resource, value in of_one.items()
        }
        for name, of_one in pod.requests.items()
    }
    target: dict[str, Mapping[str, float]] = dict(recorded)
    is_whole = True
    for column, resource in NAMES.items():
        if total(recorded, resource) - pod.total(resource) <= max(room[column], 0.0) + 1e-9:
            continue
        is_whole = False
        # Each container is rounded up to a millicore; of memory there is all or nothing.
        more = max(room[column] - 0.001 * len(pod.requests), 0.0) if resource == "cpu" else 0.0
        part = scaled(pod, resource, pod.total(resource) + more) if more > 0 else pod.requests
        for name, of_one in target.items():
            if resource in of_one:
                target[name] = {**of_one, resource: part[name][resource]}
    return target, is_whole


def stays_burstable(pod: OptedPod, requests: Requests) -> bool:
    """Whether a pod would keep the class Burstable: not all its requests are at their limits."""
    return any(
        of_one.get(resource, 0.0) < pod.limits[name].get(resource, math.inf)
        for name, of_one in requests.items()
        for resource in NAMES.values()
    )
