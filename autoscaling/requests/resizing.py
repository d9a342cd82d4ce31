"""Which pods are resized now, up or down, and how much of each node no request takes: decisions without I/O."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.requests.pod_resources import NAMES, OptedPod, Requests, scaled, stays_burstable, total
from autoscaling.requests.rounding import LEAST_CORES
from autoscaling.services_ahead import ServicesAhead
from base.arrays import Bools, Floats
from cluster.live_tables import LiveTables
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey

_SAME: Final = 1e-9
_MILLICORE: Final = 0.001


class Direction(StrEnum):
    """Whether the CPU request of a pod grows or shrinks."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Resize:
    """One pod gets these requests."""

    pod: OptedPod
    requests: Requests
    direction: Direction


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one pod of each service, (n_services, 2): cores and bytes.

    soon  : highest between now and the lead time
    later : highest between now and the end of the hold time
    now   : expected use at this moment, with the margin
    autoscaled : (n_services,) whether the number of replicas follows the load
    """

    row_of: Mapping[ServiceKey, int]
    replicas: Floats
    autoscaled: Bools
    soon: Floats
    later: Floats
    now: Floats


def needs_of(ahead: ServicesAhead, options: RequestOptions, now: float, hot: float) -> Needs:
    """What the pods need around a moment. now: unix seconds; hot: share above which a node is hot"""
    resize = options.resize
    pods = np.maximum(np.where(ahead.autoscaled[:, None], ahead.expected_replicas, ahead.replicas[:, None]), 1.0)
    # A pod's own request: all of its own error, which no other pod of the node bears.
    by_slot = ahead.load[:, [CPU, MEMORY]] + ahead.std[:, [CPU, MEMORY]]
    need = by_slot / pods[:, None]
    need[:, CPU] /= hot
    need[:, MEMORY] *= 1 + options.memory_margin
    used = ahead.at(ahead.load[:, [CPU, MEMORY]], now) / ahead.at(pods, now)[:, None]
    return Needs(
        row_of={service: row for row, service in enumerate(ahead.services)},
        replicas=np.maximum(ahead.replicas, 1.0),
        autoscaled=ahead.autoscaled,
        soon=ahead.highest(need, now, now + resize.lead),
        later=ahead.highest(need, now, now + resize.lead + resize.hold),
        now=used * (1 + resize.margin),
    )


def resizes(
    pods: Sequence[OptedPod],
    needs: Needs,
    options: RequestOptions,
    *,
    now: float,
    free: Mapping[str, tuple[float, float]],
    measured: Callable[[OptedPod], float | None] = lambda pod: None,
) -> tuple[list[Resize], Counter[str]]:
    """The resizes of this step, and why other pods keep their requests.

    pods     : that may be resized
    free     : node -> cores and bytes that no request takes; a node that is not named has none
    measured : cores that a pod uses now; None = not measured
    """
    resize, kept = options.resize, Counter[str]()
    wanted: list[tuple[float, OptedPod, tuple[float, float]]] = []
    busy: Counter[ServiceKey] = Counter()
    for pod in pods:
        row = needs.row_of.get(pod.service)
        not_now = _not_now(pod, now, resize.retry)
        why = pod.kept or not_now or _of_service(needs, row, options)
        busy[pod.service] += bool(not_now)
        if why or row is None:
            kept[why] += 1
            continue
        target = _target(pod, needs, row, options, measured(pod))
        change = target[CPU] - pod.total("cpu")
        grows = target[MEMORY] > pod.total("memory") * (1 + resize.least_change)
        if abs(change) < max(resize.least_change * pod.total("cpu"), _SAME) and not grows:
            kept["its request fits"] += 1
            continue
        wanted.append((change / max(pod.total("cpu"), LEAST_CORES), pod, target))
    # Those that lack most first, those that shrink last; names decide between equal ones.
    wanted.sort(key=lambda one: (-one[0], one[1].namespace, one[1].name))
    room = {node: list(amounts) for node, amounts in free.items()}
    found: list[Resize] = []
    for _, pod, target in wanted:
        at_once = max(1, math.floor(resize.service_share * needs.replicas[needs.row_of[pod.service]]))
        if len(found) >= resize.parallel or busy[pod.service] >= at_once:
            kept["the budget of this step is spent"] += 1
            continue
        new = _requests(pod, target, room.get(pod.node, [0.0, 0.0]), options)
        if new is None:
            kept["its node has no room"] += 1
        elif not stays_burstable(pod, new.requests):
            kept["its QoS class would change"] += 1
        else:
            found.append(new)
            busy[pod.service] += 1
            for resource, name in NAMES.items():
                grown = total(new.requests, name) - pod.total(name)
                # What shrinks is free only when the kubelet has done it.
                room.setdefault(pod.node, [0.0, 0.0])[resource] -= max(grown, 0.0)
    return found, kept


def _of_service(needs: Needs, row: int | None, options: RequestOptions) -> str:
    if row is None:
        return "its service has no forecast"
    follows = bool(needs.autoscaled[row]) and not options.resize.autoscaled
    return "the replicas of its service follow the load" if follows else ""


def _not_now(pod: OptedPod, now: float, retry: float) -> str:
    if pod.moving:
        return "its last resize is under way"
    if pod.refused_at is not None and now - pod.refused_at < retry:
        return "its node could not carry out the last resize"
    return ""


def _target(
    pod: OptedPod, needs: Needs, row: int, options: RequestOptions, measured: float | None
) -> tuple[float, float]:
    """Cores and bytes that the pod should request; today's where that is right."""
    resize, current = options.resize, pod.total("cpu")
    used = needs.now[row, CPU] if measured is None else measured * (1 + resize.margin)
    ceiling = max(resize.most * pod.original_total("cpu"), _SAME)
    soon, later = (float(max(one[row, CPU], used, LEAST_CORES)) for one in (needs.soon, needs.later))
    cores = current
    if soon > current or later < current:
        cores = later
    if cores > current:  # the ceiling limits growth alone: it makes no pod shrink
        cores = min(cores, max(ceiling, current))
    memory = pod.total("memory")
    if resize.memory and memory > 0:
        most = resize.most * pod.original_total("memory")
        memory = max(memory, min(float(needs.soon[row, MEMORY]), most))
    return cores, memory


