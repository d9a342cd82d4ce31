"""What of a pod the kubelet aligns with NUMA zones, and how many CPUs of their own its containers get: pure.

A container of a Guaranteed pod gets CPUs of its own if it requests a whole number of them (guaranteedCPUs in
pkg/kubelet/cm/cpumanager/policy_static.go); a fraction comes from the CPUs that are left, wherever these are. Memory
and huge pages of Guaranteed pods are aligned, and devices of every pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo, QosClass
from placement.filters.node_resources_fit import NodeResourcesFit

Units = Mapping[str, int]

MILLI: Final = 1000
"""Units of a CPU."""

_FIT = NodeResourcesFit()


@dataclass(frozen=True, slots=True)
class AlignedNeeds:
    """What of a pod is aligned, in whole units.

    pod      : all of it
    starting : of each init container, one after the other
    running  : of each container, together
    """

    pod: Units
    starting: tuple[Units, ...]
    running: tuple[Units, ...]

    @property
    def is_one(self) -> bool:
        """Whether one container asks for all of it."""
        return not self.starting and len(self.running) == 1

    @property
    def cores(self) -> tuple[int, ...]:
        """CPUs of each container that gets CPUs of its own, in the order in which they start."""
        return tuple(one["cpu"] // MILLI for one in (*self.starting, *self.running) if "cpu" in one)

    @property
    def cores_at_once(self) -> int:
        """CPUs that have to be free before the first container starts, or one of them finds too few.

        Init containers leave theirs to those that follow. These may get others as well: the least is counted.
        """
        most = held = together = 0
        for one in self.starting:
            cores = one.get("cpu", 0) // MILLI
            most, held = max(most, held + cores if cores else 0), max(held, cores)
        for one in self.running:
            cores = one.get("cpu", 0) // MILLI
            most, together = max(most, max(held, together) + cores if cores else 0), together + cores
        return most


def aligned_needs(pod: PodInfo) -> AlignedNeeds | None:
    """None = nothing of it is aligned."""
    if pod.qos is not QosClass.GUARANTEED and not any(map(_is_device, pod.requests)):
        return None
    starting, running = ((), (pod.requests,)) if pod.containers is None else _containers(pod)
    asked = tuple(_aligned(one, pod.qos) for one in starting), tuple(_aligned(one, pod.qos) for one in running)
    whole = _together(pod, *asked)
    return AlignedNeeds(whole, *(tuple(filter(None, of)) for of in asked)) if whole else None


def _containers(pod: PodInfo) -> tuple[Sequence[Mapping[str, float]], Sequence[Mapping[str, float]]]:
    assert pod.containers is not None
    return pod.containers.starting, pod.containers.running


def _together(pod: PodInfo, starting: Sequence[Units], running: Sequence[Units]) -> Units:
    """What the pod is aligned with as a whole (podGuaranteedCPUs): of CPUs only those that are whole in their
    container."""
    kinds = {kind for one in (*starting, *running) for kind in one}
    whole = {kind: request_units(kind, pod.requests.get(kind, 0.0)) for kind in kinds - {"cpu"}}
    if "cpu" in kinds:
        together = sum(one.get("cpu", 0) for one in running)
        whole["cpu"] = max([together, *(one.get("cpu", 0) for one in starting)])
    return {kind: units for kind, units in whole.items() if units > 0}


def _aligned(requests: Mapping[str, float], qos: QosClass) -> Units:
    keep_all = qos is QosClass.GUARANTEED
    return {
        kind: units
        for kind, amount in requests.items()
        if (keep_all or _is_device(kind))
        and (units := request_units(kind, amount)) > 0
        and (kind != "cpu" or units % MILLI == 0)
    }


@lru_cache(maxsize=1024)
def _is_device(kind: str) -> bool:
    """Extended resources; CPU, memory and huge pages are shared by pods that are not Guaranteed."""
    return "/" in kind and "kubernetes.io/" not in kind and _FIT.counts(kind)
