"""From single samples to half-hour slots: the time grid samples were taken on and its reduction.

A sample stands for the interval [timestamp, timestamp + step). Samples are first laid on a grid of *ticks* one step
apart, which makes duplicates and rows in any order harmless, and then averaged over the ticks of each local slot.
What the pods of one service have in common is the business of `aggregation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from base.arrays import Bools, Floats32, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY, Calendar
from forecast.job_runs import SampleTimes

Ints32 = NDArray[np.int32]

MAX_STEP_SECONDS = 3600
"""Coarser samples would smear the evening peak over hours."""

_SLOT_SECONDS = SLOT_MINUTES * 60
# Samples longer than a slot are cut into pieces of this length, each of which counts for the slot it begins in.
_PIECE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class SampleGrid:
    """Ticks of one sampling step over a few consecutive local days.

    step_seconds : distance of two samples of one pod
    first        : time of tick 0 in seconds since 1970 (UTC)
    n_ticks      : ticks that touch the days, in order of time
    n_days       : consecutive local days, 48 slots each
    slot_ticks   : (n_pieces_max, n_days * 48) the ticks whose samples fall into a slot, -1 where there are fewer.
                   Slots that clocks jump over have none, slots that clocks repeat have twice as many.
    """

    step_seconds: int
    first: int
    n_ticks: int
    n_days: int
    slot_ticks: Ints

    @classmethod
    def of_days(
        cls, calendar: Calendar, first_day: date, n_days: int, *, step_seconds: int, phase_seconds: int = 0
    ) -> SampleGrid:
        """The grid over local days; samples are taken at phase_seconds + k * step_seconds since 1970."""
        begin = int(calendar.midnight(first_day).timestamp())
        end = int(calendar.midnight(date.fromordinal(first_day.toordinal() + n_days)).timestamp())
        piece = step_seconds if step_seconds <= _SLOT_SECONDS else _PIECE_SECONDS
        n_pieces = -(-step_seconds // piece)
        # A long sample that begins before midnight reaches into the first day.
        reach = (n_pieces - 1) * piece
        first = -(-(begin - reach - phase_seconds) // step_seconds)
        stop = -(-(end - phase_seconds) // step_seconds)
        ticks = np.arange(stop - first)
        starts = phase_seconds + (first + ticks) * step_seconds
        piece_starts = (starts[:, None] + np.arange(n_pieces) * piece).ravel()  # (n_ticks * n_pieces,)
        tick_of_piece = np.repeat(ticks, n_pieces)
        inside = (piece_starts >= begin) & (piece_starts < end)
        piece_starts, tick_of_piece = piece_starts[inside], tick_of_piece[inside]
        day, slot = calendar.local_days_and_slots(pd.to_datetime(piece_starts, unit="s", utc=True))
        flat = (day - first_day.toordinal()) * SLOTS_PER_DAY + slot
        return cls(
            step_seconds=step_seconds,
            first=int(phase_seconds + first * step_seconds),
            n_ticks=len(ticks),
            n_days=n_days,
            slot_ticks=_padded_groups(flat, tick_of_piece, n_days * SLOTS_PER_DAY),
        )

    @property
    def end(self) -> int:
        """Seconds since 1970 at which the last tick's sample ends."""
        return self.first + self.n_ticks * self.step_seconds

    def ticks(self, seconds: Ints) -> Ints:
        """Nearest tick of each time; times outside the grid give values outside 0..n_ticks - 1."""
        return (seconds - self.first + self.step_seconds // 2) // self.step_seconds

    def tick_days(self) -> Ints:
        """Day of each tick, 0..n_days - 1, the first where a long sample reaches into two: (n_ticks,)."""
        days = np.full(self.n_ticks, self.n_days - 1, dtype=np.int64)
        piece, slot = np.nonzero(self.slot_ticks >= 0)
        np.minimum.at(days, self.slot_ticks[piece, slot], slot // SLOTS_PER_DAY)
        return days


def _padded_groups(group: Ints, member: Ints, n_groups: int) -> Ints:
    """Members of each group as columns of a table, padded with -1: (largest group, n_groups)."""
    order = np.argsort(group, kind="stable")
    group, member = group[order], member[order]
    counts = np.bincount(group, minlength=n_groups)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((max(int(counts.max(initial=0)), 1), n_groups), -1, dtype=np.int64)
    table[rank, group] = member
    return table


def slot_means(samples: Floats32, grid: SampleGrid) -> Floats32:
    """Mean of the measured samples in each slot.

    samples : (n_ticks, n_series, n_resources), NaN = not measured
    Returns (n_series, n_resources, n_days, 48) float32, NaN where nothing was measured.
    """
    _, n_series, n_resources = samples.shape
    means = np.empty((n_series, n_resources, grid.n_days, SLOTS_PER_DAY), dtype=np.float32)
    for day in range(grid.n_days):
        table = grid.slot_ticks[:, day * SLOTS_PER_DAY : (day + 1) * SLOTS_PER_DAY]
        total = np.zeros((SLOTS_PER_DAY, n_series, n_resources), dtype=np.float32)
        count = np.zeros((SLOTS_PER_DAY, n_series, n_resources), dtype=np.float32)
        for row in table:
            slots = np.flatnonzero(row >= 0)
            values = samples[row[slots]]  # (n_slots, n_series, n_resources)
            measured = np.isfinite(values)
            total[slots] += np.where(measured, values, 0)
            count[slots] += measured
        with np.errstate(invalid="ignore"):
            means[:, :, day] = (total / count).transpose(1, 2, 0)  # 0 / 0 is NaN: not measured
    return means


def slot_shares(seen: Bools, grid: SampleGrid) -> tuple[Floats32, Bools]:
    """How much of each slot a series was there.

    seen : (n_ticks, n_series) whether there is a sample, measured or not
    Returns shares (n_series, n_days, 48) in 0..1 and whether a slot has any sample at all, (n_days, 48). Shares count
    the ticks at which anything was sampled, so that a gap of the monitoring does not look like pods that went away.
    """
    n_series = seen.shape[1]
    tick_used: Bools = np.any(seen, axis=1)
    there = np.zeros((grid.n_days * SLOTS_PER_DAY, n_series), dtype=np.float32)
    used = np.zeros(grid.n_days * SLOTS_PER_DAY, dtype=np.float32)
    for row in grid.slot_ticks:
        slots = np.flatnonzero(row >= 0)
        there[slots] += seen[row[slots]]
        used[slots] += tick_used[row[slots]]
    shares: Floats32 = np.divide(there, np.maximum(used, 1)[:, None], dtype=np.float32)  # (n_slots, n_series)
    return (
        np.ascontiguousarray(shares.T).reshape(n_series, grid.n_days, SLOTS_PER_DAY),
        (used > 0).reshape(grid.n_days, SLOTS_PER_DAY),
    )


def sample_times(seen: Bools, grid: SampleGrid) -> SampleTimes:
    """First and last sample of each series, and the times at which any series has one.

    seen : (n_ticks, n_series) whether there is a sample, measured or not
    """
    ticks = grid.first + np.arange(grid.n_ticks) * grid.step_seconds
    there = seen.any(axis=0)
    first, last = ticks[seen.argmax(axis=0)], ticks[grid.n_ticks - 1 - seen[::-1].argmax(axis=0)]
    return SampleTimes(
        step_seconds=grid.step_seconds,
        sampled=ticks[seen.any(axis=1)],
        first=np.where(there, first, -1),
        last=np.where(there, last, -1),
    )


def slot_last(places: Ints32, grid: SampleGrid) -> Ints32:
    """Where each series was last seen in each slot.

    places : (n_ticks, n_series) index of the place, negative = unknown or not there
    Returns (n_series, n_days, 48), -1 = unknown.
    """
    n_series = places.shape[1]
    last = np.full((grid.n_days * SLOTS_PER_DAY, n_series), -1, dtype=np.int32)
    for row in grid.slot_ticks:  # the ticks of a slot are in the order of time
        slots = np.flatnonzero(row >= 0)
        found = places[row[slots]]
        last[slots] = np.where(found >= 0, found, last[slots])
    return np.ascontiguousarray(last.T).reshape(n_series, grid.n_days, SLOTS_PER_DAY)
