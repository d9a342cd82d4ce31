"""Which pods of a node are the least to lose so that devices become free: pure.

Device by device, the cheapest first: of the pods that have some of it all stay that can, the most important first. Pods
that go for one device make room on their others, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube.objects.objects import PodInfo
from placement.devices.demand import WHOLE
from placement.pod_importance import Cost, Standing, cost_of


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """milli: thousandths that the pod has of each of its devices."""

    pod: PodInfo
    devices: tuple[int, ...]
    milli: int


def least_in_the_way(
    held: Sequence[DeviceHolder], free: Sequence[int], count: int, milli: int, standing: Standing, whole: int = WHOLE
) -> tuple[PodInfo, ...] | None:
    """Who has to go so that `count` devices have `milli` thousandths free; None = all of them are not enough.

    held     : by pods that may go, the most important first
    free     : (n_devices,) thousandths as long as they are there; less than 0 = more is held than there is
    standing : what counts as a pod's priority, see pod_importance.py
    whole    : all of a device, where all is given in smaller parts than thousandths
    """
    on: list[list[DeviceHolder]] = [[] for _ in free]
    emptied = list(free)  # without any of them
    for one in held:
        for device in one.devices:
            if device < len(free):
                on[device].append(one)
                emptied[device] = min(whole, emptied[device] + one.milli)
    possible = [device for device, left in enumerate(emptied) if left >= milli]
    if len(possible) < count:
        return None
    gone: dict[str, PodInfo] = {}
    for _ in range(count):
        victims = {device: _victims(on[device], emptied[device] - milli, gone) for device in possible}
        cheapest = min(possible, key=lambda device: _cost(device, victims[device], standing))
        possible.remove(cheapest)
        gone.update((pod.uid, pod) for pod in victims[cheapest])
    return tuple(one.pod for one in held if one.pod.uid in gone)


def _victims(held: Sequence[DeviceHolder], spare: int, gone: Mapping[str, PodInfo]) -> list[PodInfo]:
    """Return the pods that go in addition to those that are gone, so that at most `spare` thousandths of a device are
    held.
    """
    victims = []
    for one in held:
        if one.pod.uid in gone:
            continue
        if one.milli <= spare:
            spare -= one.milli
        else:
            victims.append(one.pod)
    return victims


def _cost(device: int, victims: Sequence[PodInfo], standing: Standing) -> tuple[bool, Cost | int]:
    """As preemption compares nodes."""
    return (True, cost_of(device, victims, 0, standing)) if victims else (False, device)
