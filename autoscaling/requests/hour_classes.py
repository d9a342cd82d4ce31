"""Few classes of hours, and whether requests that follow them are worth it.

A partition is tried only if it is finer than one number for the week, and taken only if it saves enough core hours over
the coarser one: a request that changes for little is a resize for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.requests.options import RequestOptions
from autoscaling.requests.use import ServiceUse
from forecast.arrays import Floats, Ints

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


def by_class(need: Floats, own: Floats, least_quantile: float, partition: Partition) -> Floats:
    """The highest need of each class, and at least a quantile of the own use in it: (n_classes,).

    need, own : (n_slots,), see needs.cpu_needs
    """
    classes = [partition.of_slot == number for number in range(len(partition.names))]
    return np.array(
        [max(need[slots].max(), np.quantile(own[slots], least_quantile)) if slots.any() else 0.0 for slots in classes]
    )


def requests_by_hour(
    need: Floats, own: Floats, choices: tuple[Partition, ...], options: RequestOptions
) -> tuple[Mapping[str, float], Ints]:
    """The request of each class, in the partition that pays, and the class of each half hour.

    A partition replaces a coarser one if it saves at least `clock_pays` of the core hours of the coarser one.
    """
    best = choices[0]
    values = by_class(need, own, options.least_quantile, best)
    for choice in choices[1:]:
        finer = by_class(need, own, options.least_quantile, choice)
        if finer[choice.of_slot].sum() <= (1 - options.clock_pays) * values[best.of_slot].sum():
            best, values = choice, finer
    return dict(zip(best.names, values.tolist(), strict=True)), best.of_slot
