"""The fields of API objects that are read, as msgspec types: everything else is skipped without being built.

Null lists and maps are tolerated, as Go writes them. `Raw` leaves a piece as JSON: pieces that many pods share are
decoded once (see decoding.py).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

Time = Annotated[datetime, Meta(tz=True)]
Text = Annotated[str, Meta(max_length=16384)]
Name = Annotated[str, Meta(min_length=1, max_length=316, pattern="^[^/]*$")]
Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
StringMap = dict[str, str | None]
Amounts = dict[str, str | int | float]

NOTHING = Raw(b"null")

__all__ = [
    "NOTHING",
    "Amounts",
    "Condition",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "ListJson",
    "ListMetadata",
    "Metadata",
    "MetadataOnly",
    "NodeJson",
    "NodeSpec",
    "NodeStatus",
    "OwnerReference",
    "PodJson",
    "PodSpec",
    "PodStatus",
    "ResourcesJson",
    "StatusJson",
    "StringMap",
    "WatchJson",
]


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """Unknown fields are skipped; Python names are the JSON names in snake case."""


class OwnerReference(_Wire):
    """metadata.ownerReferences[]."""

    kind: Name
    name: Name
    uid: Text = ""
    controller: bool | None = None


class Metadata(_Wire):
    """metadata of any object."""

    name: Name
    namespace: Name | None = None
    uid: Text | None = None
    resource_version: Text | None = None
    labels: Raw = NOTHING
    annotations: Raw = NOTHING
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class MetadataOnly(_Wire):
    """ReplicaSets and Jobs, whole or as PartialObjectMetadata."""

    metadata: Metadata


class TaintJson(_Wire):
    key: Text
    effect: Text = ""
    value: Text | None = None


class NodeSpec(_Wire):
    """spec of a node."""

    taints: list[TaintJson] | None = None
    unschedulable: bool | None = None


class Condition(_Wire):
    """status.conditions[] of a node or pod."""

    type: Text
    status: Text = ""
    reason: str | None = None


class Address(_Wire):
    type: Text
    address: Text


class NodeStatus(_Wire):
    """status of a node."""

    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None


class NodeJson(_Wire):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ResourcesJson(_Wire):
    """`resources` of a container or pod."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class Container(_Wire):
    """A container or init container."""

    name: Text = ""
    resources: Raw = NOTHING
    restart_policy: Text | None = None


class PodSpec(_Wire):
    """spec of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: Text | None = None
    scheduler_name: Text | None = None
    priority: Int32 | None = None
    overhead: Raw = NOTHING
    resources: Raw = NOTHING


class Started(_Wire):
    started_at: Time | None = None


class ContainerState(_Wire):
    """How a container is, or was before."""

    running: Started | None = None
    terminated: Started | None = None


class ContainerStatus(_Wire):
    """status.containerStatuses[] and initContainerStatuses[]."""

    name: Text = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    resources: Raw = NOTHING
    allocated_resources: Raw = NOTHING


class PodStatus(_Wire):
    """status of a pod."""

    phase: Text | None = None
    qos_class: Text | None = None
    start_time: Time | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Raw = NOTHING
    allocated_resources: Raw = NOTHING


class PodJson(_Wire):
    """A Pod. Items of a list carry no kind."""

    metadata: Metadata
    kind: Text | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class ListMetadata(_Wire):
    """metadata of a list; of a bookmark, too."""

    resource_version: Text = ""
    continue_: Text | None = msgspec.field(name="continue", default=None)


class ListJson(_Wire):
    """A list of any kind; its items are decoded one by one."""

    items: list[Raw] | None
    metadata: ListMetadata | None = None


class WatchJson(_Wire):
    """One line of a watch."""

    type: Text
    object: Raw


class StatusJson(_Wire):
    """What an ERROR event carries, and (metadata only) a BOOKMARK."""

    code: int = 0
    message: str = ""
    reason: str = ""
    metadata: Raw = NOTHING
