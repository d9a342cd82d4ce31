"""JSON of a PodGroup, ours or of scheduling.k8s.io (from Kubernetes 1.37) -> pod_group.py.

What a group asks for and we do not do is a problem that names the field: its members wait, and say so.
https://github.com/kubernetes/api/blob/v0.37.2/scheduling/v1beta1/types.go

The definition in deploy/crds/podgroups and that of kubernetes-sigs/scheduler-plugins (apis/scheduling/v1alpha1) are
read alike. One whose spec or annotation is mistaken is a group
with a problem: its members wait, and say why.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from base.errors import InputError
from kube.decoding import wire
from kube.decoding.shared_json import own_annotations
from kube.decoding.stored_templates import StoredCondition
from kube.decoding.watched_kinds import REFUSED, Watched, first_served
from kube.decoding.wire_base import NOTHING, Int32, Wire
from placement.pod_groups.group_apis import NATIVE, NATIVE_VERSIONS, OURS, GroupApi
from placement.pod_groups.group_of_pod import CREATED_FOR
from placement.pod_groups.minima import Minima, of_annotations
from placement.pod_groups.pod_group import (
    ANYWHERE,
    TOPOLOGY_REQUIRED,
    Disruption,
    PodGroupInfo,
    PodGroupStatus,
    group_topology,
)

# JSON of a PodGroup -> pod_group.py. What can be listed and watched, and how it is decoded.
#
# The definition in deploy/crds/podgroups and that of kubernetes-sigs/scheduler-plugins (apis/scheduling/v1alpha1) are
# read alike; group_decoding.py reads those of Kubernetes itself. One whose spec or annotation is mistaken is a group
# with a problem: its members wait, and say why.


class GroupMetadataJson(wire.Metadata):
    """metadata, with the number of the spec's version."""

    generation: int | None = None


class PodGroupJson(Wire):
    """A PodGroup; spec and status are decoded apart, so that one with a bad spec still has a name."""

    metadata: GroupMetadataJson
    spec: Raw = NOTHING
    status: Raw = NOTHING


class SpecJson(Wire):
    """spec. minResources is skipped: what the members themselves request is what counts."""

    min_member: Annotated[int, Meta(ge=0, lt=2**31)] | None = None
    schedule_timeout_seconds: Int32 | None = None


_SPEC: Final = msgspec.json.Decoder(SpecJson | None)
_STATUS: Final = msgspec.json.Decoder(PodGroupStatus | None)


def identified(decoded: PodGroupJson, api: GroupApi, **facts: Any) -> tuple[PodGroupInfo, str]:
    """The group with its identity and these facts, and its resourceVersion."""
    metadata = decoded.metadata
    namespace = metadata.namespace or "default"
    made = PodGroupInfo(
        namespace=namespace,
        name=metadata.name,
        uid=metadata.uid or f"{namespace}/{metadata.name}",
        generation=metadata.generation or 0,
        created=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        version=metadata.resource_version or "",
        api=api,
        **facts,
    )
    return made, made.version


def _decode(body: bytes | Raw) -> tuple[PodGroupInfo, str]:
    decoded = _OBJECT.decode(body)
    minima, timeout, problem, topology, is_by_annotation = Minima(), None, "", ANYWHERE, False
    try:
        annotations = own_annotations(decoded.metadata.annotations)
        is_by_annotation = CREATED_FOR in annotations
        spec = _SPEC.decode(decoded.spec) or SpecJson()
        minima = Minima(max(1, spec.min_member or 0), of_annotations(annotations))
        topology = group_topology(annotations)
        if spec.schedule_timeout_seconds is not None:
            timeout = float(max(0, spec.schedule_timeout_seconds))
    except REFUSED as error:
        problem = str(error) if isinstance(error, InputError) else f"spec: {error}"
    return identified(
        decoded,
        OURS,
        minima=minima,
        timeout_seconds=timeout,
        problem=problem[:1024],
        status=_status(decoded.status),
        topology=topology,
        is_by_annotation=is_by_annotation,
    )


def _status(body: Raw) -> PodGroupStatus:
    """A client that may write statuses may write anything: an unreadable one counts as missing."""
    try:
        return _STATUS.decode(body) or PodGroupStatus()
    except REFUSED:
        return PodGroupStatus()


POD_GROUPS: Final = Watched("podgroups", "PodGroup", f"{OURS.path}/podgroups", _decode, optional=True)


