"""The stretch of time that placement looks at: seven local days from today, of which what is over does not count.

The tables of predicted load cover the whole of it and are made anew at local midnight.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY, Calendar

HORIZON_DAYS = 7

LIVE_HALF_LIFE_SLOTS = 12
"""What a node uses beyond its forecast is halved every six hours: by tomorrow it says nothing."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """days: consecutive local days, today first; slot: the half hour of today that is under way."""

    days: tuple[date, ...]
    slot: int
    zone: ZoneInfo

    @classmethod
    def at(cls, now: datetime, calendar: Calendar) -> Horizon:
        """The horizon of a moment."""
        today, slot = calendar.day_and_slot(now)
        return cls(calendar.horizon(today, HORIZON_DAYS), slot, calendar.zone)

    @property
    def today(self) -> date:
        return self.days[0]

    @property
    def n_slots(self) -> int:
        return len(self.days) * SLOTS_PER_DAY

    def weights(self) -> Floats:
        """1 for half hours to come, the one under way included; 0 for those that are over or do not exist: (n_slots,).

        When clocks go forward two half hours of that day do not come.
        """
        weights = (np.arange(self.n_slots) >= self.slot).astype(np.float64)
        for i, day in enumerate(self.days):
            midnight, next_midnight = (start_of_slot(day + timedelta(days=n), 0, self.zone) for n in (0, 1))
            if midnight.utcoffset() != next_midnight.utcoffset():
                of_day = range(SLOTS_PER_DAY)
                weights[[i * SLOTS_PER_DAY + slot for slot in of_day if not _exists(day, slot, self.zone)]] = 0.0
        return weights

    def fading(self, half_life_slots: float = LIVE_HALF_LIFE_SLOTS) -> Floats:
        """What is left of today's error in each half hour: 1 now, halved every `half_life_slots`: (n_slots,)."""
        ahead = np.arange(self.n_slots) - self.slot
        return np.where(ahead >= 0, 0.5 ** (np.maximum(ahead, 0) / half_life_slots), 0.0)

    def position(self, moment: float) -> float:
        """Half hours between midnight of today and a moment (unix seconds), on the wall clock."""
        local = datetime.fromtimestamp(moment, self.zone)
        minutes = local.hour * 60 + local.minute + local.second / 60
        return (local.date() - self.today).days * SLOTS_PER_DAY + minutes / SLOT_MINUTES

    def start_of(self, slot: int) -> datetime:
        """When a slot, counted from midnight of today, begins on the wall clock."""
        return start_of_slot(self.days[0] + timedelta(days=slot // SLOTS_PER_DAY), slot % SLOTS_PER_DAY, self.zone)


def _exists(day: date, slot: int, zone: ZoneInfo) -> bool:
    """Whether the wall clock ever shows it (PEP 495, "gap")."""
    start = start_of_slot(day, slot, zone)
    return start.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == start.replace(tzinfo=None)


def start_of_slot(day: date, slot: int, zone: ZoneInfo) -> datetime:
    """When a slot of a local day begins on the wall clock."""
    minutes = slot * SLOT_MINUTES
    return datetime.combine(day, time(minutes // 60, minutes % 60), tzinfo=zone)


def between_slots(position: AnyFloats) -> tuple[Ints, Floats]:
    """Return the half hour whose middle comes last before a point of the day, and the share of the way to the next one.

    position : (n,) in half hours since midnight; before the first and after the last middle it is taken to be there
    """
    at = np.clip(position - 0.5, 0, SLOTS_PER_DAY - 1)
    slot = np.minimum(at.astype(np.int64), SLOTS_PER_DAY - 2)
    return slot, np.asarray(at - slot, dtype=np.float64)
