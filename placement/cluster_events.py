"""Changes of a cluster after which a pod that failed may fit: the events of queueing hints.

The names are those of kube-scheduler (pkg/scheduler/framework/events.go), coarser where a distinction saves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from kube.objects.objects import NodeInfo, PodInfo


class EventKind(Enum):
    """What kind of thing happened."""

    NODE_ADDED = auto()
    NODE_CHANGED = auto()  # allocatable, labels, taints, cordon, readiness
    POD_BOUND = auto()  # a pod came to sit on a node: affinity and spread may be met now
    POD_LEFT = auto()  # a pod that sat, or was assumed to, is gone or finished: its room is free
    POD_CHANGED = auto()  # labels or requests of a pod that sits changed
    UNSCHEDULED_POD_CHANGED = auto()  # the waiting pod itself changed: gates, tolerations, requests
    GROUP_CHANGED = auto()  # a PodGroup, or who is in it
    STORAGE_CHANGED = auto()  # volumes, claims, classes, CSI objects
    NAMESPACE_CHANGED = auto()  # labels, which affinity terms select by
    FORECAST_CHANGED = auto()  # another model, another day, other policies
    TIMEOUT = auto()  # nothing happened for long


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event. node, pod: what it is about, as it is now (or was last); before: the Node as it was, None = new.

    group : of GROUP_CHANGED, "namespace/name"
    """

    kind: EventKind
    node: NodeInfo | None = None
    before: NodeInfo | None = None
    pod: PodInfo | None = None
    group: str = ""
