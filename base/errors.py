"""Errors of the forecast package. Every message says what was found, what is allowed and what to do next.

ForecastError
├── InputError              the caller's data or arguments; the command line exits with 2
│   ├── NotEnoughHistory
│   ├── UnknownName         a service, node, resource or version that is not there
│   └── (registry: NoModel, CorruptArtefact, ForeignArtefact, UnsignedArtefact)
├── PublishError            the registry could not be written; the last good model is untouched
├── StoreError              a directory or object store could not be reached, read or written
└── (trainer: LeaseHeld, LeaseLost: another run is at work)
"""

from __future__ import annotations


class ForecastError(Exception):
    """Base of all errors this project raises on purpose."""


class InputError(ForecastError):
    """The input cannot be used as it is; the message is one sentence with the way out."""


class NotEnoughHistory(InputError):
    """Fewer whole local days than the operation needs."""

    def __init__(self, *, days: int, needed: int, purpose: str, way_out: str = "") -> None:
        """way_out: besides a longer history"""
        self.days, self.needed, self.purpose = days, needed, purpose
        held = "1 whole local day" if days == 1 else f"{days} whole local days"
        super().__init__(
            f"the history holds {held}, {needed} are needed to {purpose}: "
            f"{way_out or 'wait for more days'}, or export a longer history"
        )


class UnknownName(InputError):
    """A name that does not occur where it was looked up."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind, self.name = kind, name
        shown = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
        super().__init__(f"{kind} {name!r} is not known; known are: {shown or 'none'}")


class PublishError(ForecastError):
    """A model could not be published; what was published before is still the latest."""


class StoreError(ForecastError):
    """The store could not be reached, read or written; a missing file is FileNotFoundError instead."""