def _requests(
    pod: OptedPod, target: tuple[float, float], room: Sequence[float], options: RequestOptions
) -> Resize | None:
    """The resize as far as the node has room; None = it has too little for a change that is worth it."""
    current, memory = pod.total("cpu"), pod.total("memory")
    rounding = _MILLICORE * len(pod.requests)  # each container is rounded up
    new = scaled(pod, "cpu", min(target[CPU], current + max(room[CPU] - rounding, 0.0)))
    more = scaled(pod, "memory", target[MEMORY])
    if 0 < total(more, "memory") - memory <= room[MEMORY]:
        memory = total(more, "memory")
        new = {name: {**of_one, **_only(more[name], "memory")} for name, of_one in new.items()}
    grown = total(new, "cpu") - current
    if abs(grown) < options.resize.least_change * current and memory <= pod.total("memory"):
        return None
    return Resize(pod, new, Direction.DOWN if grown < 0 else Direction.UP)


def _only(amounts: Mapping[str, float], resource: str) -> Mapping[str, float]:
    return {resource: amounts[resource]} if resource in amounts else {}


def free_on_nodes(tables: LiveTables) -> Mapping[str, tuple[float, float]]:
    """node -> cores and bytes; 0 where requests are above what is allocatable."""
    with tables.reading() as cluster:
        state = cluster.state
        columns = [state.kinds[RESOURCES[resource].name] for resource in (CPU, MEMORY)]
        free = np.maximum(state.allocatable - state.requested, 0.0)[:, columns]
        alive = state.alive
        return {
            name: (float(free[row, 0]), float(free[row, 1])) for name, row in state.row_of.items() if bool(alive[row])
        }
