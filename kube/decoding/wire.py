"""The fields of API objects that are read, as msgspec types: everything else is skipped without being built.

Null lists and maps are tolerated, as Go writes them. `Raw` leaves a piece as JSON: pieces that many pods share are
decoded once (see decoding.py).
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from kube.decoding.wire_base import NOTHING, Amount, Amounts, Int32, Name, Text, Time, Wire
from kube.decoding.wire_scheduling import PortJson, VolumeJson


class OwnerReference(Wire):
    """metadata.ownerReferences[]."""

    kind: Name
    name: Name
    uid: Text = ""
    controller: bool | None = None


class Metadata(Wire):
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


class MetadataOnly(Wire):
    """ReplicaSets and Jobs, whole or as PartialObjectMetadata."""

    metadata: Metadata


class TaintJson(Wire):
    key: Text
    effect: Text = ""
    value: Text | None = None


class NodeSpec(Wire):
    """spec of a node."""

    taints: list[TaintJson] | None = None
    unschedulable: bool | None = None


class Condition(Wire):
    """status.conditions[] of a node or pod."""

    type: Text
    status: Text = ""
    reason: str | None = None
    last_transition_time: Time | None = None


class Address(Wire):
    type: Text
    address: Text


class NodeImageJson(Wire):
    """status.images[] of a node: all names of one image, and its size."""

    names: list[Text] | None = None
    size_bytes: int | None = None


class NodeStatus(Wire):
    """status of a node."""

    images: list[NodeImageJson] | None = None

    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    declared_features: list[Text] | None = None


class NodeJson(Wire):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ResourcesJson(Wire):
    """`resources` of a container or pod."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class Container(Wire):
    """A container or init container."""

    name: Text = ""
    image: Text = ""
    resources: Raw = NOTHING
    restart_policy: Text | None = None
    restart_policy_rules: Raw = NOTHING
    volume_mounts: Raw = NOTHING
    ports: list[PortJson] | None = None


class GateJson(Wire):
    """schedulingGates[]."""

    name: Text


class PodClaimJson(Wire):
    """resourceClaims[] of a pod's spec, resourceClaimStatuses[] of its status."""

    name: Text
    resource_claim_name: Text | None = None


class SchedulingGroupJson(Wire):
    """schedulingGroup."""

    pod_group_name: Text | None = None


class PodSpec(Wire):
    """spec of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[VolumeJson] | None = None
    scheduling_gates: list[GateJson] | None = None
    preemption_policy: Text | None = None
    node_selector: Raw = NOTHING
    affinity: Raw = NOTHING
    tolerations: Raw = NOTHING
    topology_spread_constraints: Raw = NOTHING
    node_name: Text | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    host_pid: bool | None = msgspec.field(name="hostPID", default=None)
    host_ipc: bool | None = msgspec.field(name="hostIPC", default=None)
    scheduler_name: Text | None = None
    priority: Int32 | None = None
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    resource_claims: list[PodClaimJson] | None = None
    scheduling_group: SchedulingGroupJson | None = None


class Started(Wire):
    started_at: Time | None = None


class Ended(Started):
    finished_at: Time | None = None


class ContainerState(Wire):
    """How a container is, or was before."""

    running: Started | None = None
    terminated: Ended | None = None


class ContainerStatus(Wire):
    """status.containerStatuses[] and initContainerStatuses[]."""

    name: Text = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    resources: Raw = NOTHING
    allocated_resources: Raw = NOTHING


class MappedResourceJson(Wire):
    """mapping[] of nodeAllocatableResourceClaimStatuses."""

    name: Text
    quantity: Amount = None


class OverheadResourceJson(Wire):
    """overhead[] of nodeAllocatableResourceClaimStatuses."""

    name: Text
    per_pod: Amount = None
    per_container: Amount = None


class NodeClaimJson(Wire):
    """nodeAllocatableResourceClaimStatuses[]: what the devices of one claim take of the node. A claim that several pods
    share is counted in each of them."""

    containers: list[Text] | None = None
    mapping: list[MappedResourceJson] | None = None
    overhead: list[OverheadResourceJson] | None = None


class PodStatus(Wire):
    """status of a pod."""

    phase: Text | None = None
    reason: Text | None = None
    nominated_node_name: Text | None = None
    resource_claim_statuses: list[PodClaimJson] | None = None
    qos_class: Text | None = None
    start_time: Time | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Raw = NOTHING
    allocated_resources: Raw = NOTHING
    node_allocatable_resource_claim_statuses: Raw = NOTHING


class PodJson(Wire):
    """A Pod. Items of a list carry no kind."""

    metadata: Metadata
    kind: Text | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class ListMetadata(Wire):
    """metadata of a list; of a bookmark, too."""

    resource_version: Text = ""
    continue_: Text | None = msgspec.field(name="continue", default=None)


class ListJson(Wire):
    """A list of any kind; its items are decoded one by one."""

    items: list[Raw] | None
    metadata: ListMetadata | None = None


class WatchJson(Wire):
    """One line of a watch."""

    type: Text
    object: Raw


class StatusJson(Wire):
    """What an ERROR event carries, and (metadata only) a BOOKMARK."""

    code: int = 0
    message: str = ""
    reason: str = ""
    metadata: Raw = NOTHING
