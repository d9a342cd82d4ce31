"""What a pod lacks on each node, and what each bound pod would release."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.filters.node_resources_fit import NodeResourcesFit
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.pod_units import wanted_units
from scheduler.preemption.sitting_pods import SittingPods

_BOUNDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Room:
    """In whole units, by limit: the resources that the pod requests, and the number of pods.

    kinds : of the limits, resource names; '' = the number of pods
    left  : (n_limits, n_rows) what would be left with the pod there; negative = lacking
    gives : (n_limits, n_slots) or more: what the pod of each slot releases
    """

    kinds: tuple[str, ...]
    left: Ints
    gives: tuple[Ints, ...]

    @property
    def lacking(self) -> Bools:
        """Return nodes where a pod has to go, (n_rows,)."""
        return np.asarray((self.left < 0).any(axis=0))

    def without(self, slots: Ints, sitting: SittingPods) -> Room:
        """The same once the pods of these slots are gone."""
        left = self.left.copy()
        for each, gives in zip(left, self.gives, strict=True):
            np.add.at(each, sitting.row[slots], gives[slots])
        return replace(self, left=left)


def room_for(
    pod: PodInfo,
    state: ClusterState,
    sitting: SittingPods,
    nominated: NominatedPods,
    fit: NodeResourcesFit | None,
) -> Room:
    """As NodeResourcesFit and NominatedPods judge. fit: None = requests do not matter."""
    n_rows = state.n_rows
    if fit is None:
        return Room((), np.zeros((0, n_rows), dtype=np.int64), ())
    kept_pods, kept = nominated.kept(pod, n_rows)
    allocatable, requested = state.allocatable_units, state.requested_units
    left = [allocatable[:, state.kinds["pods"]] - state.pod_count - kept_pods - 1]
    kinds = [""]
    gives = [np.ones(max(sitting.n_slots, 1), dtype=np.int64)]
    for kind, wanted in wanted_units(pod, fit).items():
        column = state.kinds.get(kind)
        if column is None:
            continue  # no node or pod has named it: every node is rejected for good, or a device class has it
        after = allocatable[:, column] - requested[:, column] - wanted
        if kind in kept:
            after = after - kept[kind]
        if kind in fit.device_class_resources:
            after = np.where(allocatable[:, column] > 0, after, _BOUNDLESS)
        kinds.append(kind)
        left.append(after)
        gives.append(sitting.units(kind))
    return Room(tuple(kinds), np.stack(left), tuple(gives))
