"""What will the load of a node be? The one answer that commands, pages, events, annotations, metrics and plans show.

    expected peak      : the highest half hour that comes on every other day (the 0.5 quantile of a peak)
    upper bound (95 %) : the one that is kept on 19 of 20 days (the 0.95 quantile of a peak)
    share              : the expected peak of the resource that comes closest to its capacity, over that capacity

Both are of the pods that sit on a node now, with what is measured now (it fades), and without replicas that autoscaling
will add. Only half hours to come count, the one under way included: of the next 24 hours unless a day or the week is
asked for. Capacities that are known count; an assumed one counts, and is named so, on a node that has no other.

Nodes are ranked by another curve, the placing load (load.py): last week's raw half hours, with replicas to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Self

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from base.errors import InputError
from cluster.predicted.horizon import Horizon
from cluster.predicted.load_parts import NodeBases
from cluster.predicted.node_curves import NodeCurves, NodeInputs, gather, node_curves
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.predicted.unknown_capacity import limited
from forecast.calendar import SLOTS_PER_DAY

NEXT_24_HOURS = "next 24 h"


@dataclass(frozen=True, slots=True)
class PeakHours:
    """Half hours to come in which a peak is looked for.

    words : "next 24 h", "coming week", or a day such as "2026-03-12"
    slots : (n_slots,) ascending, counted from midnight of today
    """

    words: str
    slots: Ints

    @classmethod
    def next_24(cls, horizon: Horizon) -> Self:
        """The half hour under way and the 47 after it."""
        return cls(NEXT_24_HOURS, _coming(horizon, horizon.slot, horizon.slot + SLOTS_PER_DAY))

    @classmethod
    def between(cls, horizon: Horizon, slots: slice) -> Self:
        """Half hours from one on to another."""
        return cls(f"{horizon.start_of(slots.start):%a %H:%M} on", _coming(horizon, slots.start, slots.stop))

    @classmethod
    def of_day(cls, horizon: Horizon, number: int) -> Self:
        """A day of the horizon; of today, number 0, what is left of it."""
        first = number * SLOTS_PER_DAY
        return cls(horizon.days[number].isoformat(), _coming(horizon, first, first + SLOTS_PER_DAY))

    @classmethod
    def week(cls, horizon: Horizon) -> Self:
        """All that is forecast."""
        return cls("coming week", _coming(horizon, 0, horizon.n_slots))

    @classmethod
    def asked(cls, horizon: Horizon, day: date | None) -> Self:
        """A day, or the next 24 hours (None). Raises InputError for a day without a forecast."""
        if day is None:
            return cls.next_24(horizon)
        if day not in horizon.days:
            raise InputError(f"there is no forecast of {day}: name a day from {horizon.days[0]} to {horizon.days[-1]}")
        return cls.of_day(horizon, horizon.days.index(day))

    @property
    def window(self) -> slice:
        """From the first of the half hours to the last."""
        return slice(int(self.slots[0]), int(self.slots[-1]) + 1)


def _coming(horizon: Horizon, first: int, end: int) -> Ints:
    """Slots that are still to come; of a day that has none left, its last."""
    slots = np.arange(first, end)
    coming = slots[horizon.weights()[first:end] > 0]
    return coming if len(coming) else slots[-1:]


@dataclass(frozen=True, slots=True)
class NodePeaks:
    """Of the resource of each node that comes closest to its capacity, (n_nodes,) each; NaN without a capacity.

    resource        : -1 = no capacity is known or assumed
    expected, bound : expected peak and upper bound, base units; share: of `capacity`
    slot            : half hour of the expected peak, counted from midnight of today
    assumed         : whether the trainer assumed the capacity
    """

    resource: Ints
    expected: Floats
    bound: Floats
    capacity: Floats
    slot: Ints
    assumed: Bools

    @property
    def share(self) -> Floats:
        return self.expected / self.capacity


@dataclass(frozen=True, slots=True)
class LoadInputs:
    """Copies of what the load of some nodes is made of: no lock is needed to work it out.

    widen : factor on the standard deviations, for a model past its time
    """

    profiles: Profiles
    bases: NodeBases
    horizon: Horizon
    nodes: NodeInputs
    widen: float

    def curves(self, window: slice, *, corrected: bool = True) -> NodeCurves:
        """Curves of the nodes in half hours counted from midnight of today. corrected: by what is measured now"""
        days = self.horizon.days[: -(-window.stop // SLOTS_PER_DAY)]
        fading = self.horizon.fading()[: len(days) * SLOTS_PER_DAY] if corrected else None
        return node_curves(self.profiles, self.bases, self.nodes, days, fading=fading, widen=self.widen, slots=window)

    def peaks(self, *hours: PeakHours, resource: int | None = None) -> list[NodePeaks]:
        """The peaks of the nodes in each of these stretches of time. resource: None = each node's own"""
        capacity = self.nodes.capacity
        if resource is not None:
            capacity = np.where(np.arange(capacity.shape[1]) == resource, capacity, np.nan)
        window = slice(min(one.window.start for one in hours), max(one.window.stop for one in hours))
        curves = self.curves(window)
        expected, bound = curves.curve(0), curves.curve(1)
        at = [one.slots - window.start for one in hours]
        highest = [(expected[..., slots].max(axis=2), bound[..., slots].max(axis=2)) for slots in at]
        slot = [one.slots[expected[..., slots].argmax(axis=2)] for one, slots in zip(hours, at, strict=True)]
        return [
            bounding_peaks(*both, where, capacity, self.nodes.assumed)
            for both, where in zip(highest, slot, strict=True)
        ]


