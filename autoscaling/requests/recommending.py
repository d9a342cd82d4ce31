"""One recommendation for each service, or the reason why there is none: what its CPU request has to cover in each half
hour, and whether requests by class of hours are worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.requests.rounding import readable_bytes, readable_cores
from autoscaling.requests.use import PodUseOfService
from base.arrays import Floats, Ints
from base.excluded import ExcludedOptions
from forecast.resources import CPU, HOT_RESOURCES, MEMORY
from forecast.service_key import ServiceKey

# What the CPU request of a pod has to cover in each half hour, so that nodes full of requests stay cool.
#
# kube-scheduler adds requests up and knows no hours. A node is full when its requests reach its allocatable cores:
#
#     sum of requests <= allocatable
#
# It is cool while usage stays below the hot share of capacity, at each half hour t. So a pod that uses u(t) requests
#
#     need(t) = (u(t) + error share(t)) / hot * (allocatable / capacity)
#
# Errors of many pods on a node partly cancel out: their standard deviation is S = sqrt(sum of std^2). So pods share
# `errors` * S out as each contributes to it (Euler allocation: Tasche, "Capital allocation to business units", 2007):
#
#     error share = errors * std^2 / S
#
# S is that of a mean node when the cluster is filled with pods like these. A bursty pod gets much, a calm one little.
#
# If all pods requested the highest need of their own, no node could be hot, and much would stay unused: own peaks do
# not come together. What matters is the half hours in which the whole cluster is busy. So the need of a half hour
# counts by (load of the cluster then / its highest load) ^ quiet_discount: all of it at the peak, little at night. A
# quantile of the pod's own use is the floor. Requests that follow the hour have no such discount: each covers its own
# hours.
#
# Demand that a CPU limit hides is in no forecast. Where pods were throttled, a request covers at least what these used,
# at all hours: when demand comes is hidden, too. Memory is at least what a pod had at an OOM kill, with the margin.
#
# Disk, network and log make nodes hot as well, and have no requests. The CPU request stands for a share of the need of
# them, in units of CPU: share of the cluster's capacity * the cluster's cores.

ALWAYS: Final = "always"

SIZED_BY: Final = (
    f"CPU by the expected curve and {RequestOptions.errors:g} standard deviations of a full node's forecast error, "
    "memory by the highest half hour seen or expected"
)
"""Which part of the forecast requests take, as reports name it."""


@dataclass(frozen=True, slots=True)
class CpuNeeds:
    """Cores, (n_services, n_slots) each.

    hourly   : that a request of the half hour alone has to cover
    weighted : that a request of the whole week has to cover, less where the cluster is quiet
    own      : for the pod's expected use alone, without errors: a quantile of it is the floor
    """

    hourly: Floats
    weighted: Floats
    own: Floats


def cpu_needs(use: PodUseOfService, options: RequestOptions, hot: float) -> CpuNeeds:
    """Cores that requests have to cover by half hour."""
    n_services, _, n_slots = use.mean.shape
    hourly, weighted, own = (np.zeros((n_services, n_slots)) for _ in range(3))
    for resource in HOT_RESOURCES:
        part = 1.0 if resource == CPU else options.carried
        if part <= 0 or not use.capacity[resource] > 0:
            continue
        per_unit = part * _cores_per_unit(use, resource, hot)
        mean = use.mean[:, resource]
        need = (mean + options.errors * error_shares(use, resource, hot)) * per_unit
        hourly = np.maximum(hourly, need)
        weighted = np.maximum(weighted, need * busy_weights(use, resource, options.quiet_discount))
        own = np.maximum(own, mean * per_unit)
    return CpuNeeds(hourly, weighted, own)


def error_shares(use: PodUseOfService, resource: int, hot: float) -> Floats:
    """What one pod adds to the standard deviation of a full node: (n_services, n_slots), base units."""
    variance = use.std[:, resource] ** 2
    load = (use.mean[:, resource] * use.replicas).sum(axis=0)
    highest = load.max(initial=0.0)
    if highest <= 0 or use.n_nodes <= 0:
        return np.zeros_like(variance)
    times = hot * use.capacity[resource] / highest  # so many times these pods fill the cluster
    of_node = np.sqrt((variance * use.replicas).sum(axis=0) * times / use.n_nodes)  # (n_slots,)
    return np.asarray(np.where(of_node > 0, variance / np.where(of_node > 0, of_node, 1.0), 0.0))


def busy_weights(use: PodUseOfService, resource: int, quiet_discount: float) -> Floats:
    """How much each half hour counts, by how busy the cluster is expected to be: (n_slots,), 1 at its peak."""
    load = (use.mean[:, resource] * use.replicas).sum(axis=0)
    highest = load.max(initial=0.0)
    if highest <= 0:
        return np.ones(len(load))
    return np.asarray((load / highest) ** quiet_discount)


def _cores_per_unit(use: PodUseOfService, resource: int, hot: float) -> float:
    """Cores of requests for a unit of usage, such that a node full of requests is at the hot limit."""
    cores = use.allocatable[CPU] if np.isfinite(use.allocatable[CPU]) else use.capacity[CPU]
    return float(cores / (hot * use.capacity[resource]))


# Few classes of hours, and whether requests that follow them are worth it.
#
# A partition is tried only if it is finer than one number for the week, and taken only if it saves enough core hours
# over the coarser one: a request that changes for little is a resize for nothing.

_DAY, _EVENING, _NIGHT = range(3)
_DAY_FROM, _EVENING_FROM, _EVENING_UNTIL = 7, 17, 24
_PARTS: Final = {_DAY: "07-17", _EVENING: "17-24", _NIGHT: "00-07"}


@dataclass(frozen=True, slots=True)
class Partition:
    """names: (n_classes,); of_slot: (n_slots,) class of each half hour of the week."""

    names: tuple[str, ...]
    of_slot: Ints


def partitions(use: PodUseOfService) -> tuple[Partition, ...]:
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


class LeftAlone(StrEnum):
    """Why a service keeps its requests."""

    EXCLUDED = "the settings exclude it"
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
    hidden   : why demand is more than usage shows, a clause for each resource
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
    hidden: tuple[str, ...] = ()

    @property
    def has_clock(self) -> bool:
        """Whether requests follow hour classes."""
        return len(self.cores) > 1

    @property
    def request(self) -> tuple[float, float]:
        """Cores and bytes to request once for all hours; today's where there is no recommendation."""
        return self.once, self.today[MEMORY] if self.memory_bytes is None else self.memory_bytes


