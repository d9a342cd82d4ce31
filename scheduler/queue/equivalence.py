"""Which properties of a waiting pod matter to whether it can be placed."""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter
from typing import Final

from kube.objects.objects import PodInfo
from kube.objects.pod_shape import IDENTITY_LABELS

# Not among them: what others write into its status while it waits, like conditions and the node it is nominated to.
_MATTERS: Final = attrgetter(
    "namespace",
    "labels",
    "annotations",
    "owner_uid",
    "requests",
    "nonzero_requests",
    "limits",
    "scheduler_name",
    "priority",
    "constraints",
    "host_ports",
    "volumes",
    "images",
    "image_volumes",
    "gates",
    "may_preempt",
    "needed_features",
)


def matters(before: PodInfo, now: PodInfo) -> bool:
    """Whether a change of a waiting pod is worth another attempt."""
    return before is not now and bool(_MATTERS(before) != _MATTERS(now))


def likeness(pod: PodInfo) -> Hashable:
    """Return a key that is equal for pods that share the answer of every queueing hint. They differ at most in name,
    UID, age and the labels by which controllers distinguish their pods. No hint asks for these, and a storm of Jobs is
    a storm of them.

    Constraints are shared by pods that say the same (PodConstraints), so that their identity will do: two that only are
    equal give two questions with the same answer. Keep the pod as long as the result.
    """
    return (
        id(pod.constraints),
        pod.namespace,
        pod.scheduler_name,
        pod.priority,
        pod.may_preempt,
        pod.nominated_node,
        frozenset(item for item in pod.labels.items() if item[0] not in IDENTITY_LABELS),
        frozenset(pod.annotations.items()),
        frozenset(pod.requests.items()),
        pod.host_ports,
        pod.volumes,
        pod.needed_features,
    )
