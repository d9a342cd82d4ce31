"""JSON of a PodGroup -> pod_group.py. What can be listed and watched, and how it is decoded.

The definition in deploy/crds/podgroups and that of kubernetes-sigs/scheduler-plugins (apis/scheduling/v1alpha1) are
read alike; native_decoding.py reads those of Kubernetes itself. One whose spec or annotation is mistaken is a group
with a problem: its members wait, and say why.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from base.errors import InputError
from kube.decoding import wire
from kube.decoding.shared_json import own_annotations
from kube.decoding.watched_kinds import REFUSED, Watched
from kube.decoding.wire_base import NOTHING, Int32, Wire
from placement.pod_groups.by_annotation import CREATED_FOR
from placement.pod_groups.group_apis import OURS, GroupApi
from placement.pod_groups.group_topology import ANYWHERE, group_topology
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from placement.pod_groups.role_minima import of_annotations


class MetadataJson(wire.Metadata):
    """metadata, with the number of the spec's version."""

    generation: int | None = None


class PodGroupJson(Wire):
    """A PodGroup; spec and status are decoded apart, so that one with a bad spec still has a name."""

    metadata: MetadataJson
    spec: Raw = NOTHING
    status: Raw = NOTHING


class SpecJson(Wire):
    """spec. minResources is skipped: what the members themselves request is what counts."""

    min_member: Annotated[int, Meta(ge=0, lt=2**31)] | None = None
    schedule_timeout_seconds: Int32 | None = None


_OBJECT: Final = msgspec.json.Decoder(PodGroupJson)
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
