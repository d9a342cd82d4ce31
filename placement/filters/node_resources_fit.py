"""Filter NodeResourcesFit: what the pod requests does not fit into what the node has left.

Source: framework/plugins/noderesources/fit.go (fitsRequest) and framework/types.go (Resource). All in whole units:
milli-cores, bytes, counts, rounded up for pods and nodes alike.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.columns import whole_units
from kube.objects.labels import is_qualified_name
from kube.objects.objects import PodInfo
from placement.cluster_events import ROOM_EVENTS, ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import every_node, found

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")

UNLIMITED: Final = 2**31 - 1
"""Pods of a node that has no limit."""


class NodeResourcesFit(PlainFilter):
    """One rejection per resource, split by whether the empty node would be large enough.

    Where an extended resource is offered by a DeviceClass rather than by the node, plugin DynamicResources decides
    instead; `device_class_resources` names such resources.
    """

    name = "NodeResourcesFit"
    by_requests = True
    woken_by = ROOM_EVENTS | {EventKind.POD_CHANGED, EventKind.UNSCHEDULED_POD_CHANGED}

    def __init__(
        self,
        *,
        ignored_resources: Collection[str] = (),
        ignored_groups: Collection[str] = (),
        device_class_resources: Container[str] = frozenset(),
    ) -> None:
        """
        ignored_resources      : extended resources that are not looked at, as in NodeResourcesFitArgs
        ignored_groups         : the same by what stands before the slash
        device_class_resources : extended resources that are not looked at on nodes that have none; may change
        """
        self.ignored_resources, self.ignored_groups = frozenset(ignored_resources), frozenset(ignored_groups)
        self.device_class_resources = device_class_resources

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """A resource that the pod does not request is not looked at, even on a node that is overcommitted."""
        state = view.state
        allocatable, requested = state.allocatable_units, state.requested_units
        most_pods = allocatable[:, state.kinds["pods"]]
        rejections = list(
            found(state.pod_count >= most_pods, view, "Too many pods", preemptible=True, by_requests=True)
        )
        for kind, wanted in self.wanted(pod):
            column = state.kinds.get(kind)
            if column is not None:
                rejections += self._insufficient(kind, wanted, allocatable[:, column], requested[:, column], view)
            elif kind not in self.device_class_resources:
                rejections += every_node(view, f"Insufficient {kind}")  # no node or pod has ever named it
        return rejections

    def wanted(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        """Resources and whole units that count: CPU, memory, storage, then what is scalar to kube-scheduler."""
        for kind in sorted(pod.requests, key=_upstream_order):
            wanted = whole_units(kind, pod.requests[kind])
            if wanted > 0 and self.counts(kind):
                yield kind, wanted

    def counts(self, kind: str) -> bool:
        """Whether requests for a resource are held against what the node has."""
        return (kind in _PLAIN or _is_scalar(kind)) and not self._is_ignored(kind)

    def _is_ignored(self, kind: str) -> bool:
        if not (self.ignored_resources or self.ignored_groups) or not is_extended(kind):
            return False
        return kind in self.ignored_resources or kind.partition("/")[0] in self.ignored_groups

    def _insufficient(
        self, kind: str, wanted: int, allocatable: Ints, requested: Ints, view: ClusterView
    ) -> Iterator[Rejection]:
        lacking: Bools = allocatable - requested < wanted
        if kind in self.device_class_resources:
            lacking &= allocatable > 0
        if not lacking.any():
            return
        too_small = allocatable < wanted
        reason = f"Insufficient {kind}"
        yield from found(lacking & ~too_small, view, reason, preemptible=True, by_requests=True)
        yield from found(lacking & too_small, view, reason, preemptible=False)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod left, or a node has more than before and would take the pod if it were empty."""
        if event.kind is EventKind.POD_LEFT:
            return Hint.of(event.pod is None or event.pod.uid != pod.uid)
        if event.kind is EventKind.UNSCHEDULED_POD_CHANGED:
            return Hint.of(event.pod is None or event.pod.uid == pod.uid)
        node, before = event.node, event.before
        if node is None:
            return Hint.QUEUE
        if any(node.allocatable.get(kind, 0.0) < amount for kind, amount in pod.requests.items()):
            return Hint.SKIP
        had = {} if before is None else before.allocatable
        return Hint.of(any(node.allocatable.get(kind, 0.0) > had.get(kind, 0.0) for kind in ("pods", *pod.requests)))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def room(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """(n_nodes,) what is left of pods and of each resource, in pods like it."""
        state = view.state
        room: Ints = state.allocatable_units[rows, state.kinds["pods"]] - state.pod_count[rows]
        for kind, wanted in self.wanted(pod):
            column = state.kinds.get(kind)
            if column is None:
                continue  # offered by a DeviceClass: without one no node has passed
            allocatable = state.allocatable_units[rows, column]
            pods = (allocatable - state.requested_units[rows, column]) // wanted
            if kind in self.device_class_resources:
                pods = np.where(allocatable > 0, pods, UNLIMITED)
            np.minimum(room, pods, out=room)
        return room

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Nodes that have too little of a device or the like; of CPU and memory every node has some."""
        bare = replace(pod, requests=extended_requests(pod))
        return [rejection for rejection in self.filter(bare, view) if not rejection.preemptible]

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return tuple(sorted(extended_requests(pod).items()))


def extended_requests(pod: PodInfo) -> dict[str, float]:
    """Return requests of whole devices and the like, which a node has or has not."""
    requests = pod.requests.items()
    return {name: amount for name, amount in requests if "/" in name and amount > 0 and is_extended(name)}


def _upstream_order(kind: str) -> tuple[int, str]:
    return (_PLAIN.index(kind) if kind in _PLAIN else len(_PLAIN), kind)


@lru_cache(maxsize=1024)
def _is_scalar(kind: str) -> bool:
    """IsScalarResourceName of util/utils.go; what is none of these counts for nothing."""
    return (
        is_extended(kind)
        or kind.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in kind  # IsPrefixedNativeResource
    )


def is_extended(kind: str) -> bool:
    """IsExtendedResourceName of pkg/apis/core/v1/helper/helpers.go."""
    if "kubernetes.io/" in kind or kind.startswith("requests."):
        return False
    return "/" in kind and is_qualified_name(f"requests.{kind}")