def load_inputs(
    predicted: PredictedCluster, rows: Sequence[int], with_pod: Sequence[int | None] = (), *, widen: float
) -> LoadInputs:
    """Copy what the load of nodes is made of; under the lock of the tables.

    with_pod : for each row a profile of which one more pod is there, or None
    """
    nodes = gather(predicted, rows, with_pod, as_believed=False)
    return LoadInputs(predicted.profiles, predicted.bases, predicted.horizon, nodes, widen)


def bounding_peaks(expected: AnyFloats, bound: AnyFloats, slot: Ints, capacity: Floats, assumed: Bools) -> NodePeaks:
    """Choose the resource of each node that comes closest to its capacity, by the expected peak.

    expected, bound : (n_nodes, n_resources) base units; slot: of the expected peak of each resource
    capacity        : (n_nodes, n_resources) NaN = not a limit
    assumed         : (n_nodes, n_resources) whether the trainer assumed the capacity
    """
    counts = counted(capacity, assumed)
    share = np.where(counts, expected / np.where(counts, capacity, 1.0), -np.inf)
    r = share.argmax(axis=1)
    rows, any_counts = np.arange(len(share)), counts.any(axis=1)

    def of(values: AnyFloats) -> Floats:
        return np.where(any_counts, values[rows, r], np.nan)

    return NodePeaks(
        resource=np.where(any_counts, r, -1),
        expected=of(expected),
        bound=of(bound),
        capacity=of(capacity),
        slot=slot[rows, r],
        assumed=np.asarray(assumed[rows, r] & any_counts),
    )


def counted(capacity: Floats, assumed: Bools) -> Bools:
    """Where a share of a capacity counts: known ones, and assumed ones of nodes that have no other; as `capacity`."""
    limits = limited(capacity)
    known = limits & ~assumed
    return np.asarray(np.where(known.any(axis=-1, keepdims=True), known, limits))


def hottest_first(share: AnyFloats, names: Sequence[str]) -> Ints:
    """Return the order of nodes by their expected share, the highest first: (n_nodes,); equals by name, NaN last."""
    by_name = np.argsort(np.array(names, dtype=object), kind="stable")
    return np.asarray(by_name[np.argsort(-np.nan_to_num(share, nan=-np.inf)[by_name], kind="stable")])
