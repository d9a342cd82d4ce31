"""Peaks as values and in words: the same words, digits and order wherever a node's load is shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from base.arrays import AnyFloats
from cluster.predicted.horizon import Horizon, start_of_slot
from cluster.predicted.node_load import LoadInputs, NodePeaks, PeakHours
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import RESOURCES
from scorer.answers import DayPeak, Peak
from scorer.load_scale import percent


def peaks_of_nodes(found: NodePeaks, horizon: Horizon) -> list[Peak | None]:
    """The peak of each node; None = none of its capacities is known or assumed."""
    share = found.share
    return [
        None
        if (r := int(resource)) < 0
        else Peak(
            resource=RESOURCES[r].name,
            unit=RESOURCES[r].unit,
            expected=float(found.expected[i]),
            bound=float(found.bound[i]),
            capacity=float(found.capacity[i]),
            share=float(share[i]),
            at=horizon.start_of(int(found.slot[i])),
            assumed=bool(found.assumed[i]),
        )
        for i, resource in enumerate(found.resource)
    ]


def expected_peaks(load: LoadInputs, hours: PeakHours) -> list[Peak | None]:
    """The peaks of nodes in some half hours; no lock is needed."""
    (found,) = load.peaks(hours)
    return peaks_of_nodes(found, load.horizon)


def day_peaks(
    expected: AnyFloats, bound: AnyFloats, days: Sequence[date], zone: ZoneInfo, first: int = 0
) -> tuple[DayPeak, ...]:
    """The peak of each day of one curve, of today of what is left.

    expected, bound : (n_days * 48,)
    first           : half hour under way, which belongs to today
    """
    today, peaks = first // SLOTS_PER_DAY, []
    for i, day in enumerate(days):
        begin = first if i == today else i * SLOTS_PER_DAY
        left = slice(begin, (i + 1) * SLOTS_PER_DAY)
        slot = begin + int(expected[left].argmax())
        at = start_of_slot(day, slot % SLOTS_PER_DAY, zone)
        peaks.append(DayPeak(day, float(expected[slot]), float(bound[left].max()), at))
    return tuple(peaks)


def clock(at: datetime, today: date) -> str:
    """The time of a peak: 22:00, and Mon 22:00 on another day than today."""
    return f"{at:%H:%M}" if at.date() == today else f"{at:%a %H:%M}"


def share_of(peak: Peak | None) -> float | None:
    """The expected peak as a share of capacity; None = not known."""
    return None if peak is None else peak.share


def bound_share(peak: Peak) -> float | None:
    """The upper bound as a share of capacity."""
    return None if peak.bound is None or not peak.capacity else peak.bound / peak.capacity


def peak_words(peak: Peak, today: date) -> str:
    """expected peak 61 % of cpu at 22:00, upper bound (95 %) 75 %"""
    assumed = "an assumed capacity of " if peak.assumed else ""
    return (
        f"expected peak {percent(peak.share)} of {assumed}{peak.resource} at {clock(peak.at, today)}, "
        f"upper bound (95 %) {percent(bound_share(peak))}"
    )
