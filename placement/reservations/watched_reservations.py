"""JSON of a Reservation -> what matters of it.

The definition may not be installed: then there are no Reservations.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from forecast.durations import DURATION_EXAMPLES, duration_seconds
from forecast.errors import InputError
from kube.decoding import wire
from kube.decoding.constraint_decoding import label_selector
from kube.decoding.job_templates import TemplateMetadata
from kube.decoding.object_decoding import created_at, namespace_of, pod_info, uid_of
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire_base import Amounts, Name, Text, Time, Wire
from kube.decoding.wire_scheduling import LabelSelectorJson
from kube.objects.constraints import LabelSelector
from kube.objects.objects import PodInfo
from placement.reservations.reservation import KIND, PATH, Reservation, ReservationPhase
from placement.reservations.stand_in import stand_in_of

DEFAULT_LIFETIME: Final = "24h"


class _TemplateJson(Wire):
    metadata: TemplateMetadata | None = None
    spec: wire.PodSpec | None = None


class _SpecJson(Wire):
    owners: LabelSelectorJson
    resources: Amounts | None = None
    template: _TemplateJson | None = None
    lifetime: Text = DEFAULT_LIFETIME
    node: Name | None = None
    scheduler_name: Text = ""


class _TakenByJson(Wire):
    name: Text = ""
    uid: Text = ""


class _StatusJson(Wire):
    phase: ReservationPhase = ReservationPhase.PENDING
    node: Text = ""
    since: Time | None = None
    message: Text = ""
    devices: dict[str, str] | None = None
    taken_by: _TakenByJson | None = None


class _ReservationJson(Wire):
    metadata: wire.Metadata
    spec: _SpecJson
    status: _StatusJson | None = None


_DECODER: Final = msgspec.json.Decoder(_ReservationJson)


def _decode(body: bytes | Raw) -> tuple[Reservation, str]:
    json = _DECODER.decode(body)
    metadata, spec, status = json.metadata, json.spec, json.status or _StatusJson()
    lifetime = duration_seconds(spec.lifetime)
    if lifetime is None:
        raise InputError(f"spec.lifetime is {spec.lifetime[:40]!r}: write a duration such as {DURATION_EXAMPLES}")
    uid, created, version = uid_of(metadata), created_at(metadata), metadata.resource_version or ""
    shape = stand_in_of(
        _pod(metadata, spec),
        uid=uid,
        name=metadata.name,
        created=created,
        scheduler_name=spec.scheduler_name,
        only_node=spec.node or "",
    )
    return (
        Reservation(
            uid=uid,
            namespace=namespace_of(metadata),
            name=metadata.name,
            version=version,
            shape=shape,
            owners=label_selector(spec.owners) or LabelSelector(),
            only_node=spec.node or "",
            until=created + lifetime,
            phase=status.phase,
            node=status.node,
            since=0.0 if status.since is None else status.since.timestamp(),
            message=status.message,
            devices=status.devices or {},
            taken_by="" if status.taken_by is None else status.taken_by.uid,
        ),
        version,
    )


def _pod(metadata: wire.Metadata, spec: _SpecJson) -> PodInfo:
    """Return a pod of the template, or one whose only container requests the resources."""
    if spec.template is not None:
        of_pod, pod_spec = spec.template.metadata or TemplateMetadata(), spec.template.spec or wire.PodSpec()
    else:
        requests = Raw(msgspec.json.encode({"requests": spec.resources or {}}))
        of_pod, pod_spec = TemplateMetadata(), wire.PodSpec(containers=[wire.Container(resources=requests)])
    named = wire.Metadata(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        labels=of_pod.labels,
        annotations=of_pod.annotations,
    )
    return pod_info(wire.PodJson(metadata=named, spec=pod_spec))


WATCHED_RESERVATIONS: Final = Watched("reservations", KIND, PATH, _decode, optional=True)
"""Needs list and watch on reservations.forecast-scheduler.io."""
