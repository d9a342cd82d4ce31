"""What can go wrong with one request, before it is told to the user.

Transient      may be better in a moment: retried until the patience ends, then an InputError
TooManySamples the server refuses the size: the reader asks for less at a time
"""

from __future__ import annotations

from forecast.errors import ForecastError

__all__ = ["TooManySamples", "Transient"]


class Transient(ForecastError):
    """The request failed in a way that passes; `way_out` completes the sentence once patience has ended."""

    def __init__(self, found: str, way_out: str) -> None:
        self.found, self.way_out = found, way_out
        super().__init__(f"{found}: {way_out}")


class TooManySamples(ForecastError):
    """The query is too large for the server; `found` is what it said."""

    def __init__(self, name: str, found: str) -> None:
        self.name, self.found = name, found
        super().__init__(f"query {name} is too large for the server ({found})")
