"""The fields of pods, nodes and their owners that the executor reads, as msgspec types, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Raw

from forecast.service_key import DEPLOYMENT_HASH_LABEL, NO_OWNER, ROLLOUT_HASH_LABEL, Owner, service_of_pod
from kube.decoding.shared_json import string_map
from kube.decoding.watched_kinds import Watched, decode_page
from kube.decoding.wire import GateJson, Metadata, MetadataOnly, NodeJson
from kube.decoding.wire_base import NOTHING, Int32, Text, Wire
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.pod_shape import IDENTITY_LABELS
from rebalancer.execution.observation import DeploymentSeen, PodSeen

MOVE_BY_SURGE: Final = ANNOTATION_PREFIX + "move-by-surge"
"""Annotation of a Deployment or of its pod template: "true" = it may be scaled up by one for a move."""

SURGED_FOR: Final = ANNOTATION_PREFIX + "surged-for"
"""Annotation that the executor writes to a Deployment: UID of the pod that moves, a colon, replicas as before."""

_OF_A_REVISION: Final = frozenset({DEPLOYMENT_HASH_LABEL, ROLLOUT_HASH_LABEL, "controller-revision-hash"})
_LONGEST_SELECTOR: Final = 2048
_COUNT: Final = re.compile("0|[1-9][0-9]{0,9}", re.ASCII)
"""As we write it and deploy/base/rebalancer/policy.yaml compares it: 01 is another text."""

_OURS: Final = "forecast-scheduler"
"""Field manager of our requests: the User-Agent of kube.session.api_session."""

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class _Condition(Wire):
    type: Text
    status: Text = ""
    message: str | None = None


class _PodSpec(Wire):
    node_name: Text | None = None
    scheduling_gates: list[GateJson] | None = None


class _PodStatus(Wire):
    phase: Text | None = None
    nominated_node_name: Text | None = None
    conditions: list[_Condition] | None = None


class _PodJson(Wire):
    metadata: Metadata
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _Replicas(Wire):
    replicas: Int32 | None = None


class _TemplateMetadata(Wire):
    annotations: Raw = NOTHING


class _TemplateJson(Wire):
    metadata: _TemplateMetadata | None = None


class _WorkloadSpec(_Replicas):
    template: _TemplateJson | None = None


class _WorkloadJson(Wire):
    metadata: Metadata
    spec: _WorkloadSpec | None = None


class _ManagedFields(Wire, rename={"fields": "fieldsV1"}):
    manager: str = ""
    fields: Raw = NOTHING


class _ManagedMetadata(Metadata):
    managed_fields: list[_ManagedFields] | None = None


class _DeploymentJson(Wire):
    metadata: _ManagedMetadata
    spec: _WorkloadSpec | None = None


class _OwnedSpec(Wire, rename={"replicas": "f:replicas"}):
    replicas: Raw = NOTHING


class _Owned(Wire, rename={"spec": "f:spec"}):
    spec: _OwnedSpec | None = None


class _TargetReference(Wire):
    kind: Text = ""
    name: Text = ""


class _AutoscalerSpec(Wire):
    scale_target_ref: _TargetReference | None = None


class _AutoscalerJson(Wire):
    metadata: Metadata
    spec: _AutoscalerSpec | None = None


_POD: Final = msgspec.json.Decoder(_PodJson)
_NODE: Final = msgspec.json.Decoder(NodeJson)
_WORKLOAD: Final = msgspec.json.Decoder(_WorkloadJson)
_DEPLOYMENT: Final = msgspec.json.Decoder(_DeploymentJson)
_OWNED: Final = msgspec.json.Decoder(_Owned | None)
_REPLICA_SET: Final = msgspec.json.Decoder(MetadataOnly)
_AUTOSCALER: Final = msgspec.json.Decoder(_AutoscalerJson)


def pod_seen(body: bytes | Raw) -> PodSeen:
    """Return one pod. Raises REFUSED, as all functions here."""
    return _pod(_POD.decode(body))


def pods_seen(body: bytes) -> list[PodSeen]:
    """Return the pods of a list, without those that cannot be read."""
    return decode_page(Watched("pods", "Pod", "/api/v1/pods", lambda one: (pod_seen(one), "")), body).objects


def why_no_target(body: bytes) -> str:
    """Return why a node takes no new pods; '' = it does."""
    node = _NODE.decode(body)
    conditions = node.status.conditions if node.status is not None else None
    if not any(one.type == "Ready" and one.status == "True" for one in conditions or ()):
        return "the node is not ready"
    if node.spec is not None and node.spec.unschedulable:
        return "the node is cordoned"
    return "the node is being deleted" if node.metadata.deletion_timestamp is not None else ""


def wanted_replicas(body: bytes) -> int:
    """Return how many pods a workload wants."""
    spec = _WORKLOAD.decode(body).spec
    return 1 if spec is None or spec.replicas is None else spec.replicas


def deployment_seen(body: bytes, autoscalers: bytes) -> DeploymentSeen:
    """Return a Deployment. autoscalers: the list of those of its namespace."""
    json = _DEPLOYMENT.decode(body)
    spec = json.spec or _WorkloadSpec()
    annotations = string_map(json.metadata.annotations)
    of_template = spec.template.metadata if spec.template is not None else None
    allowed = {**({} if of_template is None else string_map(of_template.annotations)), **annotations}
    mark = annotations.get(SURGED_FOR, "")
    recorded = mark.rpartition(":")[2]
    name = json.metadata.name
    return DeploymentSeen(
        name=name,
        version=json.metadata.resource_version or "",
        replicas=1 if spec.replicas is None else spec.replicas,
        allows_surge=allowed.get(MOVE_BY_SURGE) == "true",
        scaled_by=_scaled_by(name, autoscalers),
        surged_for=mark.partition(":")[0],
        recorded=int(recorded) if _COUNT.fullmatch(recorded) else None,
        asked_by=next((one.manager for one in json.metadata.managed_fields or () if _asks_for_replicas(one)), ""),
    )


def marked_deployments(body: bytes) -> tuple[list[tuple[str, str]], str]:
    """Return namespaces and names of the Deployments of ReplicaSets that have a copy of our mark, and the next page.

    The Deployment controller copies annotations, and never takes a copy away: some of these marks are gone by now.
    """
    page = decode_page(Watched("replicasets", "ReplicaSet", "/apis/apps/v1/replicasets", _marked), body)
    return [one for of_one in page.objects for one in of_one], page.continue_token


def _marked(body: bytes | Raw) -> tuple[list[tuple[str, str]], str]:
    metadata = _REPLICA_SET.decode(body).metadata
    if SURGED_FOR.encode() not in bytes(metadata.annotations) or SURGED_FOR not in string_map(metadata.annotations):
        return [], ""
    owners = [one for one in metadata.owner_references or () if one.controller and one.kind == "Deployment"]
    return [(metadata.namespace or "default", owner.name) for owner in owners], ""


def _asks_for_replicas(one: _ManagedFields) -> bool:
    """Return whether another client than ours owns spec.replicas. With our last change of it all others lose it."""
    if one.manager == _OURS:
        return False
    owned = _OWNED.decode(one.fields)
    return owned is not None and owned.spec is not None and bytes(owned.spec.replicas) != bytes(NOTHING)


_AUTOSCALERS: Final = Watched(
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    lambda body: (_AUTOSCALER.decode(body), ""),
)


def _scaled_by(deployment: str, body: bytes) -> str:
    for one in decode_page(_AUTOSCALERS, body).objects:
        target = one.spec.scale_target_ref if one.spec is not None else None
        if target is not None and (target.kind, target.name) == ("Deployment", deployment):
            return one.metadata.name
    return ""


def _pod(json: _PodJson) -> PodSeen:
    metadata, spec, status = json.metadata, json.spec or _PodSpec(), json.status or _PodStatus()
    labels = string_map(metadata.labels)
    owner = next((Owner(one.kind, one.name) for one in metadata.owner_references or () if one.controller), NO_OWNER)
    namespace = metadata.namespace or "default"
    conditions = {one.type: one for one in status.conditions or ()}
    scheduled = conditions.get("PodScheduled")
    return PodSeen(
        name=metadata.name,
        uid=metadata.uid or "",
        created=metadata.creation_timestamp or _BEGINNING,
        owner=str(service_of_pod(namespace, metadata.name, owner, pod_labels=labels)),
        owner_kind=owner.kind,
        owner_name=owner.name,
        selector=_selector(labels),
        node=spec.node_name or "",
        is_ready="Ready" in conditions and conditions["Ready"].status == "True",
        is_terminating=metadata.deletion_timestamp is not None,
        is_finished=status.phase in _FINISHED,
        is_gated=bool(spec.scheduling_gates),
        nominated=status.nominated_node_name or "",
        trouble="" if scheduled is None or scheduled.status == "True" else scheduled.message or "",
    )


def _selector(labels: Mapping[str, str]) -> str:
    """Return a selector of the labels that pods of one owner share, as many of them as a record may hold."""
    parts, length = list[str](), 0
    for key, value in sorted(labels.items()):
        if key in IDENTITY_LABELS or key in _OF_A_REVISION:
            continue
        length += len(key) + len(value) + 2
        if length > _LONGEST_SELECTOR:
            break
        parts.append(f"{key}={value}")
    return ",".join(parts)
