"""Which PodGroup a pod belongs to, and in which role: said by its labels, the role also by an annotation.

https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/kep/42-podgroup-coscheduling/README.md
"""

from __future__ import annotations

from typing import Final

from scorer.cluster.objects import ANNOTATION_PREFIX, PodInfo

__all__ = ["GROUP_LABEL", "OLDER_GROUP_LABEL", "ROLE", "group_key", "group_of", "role_of"]

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
OLDER_GROUP_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""Of scheduler-plugins before its API group was renamed; read where the other is not there."""

ROLE: Final = f"{ANNOTATION_PREFIX}role"


def group_key(namespace: str, name: str) -> str:
    """ "namespace/name"."""
    return f"{namespace}/{name}"


def group_of(pod: PodInfo) -> str | None:
    """Key of its PodGroup, which is in its own namespace; None = it is in none."""
    labels = pod.labels
    name = labels.get(GROUP_LABEL) or labels.get(OLDER_GROUP_LABEL)
    return group_key(pod.namespace, name) if name else None


def role_of(pod: PodInfo) -> str:
    """'' = none."""
    return pod.labels.get(ROLE) or pod.annotations.get(ROLE, "")
