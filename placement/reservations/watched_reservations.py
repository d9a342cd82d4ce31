"""JSON of a Reservation -> what matters of it, with the stand-in pod of its template or of bare resources.

One whose spec cannot be read is a Reservation with a problem, which its status says: the API server takes more than
can be held. The definition may not be installed: then there are no Reservations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import msgspec
from msgspec import Raw

from base.errors import InputError
from base.setting_group import DURATION_EXAMPLES, duration_seconds
from forecast.service_key import Owner
from kube.decoding import wire
from kube.decoding.constraint_decoding import label_selector
from kube.decoding.job_specs import TemplateMetadata
from kube.decoding.object_decoding import created_at, namespace_of, pod_info, uid_of
from kube.decoding.watched_kinds import REFUSED, Watched
from kube.decoding.wire_base import NOTHING, Amounts, Name, Text, Time, Wire
from kube.decoding.wire_scheduling import LabelSelectorJson
from kube.objects.constraints import LabelSelector, NodeSelectorTerm, Operator, PodConstraints, Requirement
from kube.objects.objects import RESERVATION, SHARING_PLUGIN_PREFIX, PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL, MIN_MEMBER, OLDER_GROUP_LABEL
from placement.reservations.reservation import KIND, PATH, Reservation, ReservationPhase

NAME_PREFIX: Final = "reservation:"
"""Of names of stand-ins. No pod can have such a name."""

_GROUP_LABELS: Final = frozenset({GROUP_LABEL, OLDER_GROUP_LABEL})
_NOT_OF_A_ROOM: Final = frozenset({MIN_MEMBER, RESERVATION})

DEFAULT_LIFETIME: Final = "24h"
DEFAULT_LIFETIME_SECONDS: Final = 86_400.0
LONGEST_LIFETIME_SECONDS: Final = 366 * 86_400.0
_LONGEST_PROBLEM: Final = 512


def stand_in_of(pod: PodInfo, *, uid: str, name: str, created: float, scheduler_name: str, only_node: str) -> PodInfo:
    """Return the stand-in, on no node.

    It has a service of its own, so that it is no replica of any, and is in no gang. It has no volumes, ports, claims
    and images: these are of the pods that take the room over. While it waits it makes no room for itself.

    pod       : as the template has it
    only_node : that it may go to; '' = any
    """
    annotations = {
        key: value
        for key, value in pod.annotations.items()
        if key not in _NOT_OF_A_ROOM and not key.startswith(SHARING_PLUGIN_PREFIX)
    }
    return replace(
        pod,
        uid=uid,
        name=f"{NAME_PREFIX}{name}",
        node="",
        labels={key: value for key, value in pod.labels.items() if key not in _GROUP_LABELS},
        annotations=annotations,
        owner=Owner("Reservation", name),
        owner_uid=uid,
        created=created,
        scheduler_name=scheduler_name,
        constraints=_on_node(pod.constraints, only_node) if only_node else pod.constraints,
        priority=0,
        may_preempt=False,
        gates=(),
        nominated_node="",
        volumes=(),
        local_volumes=(),
        host_ports=(),
        images=(),
        image_volumes=0,
        uses_host=False,
        shares_host=False,
        resource_claims=(),
        device_asks=(),
        needed_features=(),
        scheduling_group="",
        stands_in=True,
    )


def _on_node(constraints: PodConstraints, node: str) -> PodConstraints:
    """Add the node to each of the terms, of which one must match."""
    name = Requirement("metadata.name", Operator.IN, (node,))
    terms = constraints.required_node_terms
    if terms is None:
        return replace(constraints, required_node_terms=(NodeSelectorTerm(fields=(name,)),))
    # A term without any requirement matches nothing, and has to stay so.
    matching = (term for term in terms if term.expressions or term.fields)
    return replace(
        constraints,
        required_node_terms=tuple(replace(term, fields=(*term.fields, name)) for term in matching),
    )


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


_NO_SPEC: Final = _SpecJson(owners=LabelSelectorJson())


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
    spec: Raw = NOTHING
    status: Raw = NOTHING


_DECODER: Final = msgspec.json.Decoder(_ReservationJson)
_SPEC: Final = msgspec.json.Decoder(_SpecJson)
_STATUS: Final = msgspec.json.Decoder(_StatusJson | None)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a spec says; see Reservation."""

    pod: PodInfo
    owners: LabelSelector
    only_node: str = ""
    scheduler_name: str = ""
    lifetime: float = DEFAULT_LIFETIME_SECONDS
    problem: str = ""


def _decode(body: bytes | Raw) -> tuple[Reservation, str]:
    json = _DECODER.decode(body)
    metadata, status = json.metadata, _status(json.status)
    try:
        read = _read(metadata, json.spec)
    except REFUSED as error:
        why = str(error) if isinstance(error, InputError) else f"spec: {error}"
        problem = f"it cannot be read, so it holds no room: {why}"[:_LONGEST_PROBLEM]
        read = _Read(_pod(metadata, _NO_SPEC), LabelSelector(), problem=problem)
    uid, created, version = uid_of(metadata), created_at(metadata), metadata.resource_version or ""
    shape = stand_in_of(
        read.pod,
        uid=uid,
        name=metadata.name,
        created=created,
        scheduler_name=read.scheduler_name,
        only_node=read.only_node,
    )
    return (
        Reservation(
            uid=uid,
            namespace=namespace_of(metadata),
            name=metadata.name,
            version=version,
            shape=shape,
            owners=read.owners,
            only_node=read.only_node,
            until=created + read.lifetime,
            problem=read.problem,
            phase=status.phase,
            node=status.node,
            since=0.0 if status.since is None else status.since.timestamp(),
            message=status.message,
            devices=status.devices or {},
            taken_by="" if status.taken_by is None else status.taken_by.uid,
        ),
        version,
    )


def _read(metadata: wire.Metadata, body: Raw) -> _Read:
    """Raises what REFUSED names."""
    spec = _SPEC.decode(body)
    lifetime = duration_seconds(spec.lifetime)
    if lifetime is None or lifetime > LONGEST_LIFETIME_SECONDS:
        raise InputError(
            f"spec.lifetime is {spec.lifetime[:40]!r}: write a duration of at most 366d, such as {DURATION_EXAMPLES}"
        )
    return _Read(
        _pod(metadata, spec),
        label_selector(spec.owners) or LabelSelector(),
        spec.node or "",
        spec.scheduler_name,
        lifetime,
    )


def _status(body: Raw) -> _StatusJson:
    """A client that may write statuses may write anything: an unreadable one counts as missing."""
    try:
        return _STATUS.decode(body) or _StatusJson()
    except REFUSED:
        return _StatusJson()


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
