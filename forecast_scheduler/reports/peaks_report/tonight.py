"""The hottest nodes of the day that comes: peak, bound, when and in which resource."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOT_MINUTES
from forecast.resources import HOT_RESOURCES
from forecast_scheduler.reports.peaks_report.day_reading import DayReading
from scorer.replay.metrics import shares


@dataclass(frozen=True, slots=True)
class HotNode:
    """A node's peak in the resource that comes closest to its capacity.

    node            : row in the history
    expected, bound : base units, 0.5 and 0.95 quantile of the day's peak
    at              : local time of the half hour with the highest expectation
    """

    node: int
    resource: int
    expected: float
    bound: float
    capacity: float
    at: time

    @property
    def share(self) -> float:
        """Expected peak as share of capacity."""
        return self.expected / self.capacity


def peak_shares(reading: DayReading, capacity: AnyFloats) -> Floats:
    """Expected peaks as share of capacity, of the resources that make nodes hot: (n_nodes, n_hot_resources).

    NaN = no limit, or nothing is predicted.
    """
    return shares(reading.node_peaks[:, :, :1], capacity)[:, list(HOT_RESOURCES), 0]


def hottest_nodes(reading: DayReading, capacity: AnyFloats) -> tuple[HotNode, ...]:
    """All nodes that something is predicted of, the hottest first."""
    share = peak_shares(reading, capacity)
    known = np.flatnonzero(np.isfinite(share).any(axis=1))
    highest = np.nanargmax(share[known], axis=1)
    order = np.argsort(-share[known, highest], kind="stable")
    return tuple(_hot_node(reading, capacity, int(known[i]), HOT_RESOURCES[int(highest[i])]) for i in order)


def _hot_node(reading: DayReading, capacity: AnyFloats, node: int, resource: int) -> HotNode:
    minutes = int(reading.node_mean[node, resource].argmax()) * SLOT_MINUTES
    expected, bound = (float(value) for value in reading.node_peaks[node, resource])
    limit = float(capacity[node, resource])
    return HotNode(node, resource, expected, bound, limit, time(minutes // 60, minutes % 60))
