"""The five fields of a schedule, as robfig/cron v3 (parser.go) reads them, which Kubernetes uses.

    field  = part *("," part)
    part   = ("*" | "?" | value ["-" value]) ["/" step]         "N/step" runs to the end of the field

Written here since the libraries differ: cronsim and croniter take Sunday for 7 as well, know L, # and W, refuse "?" in
some fields, and either run jobs of a skipped hour later or one of a repeated hour once (Debian's rules), where robfig
leaves them out or runs them twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from base.errors import InputError


@dataclass(frozen=True, slots=True)
class FieldValues:
    """values: that match; is_star: it says "*" or "?" without a step."""

    values: frozenset[int]
    is_star: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """name, lowest and highest value, names of values."""

    name: str
    lowest: int
    highest: int
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def every(self) -> FieldValues:
        return FieldValues(frozenset(range(self.lowest, self.highest + 1)), is_star=True)

    def values(self, text: str) -> FieldValues:
        """What a text means; parts that are empty mean nothing. Raises InputError."""
        values: frozenset[int] = frozenset()
        is_star = False
        for part in text.split(","):
            if part:
                some = self._part(part)
                values, is_star = values | some.values, is_star or some.is_star
        return FieldValues(values, is_star)

    def _part(self, text: str) -> FieldValues:
        span, *steps = text.split("/")
        low, *high = span.split("-")
        if len(steps) > 1 or (low not in _STARS and len(high) > 1):
            raise self._mistake(text)
        if low in _STARS:
            first, last = self.lowest, self.highest
        else:
            first = self._value(low, text)
            last = self._value(high[0], text) if high else first
        step = 1
        if steps:
            step = self._number(steps[0], text)
            if not high:
                last = self.highest
        if not self.lowest <= first <= last <= self.highest or step == 0:
            raise self._mistake(text)
        return FieldValues(frozenset(range(first, last + 1, step)), low in _STARS and step == 1)

    def _value(self, text: str, part: str) -> int:
        named = self.names.get(text.lower())
        return self._number(text, part) if named is None else named

    def _number(self, text: str, part: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise self._mistake(part)
        return int(text)

    def _mistake(self, part: str) -> InputError:
        return InputError(
            f"the {self.name} of a schedule has {part[:40]!r}: write values from {self.lowest} to {self.highest}, "
            "such as 5, 1-5, */15 or *"
        )


_STARS: Final = ("*", "?")
_NUMBER: Final = re.compile(r"\+?0*[0-9]{1,18}", re.ASCII)
"""As Go's Atoi reads it, but for numbers that no field has anyway."""

_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day of the month", 1, 31)
MONTH: Final = Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
WEEKDAY: Final = Field("day of the week", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)})
