"""What can go wrong with one request, before the user sees it.

Unreachable       patience ended, the next question would fare no better: ends the run
ImpossibleAnswer  no Prometheus says that, so nothing else that is said there counts: ends the run
Transient         may be better in a moment: retried until the patience ends, then an InputError
TooManySamples    the server refuses the size: the reader asks for less at a time
"""

from __future__ import annotations

from base.errors import ForecastError, InputError


class Unreachable(InputError):
    """The server has not answered for as long as we are willing to wait."""


class ImpossibleAnswer(InputError):
    """The answer holds what no Prometheus gives."""


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
