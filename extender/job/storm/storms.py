"""Storms: minutes in which so many pods come that they are better prepared for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from extender.job.storm.demand import Demand, Source
from extender.job.terms import PLACE_ANNOTATION, Place
from forecast.service_key import ServiceKey

__all__ = ["THRESHOLD", "Storm", "storms"]

THRESHOLD: Final = 50
"""Pods per minute."""

_MINUTE: Final = 60.0
_MOST_STORMS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Storm:
    """
    start, until : unix seconds of its first minute and of the end of its last
    pods         : that come in it; cpu, memory: cores and bytes that they request together
    lasts        : seconds that its pods run, the mean
    sources      : names, of the most pods first
    services     : of its pods, as far as they are known
    groups       : names of bursts, whose pods are known by them (bursts.py)
    pod_request  : of a typical pod of it, the mean, by resource name
    priority     : the highest of its sources
    may_leave    : pods that virtual nodes may take: those that do not say they must stay
    only_outside : pods that must not stay in the cluster
    """

    start: float
    until: float
    pods: int
    cpu: float
    memory: float
    lasts: float
    sources: tuple[str, ...]
    services: frozenset[ServiceKey]
    pod_request: Mapping[str, float] = field(default_factory=dict)
    priority: int = 0
    groups: frozenset[str] = frozenset()
    may_leave: int = 0
    only_outside: int = 0


def storms(demand: Demand, threshold: float = THRESHOLD) -> list[Storm]:
    """By their start. Minutes that pass the threshold one after the other are one storm."""
    busy = np.flatnonzero(demand.arrivals >= threshold)
    if not len(busy):
        return []
    breaks = np.flatnonzero(np.diff(busy) > 1) + 1
    spans = [(int(run[0]), int(run[-1]) + 1) for run in np.split(busy, breaks)[:_MOST_STORMS]]
    edges = demand.start + _MINUTE * np.array(spans, dtype=np.float64)  # (n_storms, 2)
    parts: list[list[tuple[int, float, Source]]] = [[] for _ in spans]
    for one in demand.sources:
        if not one.counts or not len(one.times):
            continue
        for at, (first, last) in enumerate(np.searchsorted(one.times, edges).tolist()):
            if last > first:
                seconds = float(one.run_seconds[first] if last == first + 1 else one.run_seconds[first:last].mean())
                parts[at].append(((last - first) * one.pods, seconds, one))
    return [_storm(start, until, made) for (start, until), made in zip(edges.tolist(), parts, strict=True)]


def _storm(start: float, until: float, parts: list[tuple[int, float, Source]]) -> Storm:
    """parts: pods, seconds that they run, source."""
    parts.sort(key=lambda part: (-part[0], part[2].name))
    n_pods = sum(pods for pods, _, _ in parts)
    kinds = dict.fromkeys(kind for _, _, one in parts for kind in one.requests)
    total = {kind: sum(pods * one.requests.get(kind, 0.0) for pods, _, one in parts) for kind in kinds}
    place = {id(one): (one.annotations or {}).get(PLACE_ANNOTATION, "") for _, _, one in parts}
    return Storm(
        start=start,
        until=until,
        pods=n_pods,
        cpu=total.get("cpu", 0.0),
        memory=total.get("memory", 0.0),
        lasts=sum(pods * seconds for pods, seconds, _ in parts) / n_pods,
        sources=tuple(dict.fromkeys(one.name for _, _, one in parts)),
        services=frozenset(one.service for _, _, one in parts if one.service is not None),
        pod_request={kind: amount / n_pods for kind, amount in total.items()},
        priority=max(one.priority for _, _, one in parts),
        groups=frozenset(one.name for _, _, one in parts if one.service is None),
        may_leave=sum(pods for pods, _, one in parts if place[id(one)] != Place.CLUSTER.value),
        only_outside=sum(pods for pods, _, one in parts if place[id(one)] == Place.SERVERLESS.value),
    )
