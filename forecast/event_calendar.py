"""A user's calendar of days that differ: campaigns, sales, maintenance. Which days, which services, how much load.

How such days are learned from and forecast is in `event_effect`; how a file of them is read, in trainer.history.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

import numpy as np

from base.arrays import Bools
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.service_key import ServiceKey

_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*-\s*(\d{1,2})(?::(\d{2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Local days on which some services carry another load than usual; trainer.history.user_lists reads and checks one.

    name               : events of the same name are the same kind of day: without a factor, later ones are learned from
                         earlier ones
    first_day          : local
    last_day           : included; None = the first one
    hours              : of each day, for instance 18-23 or 8:30-12; None = the whole day
    namespace, service : who takes part, see `concerns`
    factor             : expected load / usual load; None = learned from earlier events of the same name
    """

    name: str
    first_day: date
    last_day: date | None = None
    hours: str | None = None
    namespace: str = "*"
    service: str = "*"
    factor: float | None = None

    @property
    def end_day(self) -> date:
        return self.last_day or self.first_day

    def concerns(self, service: ServiceKey) -> bool:
        """Whether the service takes part."""
        name = service.service if "/" in self.service else service.name
        return fnmatchcase(service.namespace, self.namespace) and fnmatchcase(name, self.service)

    def services(self, services: Sequence[ServiceKey]) -> Bools:
        """(n_services,) which of them take part."""
        return np.array([self.concerns(service) for service in services], dtype=np.bool_)

    def slots(self, days: Sequence[date]) -> Bools:
        """(n_days, 48) the half hours that it covers."""
        first, end = (0, SLOTS_PER_DAY) if self.hours is None else slots_of(self.hours)
        covered: Bools = np.zeros((len(days), SLOTS_PER_DAY), dtype=np.bool_)
        covered[[self.first_day <= day <= self.end_day for day in days], first:end] = True
        return covered


def events_between(events: Sequence[Event], first: date, last: date) -> tuple[Event, ...]:
    """Those of which any day lies between two days, both included: a calendar may list years."""
    return tuple(event for event in events if event.first_day <= last and event.end_day >= first)


def slots_of(hours: object) -> tuple[int, int]:
    """First half hour and the one after the last, of "18-23" or "8:30-12"; ValueError where it is no such range."""
    match = _HOURS.fullmatch(hours.strip()) if isinstance(hours, str) else None
    if match is not None and all(int(match[i] or 0) <= 59 for i in (2, 4)):
        begin, end = (int(match[i]) * 60 + int(match[i + 1] or 0) for i in (1, 3))
        if begin < end <= 24 * 60:
            return begin // SLOT_MINUTES, -(-end // SLOT_MINUTES)
    raise ValueError("write the hours of a day, as 18-23 or 8:30-12; of two days, write two events")