class _Gang(Wire):
    min_count: Annotated[int, Meta(ge=1, lt=2**31)]


class _Policy(Wire):
    basic: dict[str, Any] | None = None
    gang: _Gang | None = None


class _Disruption(Wire):
    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class _Topology(Wire):
    key: str = ""


class _Constraints(Wire):
    topology: list[_Topology] | None = None


class _Claim(Wire):
    name: str = ""


class _Spec(Wire):
    scheduling_policy: _Policy
    scheduling_constraints: _Constraints | None = None
    resource_claims: list[_Claim] | None = None
    disruption_mode: _Disruption | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class _Status(Wire):
    conditions: tuple[StoredCondition, ...] | None = None


_OBJECT: Final = msgspec.json.Decoder(PodGroupJson)
_NATIVE_SPEC: Final = msgspec.json.Decoder(_Spec)
_NATIVE_STATUS: Final = msgspec.json.Decoder(_Status | None)


def _decode_native(body: bytes | Raw, api: GroupApi) -> tuple[PodGroupInfo, str]:
    decoded = _OBJECT.decode(body)
    facts: dict[str, Any] = {"disruption": Disruption.SINGLE}
    try:
        spec = _NATIVE_SPEC.decode(decoded.spec)
        facts |= _facts(spec)
        annotations = own_annotations(decoded.metadata.annotations)
        members = 1 if spec.scheduling_policy.gang is None else spec.scheduling_policy.gang.min_count
        minima, topology = Minima(members, of_annotations(annotations)), group_topology(annotations)
        is_basic = spec.scheduling_policy.basic is not None and not minima.by_role and topology == ANYWHERE
        facts |= {"minima": minima, "topology": topology, "is_basic": is_basic}
        problem = _unsupported(spec)
    except REFUSED as error:
        problem = str(error) if isinstance(error, InputError) else f"spec: {error}"
    if problem:
        facts |= {"minima": Minima(), "topology": ANYWHERE, "is_basic": False, "problem": problem[:1024]}
    return identified(decoded, api, status=_native_status(decoded.status), **facts)


def _facts(spec: _Spec) -> dict[str, Any]:
    is_whole = spec.disruption_mode is not None and spec.disruption_mode.all is not None
    policy = spec.preemption_policy
    return {
        "disruption": Disruption.ALL if is_whole else Disruption.SINGLE,
        "priority": spec.priority,
        "may_preempt": None if policy is None else policy != "Never",
    }


def _unsupported(spec: _Spec) -> str:
    """'' = all that it asks for is done."""
    if (spec.scheduling_policy.gang is None) == (spec.scheduling_policy.basic is None):
        return "spec.schedulingPolicy: must have one of gang and basic"
    if spec.parent_composite_pod_group_name:
        return (
            f"spec.parentCompositePodGroupName: CompositePodGroup {spec.parent_composite_pod_group_name} is not "
            "supported: create the PodGroup without a parent"
        )
    if spec.resource_claims:
        return (
            f"spec.resourceClaims: {spec.resource_claims[0].name} is a claim of the whole group, which is not "
            "supported: give each pod a claim of its own"
        )
    if spec.scheduling_constraints is not None and spec.scheduling_constraints.topology:
        return (
            f"spec.schedulingConstraints.topology: {spec.scheduling_constraints.topology[0].key} is not supported: the "
            f"GPU profile reads the annotation {TOPOLOGY_REQUIRED} instead"
        )
    return ""


def _native_status(body: Raw) -> PodGroupStatus:
    """Its API has no phase: the condition gives it, for the number of groups by phase."""
    try:
        conditions = (_NATIVE_STATUS.decode(body) or _Status()).conditions or ()
    except REFUSED:
        return PodGroupStatus()
    placed = next((one.status for one in conditions if one.type == NATIVE.condition), "")
    return PodGroupStatus(phase=_PHASES.get(placed, ""), conditions=conditions)


_PHASES: Final = {"True": "Scheduled", "False": "Scheduling"}

WATCHED_GROUPS: Final[Mapping[GroupApi, Watched[PodGroupInfo]]] = {
    OURS: POD_GROUPS,
    NATIVE: first_served(
        Watched("podgroups", "PodGroup", f"{api.path}/podgroups", partial(_decode_native, api=api))
        for api in NATIVE_VERSIONS
    ),
}