def recommend(
    use: PodUseOfService, options: RequestOptions, hot: float, excluded: ExcludedOptions
) -> tuple[Recommendation, ...]:
    """Recommend the requests of one pod of each service, in their order.

    hot      : share of capacity above which a node is hot
    excluded : services that keep their requests
    """
    needs = cpu_needs(use, options, hot)
    floor = np.quantile(needs.own, options.least_quantile, axis=1)
    least = np.nan_to_num(use.hidden.cores)  # (n_services,)
    once = np.maximum(needs.weighted.max(axis=1, initial=0.0), np.maximum(floor, least))
    hourly = np.maximum(needs.hourly, least[:, None])
    choices = partitions(use)
    highest_replicas = use.replicas.max(axis=1, initial=0.0)
    highest = np.fmax(use.highest_memory + use.std[:, MEMORY].max(axis=1), use.hidden.oom_bytes)
    memory = highest * (1 + options.memory_margin)
    found = []
    for row, service in enumerate(use.services):
        today = (float(use.requests[row, CPU]), float(use.requests[row, MEMORY]))
        because = left_alone(use, row, excluded)
        cores: Mapping[str, float] = {}
        by_slot = np.full(use.mean.shape[2], today[CPU])
        if because is None:
            needed, of_slot = requests_by_hour(hourly[row], float(once[row]), choices, options.clock_pays)
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
                hidden=tuple(use.hidden.words(row)) if because is None else (),
            )
        )
    return tuple(found)


def left_alone(use: PodUseOfService, row: int, excluded: ExcludedOptions) -> LeftAlone | None:
    """Why the service in this row keeps its requests; None = it does not."""
    service = use.services[row]
    if excluded.why(service.namespace, service.kind, service.name):
        return LeftAlone.EXCLUDED
    if use.ending[row]:
        return LeftAlone.ENDS
    if service.belongs_to_node:
        return LeftAlone.NODES_OWN
    if not use.measured[row, CPU]:
        return LeftAlone.NOT_MEASURED
    return None if use.replicas[row].max(initial=0.0) > 0 else LeftAlone.ABSENT
