"""Predicted peaks of all nodes at once, for the list of nodes, the heat map and the metrics; some minutes old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from cluster.predicted.horizon import Horizon
from cluster.predicted.node_curves import NodeCurves
from cluster.predicted.node_load import LoadInputs, NodePeaks, PeakHours, bounding_peaks
from forecast.model import PEAK_QUANTILES
from forecast.resources import RESOURCES

_SLOTS_PER_HOUR = 2

NEXT = -1
"""Where the next 24 hours are among days."""


@dataclass(frozen=True, slots=True)
class Overview:
    """All nodes that are there.

    names    : of the nodes
    capacity : (n_nodes, n_resources)
    assumed  : (n_nodes, n_resources) whether the trainer assumed the capacity
    usage    : (n_nodes, n_resources, 2, 2) predicted, 0.5 and 0.95, for the half hour under way and the next
    model_usage: the same before what is measured now corrects it
    peak     : (n_nodes, n_resources, 2, n_days + 1) by quantile: of each day of the horizon (of today: of what is left
               of it), and at last of the next 24 hours
    peak_slot: (n_nodes, n_resources, n_days + 1) slot of the expected peak, counted from midnight of today
    hourly   : (n_nodes, n_resources, n_hours) highest expected share of capacity in each hour from midnight of today;
               NaN = no limit
    shadow_usage, shadow_peak : as usage and peak, with pods where a shadow's advice would have led, and for today and
               tomorrow only; None = no shadow

    All others have pods where they really sit.
    """

    horizon: Horizon
    made_at: datetime
    names: tuple[str, ...]
    capacity: Floats
    assumed: Bools
    usage: Floats
    model_usage: Floats
    peak: Floats
    peak_slot: Ints
    hourly: Floats32
    shadow_usage: Floats | None = None
    shadow_peak: Floats | None = None

    def rows(self) -> dict[str, int]:
        """Position of each node."""
        return {name: row for row, name in enumerate(self.names)}

    def peak_times(self, n_days: int) -> Floats:
        """Start of the half hour of the expected peak: (n_nodes, n_resources, n_days) unix seconds, from today on."""
        starts = np.array([self.horizon.start_of(slot).timestamp() for slot in range(self.horizon.n_slots)])
        return starts[self.peak_slot[:, :, :n_days]]

    def peaks(self, day: int, rows: Sequence[int] | slice = slice(None)) -> NodePeaks:
        """The peaks of nodes on a day of the horizon, or in the next 24 hours (NEXT)."""
        expected, bound = self.peak[rows, :, 0, day], self.peak[rows, :, 1, day]
        return bounding_peaks(expected, bound, self.peak_slot[rows, :, day], self.capacity[rows], self.assumed[rows])


class OverviewBuilder:
    """Collects the nodes in pieces, so that no piece holds the lock for long."""

    def __init__(self, horizon: Horizon, made_at: datetime) -> None:
        self._horizon, self._made_at = horizon, made_at
        days = [PeakHours.of_day(horizon, number) for number in range(len(horizon.days))]
        self._hours = (*days, PeakHours.next_24(horizon))
        self._names: list[str] = []
        self._capacity: list[Floats] = []
        self._assumed: list[Bools] = []
        self._usage: list[AnyFloats] = []
        self._model_usage: list[AnyFloats] = []
        self._peak: list[AnyFloats] = []
        self._peak_slot: list[Ints] = []
        self._hourly: list[Floats32] = []
        self._shadow_usage: list[AnyFloats] = []
        self._shadow_peak: list[AnyFloats] = []

    def slots(self) -> slice:
        """The half hour under way, and the next: the overview may still be in use when that begins."""
        return slice(self._horizon.slot, self._horizon.slot + 2)

    def add(self, load: LoadInputs, shadow: NodeCurves | None = None) -> None:
        """Add some nodes.

        shadow : of the same nodes with pods where a shadow has them, of today and tomorrow; None = no shadow
        """
        nodes, curves = load.nodes, load.curves(slice(0, self._horizon.n_slots))
        uncorrected = load.curves(self.slots(), corrected=False)
        expected, bound = (curves.curve(quantile) for quantile in range(len(PEAK_QUANTILES)))
        n, capacity = len(nodes.names), nodes.capacity
        self._names += nodes.names
        self._capacity.append(capacity)
        self._assumed.append(nodes.assumed)
        self._usage.append(self._usage_of(curves, bound))
        self._model_usage.append(np.stack([uncorrected.mean(), uncorrected.curve(len(PEAK_QUANTILES) - 1)], axis=2))
        self._peak.append(_peaks(expected, bound, self._hours))
        self._peak_slot.append(
            np.stack([one.slots[expected[..., one.slots].argmax(axis=2)] for one in self._hours], axis=2)
        )
        if shadow is not None:
            expected_there, bound_there = (shadow.curve(quantile) for quantile in range(len(PEAK_QUANTILES)))
            self._shadow_usage.append(self._usage_of(shadow, bound_there))
            self._shadow_peak.append(_peaks(expected_there, bound_there, self._hours[: len(shadow.days)]))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = expected / np.where(capacity > 0, capacity, np.nan)[:, :, None]
        hourly = share.reshape(n, len(RESOURCES), -1, _SLOTS_PER_HOUR).max(axis=3)
        self._hourly.append(hourly.astype(np.float32))

    def _usage_of(self, curves: NodeCurves, bound: Floats) -> Floats:
        """(n_nodes, n_resources, 2, 2) expected usage and its 0.95 bound in `slots`."""
        slots = self.slots()
        return np.stack([curves.mean()[:, :, slots], bound[:, :, slots]], axis=2)

    def overview(self) -> Overview:
        """Everything added so far."""
        r, n_times, n_hours = len(RESOURCES), len(self._hours), self._horizon.n_slots // _SLOTS_PER_HOUR
        return Overview(
            horizon=self._horizon,
            made_at=self._made_at,
            names=tuple(self._names),
            capacity=np.concatenate([np.zeros((0, r)), *self._capacity]),
            assumed=np.concatenate([np.zeros((0, r), dtype=bool), *self._assumed]),
            usage=np.concatenate([np.zeros((0, r, 2, 2)), *self._usage]),
            model_usage=np.concatenate([np.zeros((0, r, 2, 2)), *self._model_usage]),
            peak=np.concatenate([np.zeros((0, r, 2, n_times)), *self._peak]),
            peak_slot=np.concatenate([np.zeros((0, r, n_times), dtype=np.int64), *self._peak_slot]),
            hourly=np.concatenate([np.zeros((0, r, n_hours), dtype=np.float32), *self._hourly]),
            shadow_usage=np.concatenate(self._shadow_usage) if self._shadow_usage else None,
            shadow_peak=np.concatenate(self._shadow_peak) if self._shadow_peak else None,
        )


def _peaks(expected: Floats, bound: Floats, hours: Sequence[PeakHours]) -> Floats:
    """(n_nodes, n_resources, 2, n_times) by quantile, in each of these stretches of time."""
    return np.stack(
        [np.stack([curve[..., one.slots].max(axis=2) for one in hours], axis=2) for curve in (expected, bound)], axis=2
    )
