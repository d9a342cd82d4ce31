"""One recommendation for each service, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from autoscaling.requests.hour_classes import partitions, requests_by_hour
from autoscaling.requests.needs import cpu_needs
from autoscaling.requests.options import RequestOptions
from autoscaling.requests.rounding import readable_bytes, readable_cores
from autoscaling.requests.use import ServiceUse
from base.arrays import Floats
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey


class LeftAlone(StrEnum):
    """Why a service keeps its requests."""

    ENDS = "its pods run to completion: their load does not follow the hour"
    NODES_OWN = "its pods come with the nodes"
    NOT_MEASURED = "no CPU usage of its pods was measured"
    ABSENT = "it has no pods"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Of one pod of a service.

    today    : cores and bytes that it requests now; 0 = none
    once     : cores to request for all hours
    cores    : by hour class; one class `always` where no clock pays. Empty = left alone
    by_slot  : (n_slots,) the same by half hour of the week
    memory_bytes : None = memory was not measured, so its request stays
    because  : None = there is a recommendation
    """

    service: ServiceKey
    replicas: float
    today: tuple[float, float]
    once: float
    cores: Mapping[str, float]
    by_slot: Floats
    memory_bytes: float | None
    because: LeftAlone | None = None

    @property
    def has_clock(self) -> bool:
        """Whether requests follow hour classes."""
        return len(self.cores) > 1

    @property
    def request(self) -> tuple[float, float]:
        """Cores and bytes to request once for all hours; today's where there is no recommendation."""
        return self.once, self.today[MEMORY] if self.memory_bytes is None else self.memory_bytes


def recommend(use: ServiceUse, options: RequestOptions) -> tuple[Recommendation, ...]:
    """Recommend the requests of one pod of each service, in their order."""
    needs = cpu_needs(use, options)
    floor = np.quantile(needs.own, options.least_quantile, axis=1)
    once = np.maximum(needs.weighted.max(axis=1, initial=0.0), floor)
    choices = partitions(use)
    highest_replicas = use.replicas.max(axis=1, initial=0.0)
    memory = (use.highest_memory + use.std[:, MEMORY].max(axis=1)) * (1 + options.memory_margin)
    found = []
    for row, service in enumerate(use.services):
        today = (float(use.requests[row, CPU]), float(use.requests[row, MEMORY]))
        because = left_alone(use, row)
        cores: Mapping[str, float] = {}
        by_slot = np.full(use.mean.shape[2], today[CPU])
        if because is None:
            needed, of_slot = requests_by_hour(needs.hourly[row], float(once[row]), choices, options.clock_pays)
            cores = {name: readable_cores(value) for name, value in needed.items()}
            by_slot = np.array(list(cores.values()))[of_slot]
        known = because is None and bool(use.measured[row, MEMORY]) and bool(np.isfinite(memory[row]))
        found.append(
            Recommendation(
                service=service,
                replicas=float(highest_replicas[row]),
                today=today,
                once=readable_cores(float(once[row])) if because is None else today[CPU],
                cores=cores,
                by_slot=by_slot,
                memory_bytes=readable_bytes(float(memory[row])) if known else None,
                because=because,
            )
        )
    return tuple(found)


def left_alone(use: ServiceUse, row: int) -> LeftAlone | None:
    """Why the service in this row keeps its requests; None = it does not."""
    if use.ending[row]:
        return LeftAlone.ENDS
    if use.services[row].belongs_to_node:
        return LeftAlone.NODES_OWN
    if not use.measured[row, CPU]:
        return LeftAlone.NOT_MEASURED
    return None if use.replicas[row].max(initial=0.0) > 0 else LeftAlone.ABSENT
