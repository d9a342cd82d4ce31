"""What a node and its pods use now, beside what was expected of this half hour, or why nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats
from base.errors import ForecastError
from cluster.live_tables import LiveTables
from cluster.predicted.node_load import LoadInputs, PeakHours
from cluster.predicted.unknown_capacity import limited
from cluster.tracking import TrackedCluster
from forecast.resources import RESOURCES
from kube.objects.objects import PodInfo
from scorer.answers import Peak, ResourceNow
from scorer.highest_peak import peaks_of_nodes

_NOT_READ: Final = "what pods use now cannot be read: "


@dataclass(frozen=True, slots=True)
class UsedNow:
    """What a node was measured to use, (n_resources,), NaN = not measured, of its capacity, NaN = not known.

    seconds_ago : None = nothing was measured lately; then why_not says why
    """

    measured: Floats
    capacity: Floats
    seconds_ago: float | None
    why_not: str

    def of_each(self, load: LoadInputs | None) -> tuple[ResourceNow, ...]:
        """Return the resources that have a capacity. load: of the node alone; None = there is no forecast"""
        expected = bound = np.full(len(RESOURCES), np.nan)
        rest: list[Peak | None] = [None] * len(RESOURCES)
        if load is not None:
            slot, today = load.horizon.slot, PeakHours.of_day(load.horizon, 0)
            curves = load.curves(slice(slot, slot + 1), corrected=False)
            expected, bound = curves.curve(0)[0, :, 0], curves.curve(1)[0, :, 0]
            rest = [peaks_of_nodes(load.peaks(today, resource=r)[0], load.horizon)[0] for r in range(len(RESOURCES))]
        return tuple(
            ResourceNow(
                resource=resource.name,
                unit=resource.unit,
                capacity=_known(self.capacity[r]),
                measured=_known(self.measured[r]),
                expected=_known(expected[r]),
                bound=_known(bound[r]),
                rest_of_day=rest[r],
            )
            for r, resource in enumerate(RESOURCES)
            if np.isfinite(self.capacity[r])
        )


def used_now(tables: LiveTables, cluster: TrackedCluster, row: int) -> UsedNow:
    """Return what a node uses now; under the lock of the tables."""
    measured, sampled, why_not = cluster.measured_usage()[row], float(cluster.sampled[row]), ""
    if not np.isfinite(measured).any():
        if tables.usage_source is None:
            why_not = "no Prometheus is named: pass --prometheus URL, or set prometheus.url"
        elif tables.usage_error is not None:
            why_not = f"Prometheus cannot be asked: {tables.usage_error}"
        elif np.isfinite(sampled):
            why_not = f"its last sample in Prometheus is {(cluster.now - sampled) / 60:.0f} min old"
        else:
            why_not = "Prometheus has no usage of a node of this name or address"
    capacity = np.where(limited(cluster.capacity[row]), cluster.capacity[row], np.nan)
    return UsedNow(measured.copy(), capacity, None if why_not else cluster.now - sampled, why_not)


def measured_pods(
    tables: LiveTables, resource: str, pods: Sequence[PodInfo]
) -> tuple[Mapping[tuple[str, str], float], str]:
    """Return what pods use now, by namespace and name, and why that is not known; '' = it is."""
    if tables.usage_source is None or not pods:
        return {}, ""
    if tables.usage_error is not None:  # as found a moment ago: a store that hangs must not delay the report
        return {}, f"{_NOT_READ}{tables.usage_error}"
    try:
        return tables.usage_source.pods(resource, [(pod.namespace, pod.name) for pod in pods]), ""
    except ForecastError as error:
        return {}, f"{_NOT_READ}{error}"


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
