"""Which pods run for a while and end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kube.objects.objects import PodInfo

_RUN_ON: Final = frozenset({"DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Controllers that replace a pod which ends."""


def is_job_pod(pod: PodInfo, scheduler_names: Collection[str] = ()) -> bool:
    """Return whether a pod is of a Job, or of the job profile without a controller that keeps it running.

    scheduler_names : of the job profile; bare pods and those of workflow engines come with it
    """
    kind = pod.owner.kind
    return kind == "Job" or (pod.scheduler_name in scheduler_names and kind not in _RUN_ON)
