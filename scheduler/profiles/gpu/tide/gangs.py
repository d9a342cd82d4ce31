"""How far a training may shrink whose pods are a gang: with fewer than the PodGroup's minimum none of them can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.pod_groups.labels import group_of
from scheduler.profiles.gpu.tide.table import Gangs, GpuPod
from scheduler.profiles.gpu.tide.terms import LEAST, Role


def least_by_workload(gangs: Gangs, pods: Iterable[GpuPod]) -> dict[ServiceKey, int]:
    """Of workloads of training whose pods are in a gang."""
    of_workload: dict[ServiceKey, list[PodInfo]] = {}
    for one in pods:
        if one.role is Role.TRAINING and group_of(one.pod) is not None:
            of_workload.setdefault(one.workload, []).append(one.pod)
    return {workload: least_of_gang(gangs, its) for workload, its in of_workload.items()}


def least_of_gang(gangs: Gangs, pods: Sequence[PodInfo]) -> int:
    """Of these pods of one workload, so many are needed beside the members that others have in the group; 0 = they are
    in none, or it cannot be used."""
    group = group_of(pods[0])
    if group is None:
        return 0
    mine = {pod.uid for pod in pods}
    others = {pod.uid for pod in (*gangs.sitting(group), *gangs.waiting(group))} - mine
    return max(0, gangs.minimum(group) - len(others))


def least_with_gang(gang: int, least: int, most: int) -> int:
    """Replicas. gang: that its gang needs; a gang that is larger than the training may be does not make it larger."""
    return max(least, min(gang, most))


def gang_mistake(gang: int, said: int | None, most: int) -> str:
    """For people, '' = none. said: as min-replicas has it."""
    if gang > most:
        return f"its PodGroup needs {gang} of its pods, and it has {most} at most: it cannot run"
    if said is not None and said < gang:
        return f"{LEAST} is {said}, and its PodGroup needs {gang} of its pods: it has {gang} at least"
    return ""
