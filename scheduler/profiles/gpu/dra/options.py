"""Settings of Dynamic Resource Allocation."""

from __future__ import annotations

from dataclasses import dataclass

from forecast.errors import InputError

__all__ = ["DraOptions"]


@dataclass(frozen=True, slots=True)
class DraOptions:
    """
    most_steps      : devices that are tried for the claims of one pod on one node before the node counts as one where
                      they do not fit: claims with constraints over many devices could take for ever
    write_seconds   : within which the claims of a pod have to be written to the API server, repetitions included
    binding_seconds : that drivers have, from the allocation on, to make devices with binding conditions ready
    """

    most_steps: int = 20_000
    write_seconds: float = 20.0
    binding_seconds: float = 600.0

    def __post_init__(self) -> None:
        if self.most_steps < 1:
            raise InputError(f"most_steps is {self.most_steps}: it must be 1 or more, 20000 suits clusters of any size")
        if not 0 < self.write_seconds <= 600:
            raise InputError(f"write_seconds is {self.write_seconds:g}: it must be more than 0 and at most 600")
        if not 0 < self.binding_seconds <= 86_400:
            raise InputError(f"binding_seconds is {self.binding_seconds:g}: it must be more than 0 and at most 86400")
