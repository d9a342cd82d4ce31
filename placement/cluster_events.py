"""Changes of a cluster after which a pod that failed may fit, and what a plugin says of them: queueing hints.

The names are those of kube-scheduler (pkg/scheduler/framework/events.go), coarser where a distinction saves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Self

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


class Hint(Enum):
    """Whether an event may let a pod in that a plugin rejected (QueueingHint, KEP-4247)."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"

    @classmethod
    def of(cls, helps: bool) -> Self:
        """Return QUEUE if the event may help."""
        return cls.QUEUE if helps else cls.SKIP


NODE_EVENTS: Final = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED})
ROOM_EVENTS: Final = NODE_EVENTS | {EventKind.POD_LEFT}


def is_another_node(event: ClusterEvent) -> bool:
    """Whether a node is new, or is labelled, tainted or cordoned otherwise than before, or declares other features."""
    node, before = event.node, event.before
    return node is None or before is None or _facts(node) != _facts(before)


def _facts(node: NodeInfo) -> tuple[object, ...]:
    return node.labels, node.taints, node.unschedulable, node.ready, node.features
