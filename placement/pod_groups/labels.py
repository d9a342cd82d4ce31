"""Which PodGroup a pod belongs to, and in which role: said by its spec, its labels or its annotations.

    spec.schedulingGroup.podGroupName          the native PodGroup of that name; labels are not read then
    label scheduling.x-k8s.io/pod-group        the PodGroup of that name
    annotation forecast-scheduler.io/min-member  the PodGroup that is created for the pod's owner (by_annotation.py)

https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/kep/42-podgroup-coscheduling/README.md
"""

from __future__ import annotations

from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.pod_groups.by_annotation import MIN_MEMBER, name_of_owner
from placement.pod_groups.group_apis import NATIVE, group_key

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
OLDER_GROUP_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""Of scheduler-plugins before its API group was renamed; read where the other is not there."""

ROLE: Final = f"{ANNOTATION_PREFIX}role"


def group_of(pod: PodInfo) -> str | None:
    """Key of its PodGroup, which is in its own namespace; None = it is in none."""
    if pod.scheduling_group:
        return group_key(pod.namespace, pod.scheduling_group, NATIVE)
    labels = pod.labels
    name = labels.get(GROUP_LABEL) or labels.get(OLDER_GROUP_LABEL)
    if not name and MIN_MEMBER in pod.annotations:
        name = name_of_owner(pod)
    return group_key(pod.namespace, name) if name else None


def role_of(pod: PodInfo) -> str:
    """'' = none."""
    return pod.labels.get(ROLE) or pod.annotations.get(ROLE, "")
