"""A clock that stands until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class SettableClock(Generic[T]):
    """Called, it says `now`: seconds or a datetime."""

    now: T

    def __call__(self) -> T:
        return self.now
