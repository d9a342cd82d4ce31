"""Reads a user's calendar of events (YAML).

- name: spring-sale
  first_day: 2026-03-20
  last_day: 2026-03-22
  namespace: shop
  factor: 2.0
"""

from __future__ import annotations

from pathlib import Path

from forecast.events import Event
from trainer.history.yaml_list import ListFile

_FILE = ListFile(Event, "calendar of events", "event", "name and first_day", "name")


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a file, in its order; InputError if it cannot be used."""
    return _FILE.read(path)
