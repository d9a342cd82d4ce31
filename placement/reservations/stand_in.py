"""The pod of a template, or of bare resources, as the stand-in of a Reservation."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from forecast.service_key import Owner
from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints, Requirement
from kube.objects.objects import RESERVATION, SHARING_PLUGIN_PREFIX, PodInfo
from placement.pod_groups.by_annotation import MIN_MEMBER
from placement.pod_groups.labels import GROUP_LABEL, OLDER_GROUP_LABEL

NAME_PREFIX: Final = "reservation:"
"""Of names of stand-ins. No pod can have such a name."""

_GROUP_LABELS: Final = frozenset({GROUP_LABEL, OLDER_GROUP_LABEL})
_NOT_OF_A_ROOM: Final = frozenset({MIN_MEMBER, RESERVATION})


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
