"""Predicted peaks in words: which resource, how much, and when. Quantiles are those of the model: 0.5 and 0.95."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import AnyFloats, Bools, Ints
from cluster.predicted.horizon import Horizon, start_of_slot
from cluster.predicted.node_curves import NodeCurves, NodeInputs
from cluster.predicted.unknown_capacity import limited
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import RESOURCES
from scorer.answers import DayPeak, Peak


def bounding_peak(
    expected: AnyFloats,
    bound: AnyFloats,
    capacity: AnyFloats,
    assumed: Bools,
    slots: Ints,
    days: tuple[date, ...],
    zone: ZoneInfo,
) -> Peak | None:
    """The highest half hour of the resource that comes closest to its capacity; None where none has a capacity.

    expected, bound : (n_resources, n_days * 48) curves of one node
    capacity        : (n_resources,)
    assumed         : (n_resources,) whether the trainer assumed the capacity
    slots           : those to look at, counted from midnight of days[0]
    """
    limits = limited(capacity)
    if not limits.any() or not len(slots):
        return None
    peaks = expected[:, slots].max(axis=1)
    share = np.where(limits, peaks / np.where(limits, capacity, 1.0), -np.inf)
    r = int(share.argmax())
    slot = int(slots[int(expected[r, slots].argmax())])
    return Peak(
        resource=RESOURCES[r].name,
        unit=RESOURCES[r].unit,
        expected=float(peaks[r]),
        bound=float(bound[r, slots].max()),
        capacity=float(capacity[r]),
        share=float(share[r]),
        at=start_of_slot(days[slot // SLOTS_PER_DAY], slot % SLOTS_PER_DAY, zone),
        assumed=bool(assumed[r]),
    )


def bounding_peaks(curves: NodeCurves, inputs: NodeInputs, slots: Ints, horizon: Horizon) -> list[Peak | None]:
    """`bounding_peak` of each node that the curves are of."""
    expected, bound = curves.curve(0), curves.curve(1)
    return [
        bounding_peak(expected[i], bound[i], inputs.capacity[i], inputs.assumed[i], slots, horizon.days, horizon.zone)
        for i in range(len(expected))
    ]


def slots_of_day(number: int) -> Ints:
    """Slots of a day of the horizon, counted from midnight of its first; 0 = today."""
    return np.arange(number * SLOTS_PER_DAY, (number + 1) * SLOTS_PER_DAY)


def day_peaks(expected: AnyFloats, bound: AnyFloats, days: tuple[date, ...], zone: ZoneInfo) -> tuple[DayPeak, ...]:
    """The peak of each day of one curve; expected, bound: (n_days * 48,)."""
    peaks = []
    for i, day in enumerate(days):
        of_day = slice(i * SLOTS_PER_DAY, (i + 1) * SLOTS_PER_DAY)
        slot = int(expected[of_day].argmax())
        peaks.append(
            DayPeak(day, float(expected[of_day][slot]), float(bound[of_day].max()), start_of_slot(day, slot, zone))
        )
    return tuple(peaks)
