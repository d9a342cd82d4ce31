"""The plugin Gang: keeps a pod out of the active queue until its group has the members that it needs."""

from __future__ import annotations

from typing import Final

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.status import Status
from scheduler.gangs.directory import GATE, GangDirectory


class Gang:
    """Implements PreEnqueue and EnqueueExtensions."""

    name: Final = GATE
    woken_by: Final = frozenset({EventKind.GROUP_CHANGED, EventKind.UNSCHEDULED_POD_CHANGED})

    def __init__(self, directory: GangDirectory) -> None:
        self._directory = directory

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success for pods that are in no group."""
        return self._directory.gate(pod)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """What happens to the pod's own group, and to itself, may help."""
        if event.kind is EventKind.GROUP_CHANGED:
            return Hint.QUEUE if event.group == self._directory.group_of(pod) else Hint.SKIP
        is_itself = event.pod is not None and event.pod.uid == pod.uid
        return Hint.QUEUE if event.kind is EventKind.UNSCHEDULED_POD_CHANGED and is_itself else Hint.SKIP
