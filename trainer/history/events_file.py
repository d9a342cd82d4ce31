"""Reads a user's calendar of events (YAML), and says in one sentence what is wrong with it.

- name: spring-sale
  first_day: 2026-03-20
  last_day: 2026-03-22
  namespace: shop
  factor: 2.0
"""

from __future__ import annotations

from pathlib import Path

import yaml

from forecast.errors import InputError
from forecast.events import Event

_MOST_EVENTS = 10_000


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a file, in its order; InputError if it cannot be used."""
    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"calendar of events {path} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" near line {mark.line + 1}" if mark is not None else f" ({error})"
        raise InputError(f"calendar of events {path} is not valid YAML{where}: correct it") from error
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise InputError(
            f"calendar of events {path} holds a {type(listed).__name__}: write a list of events, each with name and "
            "first_day"
        )
    if len(listed) > _MOST_EVENTS:
        raise InputError(f"calendar of events {path} has {len(listed)} events, at most {_MOST_EVENTS} are allowed")
    return tuple(_event(path, number, entry) for number, entry in enumerate(listed, start=1))


def _event(path: Path, number: int, entry: object) -> Event:
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise InputError(f"{path}, event {number}: it is a {type(entry).__name__}: write name, first_day and so on")
    try:
        return Event(**entry)
    except InputError as error:
        raise InputError(f"{path}, event {number} ({entry.get('name', 'without a name')}): {error}") from error
