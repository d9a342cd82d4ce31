"""On which GPU nodes do offline pods have to make room for the load? What is foreseen, what is measured, and who goes.

    foreseen  upper bound of the CPU load within the lead time, as admission reckons it
              (profiles/online/upper_bounds.py)
    measured  CPU used at the last metric, without what pods that have left since used in its window

A node is strained when either passes the ceiling by more than the slack. As many offline pods go as bring it down to
the ceiling, the newest first and no more than needed; all of them where that is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.tracking import TrackedCluster
from forecast.resources import CPU
from kube.objects.objects import PodInfo
from placement.usable_forecast import usable_forecast
from profiles.gpu.gpu_settings import IdleCpuOptions
from profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from profiles.online.upper_bounds import GAP_RESOURCES, UpperBounds, upper_load
from scheduler.overcommit.repair_victims import RepairPlan, is_evictable, plan_relief

_CPU: Final = "cpu"
_POSITION: Final = GAP_RESOURCES.index(CPU)


@dataclass(frozen=True, slots=True)
class StrainedNode:
    """A node with GPUs, and the offline pods there.

    pods     : those that already go, too
    gives    : by UID, milli-cores that are free once it is gone
    foreseen : milli-cores by which the load is expected to pass the ceiling; pods that terminate are not in it
    measured : milli-cores by which it does now; they are
    why      : for people
    """

    node: str
    pods: tuple[PodInfo, ...]
    gives: Mapping[str, int]
    foreseen: int
    measured: int
    why: str


def plan_leaving(
    one: StrainedNode, scheduler_name: str, *, leaving: Collection[str] = (), refused: Collection[str] = ()
) -> RepairPlan:
    """Return the pods to evict now.

    leaving : UIDs of pods that were evicted, which the watch may not show yet
    refused : UIDs of pods that may not be evicted now
    """
    ours = (scheduler_name,)
    told = sum(one.gives[pod.uid] for pod in one.pods if pod.uid in leaving and not pod.terminating)
    going = told + sum(one.gives[pod.uid] for pod in one.pods if pod.terminating)
    candidates = [pod for pod in one.pods if pod.uid not in leaving and pod.uid not in refused]
    candidates = [pod for pod in candidates if is_evictable(pod, ours)]
    needed = max(one.foreseen - told, one.measured - going)
    # What all of them give is worth having, even where it is not enough.
    possible = min(needed, sum(one.gives[pod.uid] for pod in candidates))
    plan = plan_relief(candidates, {_CPU: possible}, lambda pod, kind: one.gives[pod.uid])
    return RepairPlan(plan.victims, {_CPU: needed - possible} if needed > possible else {})


def strained_nodes(
    cluster: TrackedCluster,
    rows: Ints,
    pods: GpuNodePods,
    bounds: UpperBounds,
    options: IdleCpuOptions,
    share: float,
) -> list[StrainedNode]:
    """Of the nodes of these rows, which have offline pods; under the lock of the tables. share: of capacity that load
    should stay below."""
    if not len(rows):
        return []
    capacity = cluster.capacity[rows, CPU]
    foreseen = _foreseen(cluster, rows, bounds, options.lead)
    measured = _measured(cluster, rows, pods)
    limit = (share + options.slack) * capacity
    over = (foreseen > limit) | (measured > limit)  # NaN = not known: no pod goes for that
    found = []
    for place in np.flatnonzero(over & cluster.state.alive[rows]).tolist():
        row, ceiling = int(rows[place]), share * float(capacity[place])
        there = tuple(pods.offline_on(row).values())
        is_measured = bool(measured[place] > limit[place])
        cores = measured[place] if is_measured else foreseen[place]
        does = "uses" if is_measured else f"is expected to use, within {options.lead / 60:g} minutes,"
        found.append(
            StrainedNode(
                node=cluster.state.names[row],
                pods=there,
                gives={pod.uid: _given_back(pod, cluster) for pod in there},
                foreseen=_beyond(float(foreseen[place]), ceiling),
                measured=_beyond(float(measured[place]), ceiling),
                why=f"the node {does} {cores:.1f} of its {capacity[place]:g} cores, more than {share:.0%}",
            )
        )
    return found


def _foreseen(cluster: TrackedCluster, rows: Ints, bounds: UpperBounds, seconds: float) -> Floats:
    """(len(rows),) cores at the highest point of the time ahead; NaN = not known."""
    highest = np.full(len(rows), np.nan)
    predicted = usable_forecast(cluster)
    made = None if predicted is None else bounds.of(cluster)
    if predicted is None or made is None:
        return highest
    is_known = made.known(cluster)[rows]
    known = rows[is_known]
    horizon = predicted.horizon
    first = min(horizon.slot, horizon.n_slots - 1)
    end = min(max(math.floor(horizon.position(cluster.now + seconds)), first) + 1, horizon.n_slots)
    upper = upper_load(predicted, made, _POSITION, first, end, known)  # (n_known, end - first)
    highest[is_known] = upper.max(axis=1) * cluster.capacity[known, CPU]
    return highest


def _measured(cluster: TrackedCluster, rows: Ints, pods: GpuNodePods) -> Floats:
    """(len(rows),) cores; NaN = not measured."""
    return np.asarray(cluster.measured_usage()[rows, CPU] - pods.departed_use()[rows, CPU])


def _given_back(pod: PodInfo, cluster: TrackedCluster) -> int:
    """Milli-cores that it is taken to use; of one that is taken to use nothing what such pods count as elsewhere."""
    cores = float(cluster.expected_use(pod).amount[CPU])
    return max(1, round(1000 * (cores if cores > 0 else pod.nonzero_requests[0])))


def _beyond(cores: float, ceiling: float) -> int:
    return math.ceil(1000 * (cores - ceiling)) if cores > ceiling else 0  # NaN is not
