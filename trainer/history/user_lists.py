"""Reads lists of entries (YAML) that a user wrote, the calendar of events among them, and says in one sentence what is
wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from base.errors import InputError
from base.setting_group import SettingGroup
from base.yaml_reader import UndecodableText, YamlMistake, decoded_text, read_yaml
from forecast.event_calendar import Event, slots_of

_MOST_ENTRIES = 10_000
_LONGEST_DAYS = 366
Entry = TypeVar("Entry", bound=SettingGroup)


@dataclass(frozen=True, slots=True)
class ListFile(Generic[Entry]):
    """A kind of file: a list of entries that are checked one by one.

    group    : what an entry is read into
    what     : the file, as messages call it
    entry    : one entry of it
    keys     : what an entry needs
    named_by : key whose value names an entry in messages
    """

    group: type[Entry]
    what: str
    entry: str
    keys: str
    named_by: str

    def read(self, path: Path) -> tuple[Entry, ...]:
        """The entries of a file, in its order; InputError if it cannot be used."""
        try:
            listed = read_yaml(decoded_text(path.read_bytes()))
        except OSError as error:
            raise InputError(f"{self.what} {path} cannot be read: {error.strerror or error}") from error
        except UndecodableText as error:
            raise InputError(f"{self.what} {path} cannot be read: {error}") from error
        except YamlMistake as error:
            where = f" near line {error.line}" if error.line is not None else ""
            raise InputError(f"{self.what} {path} is not valid YAML{where} ({error.problem}): correct it") from error
        if listed is None:
            return ()
        if not isinstance(listed, list):
            raise InputError(
                f"{self.what} {path} holds a {type(listed).__name__}: write a list of {self.entry}s, each with "
                f"{self.keys}"
            )
        if len(listed) > _MOST_ENTRIES:
            raise InputError(f"{self.what} {path} has {len(listed)} {self.entry}s, at most {_MOST_ENTRIES} are allowed")
        return tuple(self._entry(path, number, entry) for number, entry in enumerate(listed, start=1))

    def _entry(self, path: Path, number: int, entry: object) -> Entry:
        if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
            raise InputError(
                f"{path}, {self.entry} {number}: it is a {type(entry).__name__}: write {self.keys} and so on"
            )
        try:
            return self.group(**entry)
        except InputError as error:
            raise InputError(
                f"{path}, {self.entry} {number} ({entry.get(self.named_by, 'no name')}): {error}"
            ) from error


class ListedEvent(SettingGroup):
    """An event of a user's calendar (YAML):

    - name: spring-sale
      first_day: 2026-03-20
      last_day: 2026-03-22
      namespace: shop
      factor: 2.0
    """

    name: str = Field(min_length=1)
    first_day: date
    last_day: date | None = None
    hours: str | None = None
    namespace: str = Field(default="*", min_length=1)
    """Namespaces that take part, as a pattern with * and ?."""

    service: str = Field(default="*", min_length=1)
    """Services that take part: a pattern for the name, or for Kind/name (Deployment/cart-*)."""

    factor: float | None = Field(default=None, ge=0, le=100)

    @field_validator("hours", mode="before")
    @classmethod
    def _are_hours(cls, hours: object) -> object:
        if hours is not None:
            slots_of(hours)
        return hours

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        length = (self.event().end_day - self.first_day).days + 1
        if length < 1:
            raise ValueError(f"last_day {self.last_day} lies before first_day {self.first_day}: swap them")
        if length > _LONGEST_DAYS:
            raise ValueError(f"it lasts {length} days, at most {_LONGEST_DAYS} are allowed: what lasts is no event")
        return self

    def event(self) -> Event:
        """Return what the forecast makes of it."""
        return Event(**dict(self))


_FILE = ListFile(ListedEvent, "calendar of events", "event", "name and first_day", "name")


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a file, in its order; InputError if it cannot be used."""
    return tuple(listed.event() for listed in _FILE.read(path))
