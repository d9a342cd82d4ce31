"""Which events may make a filter accept a pod that it rejected: queueing hints of the filters.

Source: EventsToRegister and isSchedulableAfter... of the plugins in pkg/scheduler/framework/plugins (v1.37). A hint may
say yes once too often, which costs an attempt; never once too rarely, which costs minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, EventKind
from placement.machine_groups.membership import asks_to_borrow
from placement.plugins import EnqueueExtensions, Hint

_Rule = Callable[[PodInfo, ClusterEvent], bool]


@dataclass(frozen=True, slots=True)
class FilterHint:
    """Implements EnqueueExtensions for the filter of this name."""

    name: str
    woken_by: frozenset[EventKind]
    helps: _Rule

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.QUEUE if event.kind in self.woken_by and self.helps(pod, event) else Hint.SKIP


def _room_grew(pod: PodInfo, event: ClusterEvent) -> bool:
    """A node on which the pod would fit if it were empty, and that has more than before; or a pod left."""
    if event.kind is EventKind.POD_LEFT:
        return event.pod is None or event.pod.uid != pod.uid
    if event.kind is EventKind.UNSCHEDULED_POD_CHANGED:
        return event.pod is None or event.pod.uid == pod.uid
    node, before = event.node, event.before
    if node is None:
        return True
    if any(node.allocatable.get(kind, 0.0) < amount for kind, amount in pod.requests.items()):
        return False
    if before is None:
        return True
    return any(node.allocatable.get(kind, 0.0) > before.allocatable.get(kind, 0.0) for kind in ("pods", *pod.requests))


def _is_another_node(pod: PodInfo, event: ClusterEvent) -> bool:
    """A node is new, or is labelled, tainted or cordoned otherwise than before, or declares other features."""
    node, before = event.node, event.before
    if node is None or before is None:
        return True
    return _facts(node) != _facts(before)


def _facts(node: NodeInfo) -> tuple[object, ...]:
    return node.labels, node.taints, node.unschedulable, node.ready, node.features


def _may_join(pod: PodInfo, event: ClusterEvent) -> bool:
    """Of a machine group; who borrows gets what others leave, once the owners have what they wait for."""
    return asks_to_borrow(pod) or (event.kind in _NODES and _is_another_node(pod, event))


def _frees_a_port(pod: PodInfo, event: ClusterEvent) -> bool:
    return event.kind is not EventKind.POD_LEFT or event.pod is None or bool(event.pod.host_ports)


def _may_be_meant(pod: PodInfo, event: ClusterEvent) -> bool:
    """Terms reach across namespaces, constraints do not; a closer look costs as much as an attempt."""
    return event.node is None or _is_another_node(pod, event)


def _shares_namespace(pod: PodInfo, event: ClusterEvent) -> bool:
    if event.pod is not None:
        return event.pod.namespace == pod.namespace
    return _is_another_node(pod, event)


def _shares_volumes(pod: PodInfo, event: ClusterEvent) -> bool:
    """A volume of the pod that is in use on a node already needs no attachment there."""
    return event.kind is not EventKind.POD_BOUND or event.pod is None or bool(event.pod.volumes)


def _always(pod: PodInfo, event: ClusterEvent) -> bool:
    return True


_NODES: Final = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED})
_LEFT: Final = frozenset({EventKind.POD_LEFT})
_PODS: Final = frozenset({EventKind.POD_BOUND, EventKind.POD_LEFT, EventKind.POD_CHANGED})
_STORAGE: Final = frozenset({EventKind.STORAGE_CHANGED})
_CHANGED: Final = frozenset({EventKind.POD_CHANGED, EventKind.UNSCHEDULED_POD_CHANGED})
_FORECAST: Final = frozenset({EventKind.FORECAST_CHANGED})

_HINTS: Final = (
    FilterHint("NodeUnschedulable", _NODES, _is_another_node),
    FilterHint("NodeName", frozenset({EventKind.NODE_ADDED}), _always),
    FilterHint("TaintToleration", _NODES, _is_another_node),
    FilterHint("NodeAffinity", _NODES, _is_another_node),
    FilterHint("Domain", _NODES, _is_another_node),
    FilterHint("MachineGroup", _NODES | _LEFT | _FORECAST | {EventKind.POD_BOUND}, _may_join),
    FilterHint("NoResourceClaims", _NODES, _always),  # a pod's claims never change, what a device plugin offers may
    FilterHint("NodePorts", _NODES | _LEFT, _frees_a_port),
    FilterHint("NodeResourcesFit", _NODES | _LEFT | _CHANGED, _room_grew),
    FilterHint("NominatedPods", _NODES | _LEFT, _always),
    FilterHint("VolumeRestrictions", _STORAGE | _LEFT | {EventKind.NODE_ADDED}, _always),
    FilterHint("NodeVolumeLimits", _STORAGE | _LEFT | {EventKind.NODE_ADDED, EventKind.POD_BOUND}, _shares_volumes),
    FilterHint("VolumeBinding", _STORAGE | _NODES, _always),
    FilterHint("VolumeZone", _STORAGE | _NODES, _always),
    FilterHint("PodTopologySpread", _NODES | _PODS, _shares_namespace),
    FilterHint("InterPodAffinity", _NODES | _PODS | {EventKind.NAMESPACE_CHANGED}, _may_be_meant),
    FilterHint("NodeDeclaredFeatures", _NODES, _is_another_node),
    FilterHint("PredictedPeak", _NODES | _LEFT | _FORECAST, _always),
    FilterHint("PredictedGap", _NODES | _LEFT | _FORECAST, _always),
)

FILTER_HINTS: Final[Mapping[str, EnqueueExtensions]] = MappingProxyType({one.name: one for one in _HINTS})
"""By name of the filter. One that is not named here is woken by everything."""
