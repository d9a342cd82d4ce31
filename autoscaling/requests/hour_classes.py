"""Few classes of hours, and whether requests that follow them are worth it.

A partition is tried only if it is finer than one number for the week, and taken only if it saves enough core hours over
the coarser one: a request that changes for little is a resize for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.requests.use import ServiceUse
from base.arrays import Floats, Ints

ALWAYS: Final = "always"
_DAY, _EVENING, _NIGHT = range(3)
_DAY_FROM, _EVENING_FROM, _EVENING_UNTIL = 7, 17, 24
_PARTS: Final = {_DAY: "07-17", _EVENING: "17-24", _NIGHT: "00-07"}


@dataclass(frozen=True, slots=True)
class Partition:
    """names: (n_classes,); of_slot: (n_slots,) class of each half hour of the week."""

    names: tuple[str, ...]
    of_slot: Ints


def partitions(use: ServiceUse) -> tuple[Partition, ...]:
    """The partitions that are tried, coarsest first."""
    part = np.where(use.hour >= _EVENING_FROM, _EVENING, np.where(use.hour >= _DAY_FROM, _DAY, _NIGHT))
    kind = np.where(use.is_workday, 0, 1)
    parts, kinds = tuple(_PARTS.values()), ("workdays", "weekends")
    both = tuple(f"{one} {other}" for one in kinds for other in parts)
    return (
        Partition((ALWAYS,), np.zeros(len(part), dtype=np.int64)),
        Partition(kinds, kind),
        Partition(parts, part),
        Partition(both, kind * len(parts) + part),
    )


def requests_by_hour(
    hourly: Floats, once: float, choices: tuple[Partition, ...], pays: float
) -> tuple[Mapping[str, float], Ints]:
    """The request of each class in the partition that pays, and the class of each half hour.

    hourly : (n_slots,), see needs.CpuNeeds
    once   : the request that holds at all hours
    A partition replaces a coarser one if it saves at least `pays` of the core hours of the coarser one.
    """
    best, values = choices[0], np.array([once])
    for choice in choices[1:]:
        finer = np.zeros(len(choice.names))
        np.maximum.at(finer, choice.of_slot, hourly)
        if finer[choice.of_slot].sum() <= (1 - pays) * values[best.of_slot].sum():
            best, values = choice, finer
    return dict(zip(best.names, values.tolist(), strict=True)), best.of_slot
