"""Which pods a process places: by their schedulerName, and where pods are advised on, by the gate that holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kube.objects.objects import PodInfo
from kube.objects.pod_accounting import waits


@dataclass(frozen=True, slots=True)
class PodsToPlace:
    """
    scheduler_names : of the pods
    gate            : scheduling gate that such a pod has and that does not keep it out; '' = every gate does
    wanted          : of these pods; quick, called under the lock of the tables
    """

    scheduler_names: frozenset[str]
    gate: str = ""
    wanted: Callable[[PodInfo], bool] = lambda pod: True

    def include(self, pod: PodInfo) -> bool:
        """Return whether the pod waits and is to be placed here, now or when its other gates are gone."""
        if pod.scheduler_name not in self.scheduler_names or not waits(pod) or pod.terminating:
            return False
        return (not self.gate or self.gate in pod.gates) and self.wanted(pod)

    def closed_gates(self, pod: PodInfo) -> tuple[str, ...]:
        """Return the gates that keep the pod out."""
        return tuple(gate for gate in pod.gates if gate != self.gate)
