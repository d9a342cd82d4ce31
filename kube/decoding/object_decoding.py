"""JSON fields of one API object (wire.py) -> what of it matters (objects.py)."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

import msgspec

from forecast.service_key import NO_OWNER, Owner
from kube.decoding import wire, wire_base
from kube.decoding.constraint_decoding import (
    host_ports,
    local_volumes,
    pod_constraints,
    pod_volumes,
    shares_host,
    uses_host,
)
from kube.decoding.pod_needs import device_asks, may_be_of_class, needed_features
from kube.decoding.shared_json import own_annotations, pod_annotations, quantities, shared_owner, string_map, totals
from kube.objects.counted_pods import FINISHED
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion
from kube.objects.objects import (
    NamespaceInfo,
    NodeImage,
    NodeInfo,
    PodInfo,
    PodPhase,
    PodResourceClaim,
    QosClass,
    ReplicaSetInfo,
    Taint,
)

_LONGEST_REASON: Final = 64

_REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"

_PHASES: Final = {phase.value: phase for phase in PodPhase}
_QOS: Final = {
    "Guaranteed": QosClass.GUARANTEED,
    "Burstable": QosClass.BURSTABLE,
    "BestEffort": QosClass.BEST_EFFORT,
}

_string_map_decoder = msgspec.json.Decoder(wire_base.StringMap | None)


def node_info(node: wire.NodeJson) -> NodeInfo:
    """A Node; without a Ready condition it is not ready."""
    metadata, spec, status = node.metadata, node.spec or wire.NodeSpec(), node.status or wire.NodeStatus()
    return NodeInfo(
        name=sys.intern(metadata.name),
        labels=string_map(metadata.labels),
        annotations=own_annotations(metadata.annotations),
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions or ()),
        capacity=quantities(status.capacity),
        allocatable=quantities(status.allocatable),
        addresses=tuple(a.address for a in status.addresses or () if a.type in ("InternalIP", "Hostname")),
        images=tuple(NodeImage(tuple(map(sys.intern, i.names or ())), i.size_bytes or 0) for i in status.images or ()),
        features=_shared_features(tuple(status.declared_features)) if status.declared_features else frozenset(),
    )


def pod_info(pod: wire.PodJson, version: KubernetesVersion = NEWEST) -> PodInfo:
    """A Pod, by the rules of a version. What the API server would fill in may be missing: namespace, uid, status."""
    metadata, spec, status = pod.metadata, pod.spec or wire.PodSpec(), pod.status or wire.PodStatus()
    namespace = namespace_of(metadata)
    owner, owner_uid = controller(metadata)
    effective = totals(spec, status, version)
    labels = string_map(metadata.labels)
    phase = _PHASES.get(status.phase or "Pending", PodPhase.UNKNOWN)
    started = _started(status)
    return PodInfo(
        uid=uid_of(metadata),
        namespace=namespace,
        name=metadata.name,
        node=sys.intern(spec.node_name or ""),
        labels=labels,
        annotations=pod_annotations(metadata.annotations),
        owner=owner,
        owner_uid=owner_uid,
        requests=effective.requests,
        nonzero_requests=effective.nonzero_requests,
        limits=effective.limits,
        qos=_QOS.get(status.qos_class or "", effective.qos),
        phase=phase,
        terminating=metadata.deletion_timestamp is not None,
        started=started,
        created=created_at(metadata),
        scheduler_name=sys.intern(spec.scheduler_name or "default-scheduler"),
        priority=spec.priority or 0,
        constraints=pod_constraints(spec, namespace, labels),
        host_ports=host_ports(spec),
        volumes=pod_volumes(spec, metadata.name),
        images=_images(spec),
        image_volumes=sum(volume.image is not None for volume in spec.volumes or ()),
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        may_preempt=spec.preemption_policy != "Never",
        nominated_node=sys.intern(status.nominated_node_name or ""),
        finished=_finished(status) if phase in FINISHED else None,
        status_reason=sys.intern(status.reason[:_LONGEST_REASON]) if status.reason else "",
        uses_host=uses_host(spec),
        is_preparing=bool(started is None and status.init_container_statuses and _has_prepared(status)),
        resource_claims=_resource_claims(spec, status) if spec.resource_claims else (),
        containers=effective.containers,
        device_asks=device_asks(spec) if any(map(may_be_of_class, effective.requests)) else (),
        needed_features=needed_features(spec),
        scheduling_group=sys.intern(spec.scheduling_group.pod_group_name or "") if spec.scheduling_group else "",
        scheduled=_since(status, "PodScheduled"),
        ready=_since(status, "Ready"),
        local_volumes=local_volumes(spec) if spec.volumes else (),
        shares_host=shares_host(spec),
        set_aside=effective.set_aside,
        # Before its kubelet has admitted or rejected it, a pod has neither.
        acknowledged=status.start_time is not None or bool(status.container_statuses),
    )


@lru_cache(maxsize=1024)
def _shared_features(names: tuple[str, ...]) -> frozenset[str]:
    """One set for all nodes that declare the same."""
    return frozenset(map(sys.intern, names))


def replica_set_info(metadata: wire.Metadata) -> ReplicaSetInfo:
    """A ReplicaSet; revision and replicas are annotations its Deployment's controller keeps."""
    annotations = _string_map_decoder.decode(metadata.annotations) or {}
    return ReplicaSetInfo(
        uid=uid_of(metadata),
        namespace=namespace_of(metadata),
        name=metadata.name,
        owner=controller(metadata)[0],
        revision=_whole_number(annotations.get(_REVISION)),
        desired_replicas=_whole_number(annotations.get(_DESIRED_REPLICAS)),
        created=created_at(metadata),
    )


