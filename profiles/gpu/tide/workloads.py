"""Workloads of training as the API server has them: paths, and what their objects say.

Deployment, StatefulSet, ReplicaSet    spec.replicas through the scale subresource
Job                                    spec.parallelism of the Job itself: it has no such subresource
others                                 the scale subresource that their definition names, found by discovery
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Raw

from forecast.service_key import ServiceKey
from kube.decoding.decoding import decode_pod
from kube.decoding.watched_kinds import REFUSED
from kube.decoding.wire_base import NOTHING, Int32, Name, StringMap, Text, Time, Wire
from kube.objects.objects import PodInfo
from profiles.gpu.tide.training_annotations import TIDE, Role

LABELLED: Final = f"labelSelector={quote(f'{TIDE}={Role.TRAINING.value}', safe='')}&limit=1000"
"""Query by which workloads are listed that have the label of the tide."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """group: '' = the core group; plural: as paths have it."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def root(self) -> str:
        api = f"/apis/{quote(self.group, safe='')}" if self.group else "/api"
        return f"{api}/{quote(self.version, safe='')}"


JOB: Final = WorkloadKind("batch", "v1", "jobs", "Job")
BUILT_IN: Final = {
    one.kind: one
    for one in (
        WorkloadKind("apps", "v1", "deployments", "Deployment"),
        WorkloadKind("apps", "v1", "statefulsets", "StatefulSet"),
        WorkloadKind("apps", "v1", "replicasets", "ReplicaSet"),
        JOB,
    )
}


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """
    replicas   : that it is to have; None = its object does not say, the scale subresource does
    template   : a pod as it makes them; None = its object has none where built-in workloads have it
    is_over    : it is suspended, has finished or is going: it is not the tide's
    generation : counts changes of what it asks for, 0 = unknown
    """

    kind: WorkloadKind
    key: ServiceKey
    uid: str
    resource_version: str
    replicas: int | None
    created: float
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    template: PodInfo | None = None
    is_over: bool = False
    generation: int = 0

    def scaled(self, replicas: int, resource_version: str) -> WorkloadState:
        """As the scale subresource says."""
        return replace(self, replicas=replicas, resource_version=resource_version or self.resource_version)


class _Metadata(Wire):
    name: Name
    namespace: Name | None = None
    uid: Text = ""
    resource_version: Text = ""
    generation: int | None = None
    labels: StringMap | None = None
    annotations: StringMap | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class _Template(Wire):
    metadata: Raw = NOTHING
    spec: Raw = NOTHING


class _Spec(Wire):
    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    suspend: bool | None = None
    template: _Template | None = None


class _Condition(Wire):
    type: Text = ""
    status: Text = ""


class _Status(Wire):
    conditions: list[_Condition] | None = None


class _Workload(Wire):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


class _ListMetadata(Wire):
    continue_: Text = msgspec.field(name="continue", default="")


class _List(Wire):
    items: list[Raw] | None = None
    metadata: _ListMetadata | None = None


_WORKLOAD: Final = msgspec.json.Decoder(_Workload)
_LIST: Final = msgspec.json.Decoder(_List)


def collection_path(kind: WorkloadKind) -> str:
    """Of all namespaces."""
    return f"{kind.root}/{quote(kind.plural, safe='')}"


def object_path(kind: WorkloadKind, key: ServiceKey) -> str:
    """Of one workload."""
    namespace, name = quote(key.namespace, safe=""), quote(key.name, safe="")
    return f"{kind.root}/namespaces/{namespace}/{quote(kind.plural, safe='')}/{name}"


def scale_path(kind: WorkloadKind, key: ServiceKey) -> str:
    """Of its scale subresource."""
    return f"{object_path(kind, key)}/scale"


def read_workload(kind: WorkloadKind, body: bytes) -> WorkloadState:
    """Raises REFUSED or ValueError for what is none."""
    said = _WORKLOAD.decode(body)
    metadata, spec = said.metadata, said.spec or _Spec()
    finished = any(
        one.type in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget") and one.status == "True"
        for one in (said.status.conditions if said.status is not None else None) or ()
    )
    is_job, is_built_in = kind == JOB, BUILT_IN.get(kind.kind) == kind
    replicas = spec.parallelism if is_job else spec.replicas
    return WorkloadState(
        kind=kind,
        key=ServiceKey(metadata.namespace or "default", kind.kind, metadata.name),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        # The API server fills in 1; what other kinds call so may mean something else.
        replicas=(1 if replicas is None else replicas) if is_built_in else None,
        created=0.0 if metadata.creation_timestamp is None else metadata.creation_timestamp.timestamp(),
        annotations=_strings(metadata.annotations),
        labels=_strings(metadata.labels),
        template=_template(spec.template, metadata.namespace or "default") if is_built_in else None,
        is_over=metadata.deletion_timestamp is not None or (is_job and (bool(spec.suspend) or finished)),
        generation=metadata.generation or 0,
    )


def read_scale(body: bytes) -> tuple[int, str]:
    """Replicas and resourceVersion of a Scale object."""
    said = _WORKLOAD.decode(body)
    replicas = None if said.spec is None else said.spec.replicas
    return replicas or 0, said.metadata.resource_version  # Go leaves out a 0


def read_list(kind: WorkloadKind, body: bytes) -> tuple[list[WorkloadState], str]:
    """Those that can be read, and where the list goes on; '' = it is whole."""
    said = _LIST.decode(body)
    return list(_each(kind, said.items or ())), said.metadata.continue_ if said.metadata is not None else ""


def record_patch(resource_version: str, annotations: Mapping[str, str], label: bool) -> bytes:
    """A merge patch of the workload's metadata. label: that it may be found without pods."""
    metadata: dict[str, Any] = {"resourceVersion": resource_version, "annotations": dict(annotations)}
    if label:
        metadata["labels"] = {TIDE: Role.TRAINING.value}
    return msgspec.json.encode({"metadata": metadata})


def job_patch(resource_version: str, annotations: Mapping[str, str], label: bool, parallelism: int) -> bytes:
    """The same of a Job, and its parallelism in one write."""
    body = msgspec.json.decode(record_patch(resource_version, annotations, label))
    return msgspec.json.encode({**body, "spec": {"parallelism": parallelism}})


def scale_patch(resource_version: str, replicas: int) -> bytes:
    """A merge patch of the scale subresource."""
    return msgspec.json.encode({"metadata": {"resourceVersion": resource_version}, "spec": {"replicas": replicas}})


def _each(kind: WorkloadKind, items: list[Raw] | tuple[()]) -> Iterator[WorkloadState]:
    for item in items:
        try:
            yield read_workload(kind, bytes(item))
        except (*REFUSED, ValueError):
            continue


def _template(said: _Template | None, namespace: str) -> PodInfo | None:
    if said is None or said.spec == NOTHING:
        return None
    metadata = msgspec.json.decode(bytes(said.metadata) or b"null") or {}
    pod = {
        "metadata": {**metadata, "name": "template", "namespace": namespace},
        "spec": msgspec.json.decode(bytes(said.spec)),
    }
    return decode_pod(pod)


def _strings(said: StringMap | None) -> dict[str, str]:
    return {name: value or "" for name, value in (said or {}).items()}