def namespace_info(metadata: wire.Metadata) -> NamespaceInfo:
    """A Namespace."""
    return NamespaceInfo(sys.intern(metadata.name), string_map(metadata.labels), own_annotations(metadata.annotations))


def _resource_claims(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[PodResourceClaim, ...]:
    """A claim made from a template is named in the status, without a name where none turned out to be needed."""
    made = {one.name: one.resource_claim_name for one in status.resource_claim_statuses or ()}
    return tuple(
        PodResourceClaim(one.name, one.resource_claim_name or made.get(one.name, ""))
        for one in spec.resource_claims or ()
    )


def _images(spec: wire.PodSpec) -> tuple[str, ...]:
    """As ImageLocality sums them: init containers, containers, image volumes."""
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = (volume.image.reference for volume in spec.volumes or () if volume.image is not None)
    return tuple(map(sys.intern, (*(c.image for c in containers), *volumes)))


def namespace_of(metadata: wire.Metadata) -> str:
    """The namespace of an object, "default" where a manifest leaves it out."""
    return sys.intern(metadata.namespace or "default")


def uid_of(metadata: wire.Metadata) -> str:
    """The UID of an object, namespace/name where a manifest has none."""
    return metadata.uid or f"{namespace_of(metadata)}/{metadata.name}"


def created_at(metadata: wire.Metadata) -> float:
    """When an object was created, unix seconds; 0 = it does not say."""
    return metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0


def controller(metadata: wire.Metadata) -> tuple[Owner, str]:
    """The controller among the owners, and its UID; the rule of forecast.service_key.owner_from_references."""
    for reference in metadata.owner_references or ():
        if reference.controller:
            return shared_owner(reference.kind, reference.name), sys.intern(reference.uid)
    return NO_OWNER, ""


def _started(status: wire.PodStatus) -> float | None:
    """When the first regular container started. Of its starts the status remembers the last and the one before."""
    starts = [
        start.started_at
        for container in status.container_statuses or ()
        for state in (container.state, container.last_state)
        if state is not None
        for start in (state.running, state.terminated)
        if start is not None and start.started_at is not None
    ]
    if starts:
        return min(starts).timestamp()
    if status.phase == "Running" and not status.container_statuses and status.start_time:
        return status.start_time.timestamp()
    return None


def _since(status: wire.PodStatus, condition: str) -> float | None:
    """Since when a condition is true; None = it is not, or does not say."""
    for one in status.conditions or ():
        if one.type == condition:
            since = one.last_transition_time
            return since.timestamp() if one.status == "True" and since is not None else None
    return None


def _has_prepared(status: wire.PodStatus) -> bool:
    """Whether an init container runs or has run; restarted ones wait in between."""
    return any(
        state is not None and (state.running is not None or state.terminated is not None)
        for container in status.init_container_statuses or ()
        for state in (container.state, container.last_state)
    )


def _finished(status: wire.PodStatus) -> float | None:
    """When the last of its containers ended."""
    ends = [
        end.finished_at
        for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        if container.state is not None
        and (end := container.state.terminated) is not None
        and end.finished_at is not None
    ]
    return max(ends).timestamp() if ends else None


def _whole_number(text: str | None) -> int | None:
    """Return the number; None if it is missing, or no number: any client may write annotations."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None
