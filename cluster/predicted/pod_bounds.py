"""What a pod declares to use, and the most that it can: what its node has, or the largest node where it has none."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import AnyFloats
from base.errors import InputError
from cluster.predicted.node_capacity import amounts_in
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.usage_limits import LARGEST, largest_node
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

# What a pod declares to use: its annotation forecast-scheduler.io/virtual-request, {"cpu": "800m", "network": "20M"}.
#
# Any client may write any annotation: amounts are limited by LARGEST here and by the pod's node where they are used
# (pod_bounds.py), and an unreadable one counts as none (`live.virtual_request` says so to people).

VIRTUAL_REQUEST_ANNOTATION = ANNOTATION_PREFIX + "virtual-request"

DeclaredAmounts = tuple[tuple[int, float], ...]
"""(position in RESOURCES, base units) of each resource that is named, by position."""

Most = tuple[float, ...]
"""(n_resources,) base units, finite."""

NO_NODE: Final[Most] = tuple(LARGEST.tolist())
"""Of a pod in a cluster of which nothing is known."""

_UNKNOWN: Final = np.full(len(LARGEST), math.inf)


def declared_amounts(pod: PodInfo) -> DeclaredAmounts:
    """The amounts that the pod declares; empty without an annotation that can be read."""
    annotation = pod.annotations.get(VIRTUAL_REQUEST_ANNOTATION)
    return () if annotation is None else _parsed(annotation)


@lru_cache(maxsize=1024)
def _parsed(annotation: str) -> DeclaredAmounts:
    try:
        said = amounts_in(annotation)
    except InputError:
        return ()
    return tuple(
        (r, float(np.minimum(said[one.name], LARGEST[r]))) for r, one in enumerate(RESOURCES) if one.name in said
    )


class PodBounds:
    """Capacities by row of the cluster state, kept for a look-up by each pod."""

    def __init__(self) -> None:
        self._rows: dict[int, Most] = {}  # infinite = unknown
        self._highest, self._largest = tuple(_UNKNOWN.tolist()), NO_NODE  # of all rows, without and with a bound

    def put(self, row: int, capacity: AnyFloats) -> bool:
        """Keep what a node has, NaN = unknown; whether that is news."""
        known = tuple(np.where(np.isfinite(capacity), capacity, math.inf).tolist())
        before = self._rows.get(row)
        if before == known:
            return False
        self._rows[row] = known
        # Thousands of nodes come at the start: all are looked at again only where one may have been the largest.
        if before is not None:
            self._look_for_largest(self._rows.values())
        else:
            self._look_for_largest((self._highest, known))
        return True

    def clear(self, row: int) -> None:
        """The node is gone."""
        if self._rows.pop(row, None) is not None:
            self._look_for_largest(self._rows.values())

    def of(self, row: int | None) -> Most:
        """Of a pod on the node of a row; None = it waits."""
        known = None if row is None else self._rows.get(row)
        if known is None:
            return self._largest
        if math.inf not in known:
            return known
        return tuple(one if one < math.inf else most for one, most in zip(known, self._largest, strict=True))

    def _look_for_largest(self, among: Collection[Most]) -> None:
        known = np.array(list(among)).reshape(-1, len(LARGEST))
        known = np.where(np.isfinite(known), known, np.nan)
        self._highest = tuple(largest_node(known, _UNKNOWN).tolist())
        self._largest = tuple(largest_node(known).tolist())


def bounded_requests(requests: Mapping[str, float], most: Most) -> tuple[float, float]:
    """Cores and bytes that a pod requests, as far as it can use them."""
    cpu, memory = RESOURCES[CPU].name, RESOURCES[MEMORY].name
    return min(requests.get(cpu, 0.0), most[CPU]), min(requests.get(memory, 0.0), most[MEMORY])


def bounded_amounts(declared: DeclaredAmounts, most: Most) -> DeclaredAmounts:
    """The amounts that a pod declares, as far as it can use them."""
    if all(amount <= most[resource] for resource, amount in declared):
        return declared
    return tuple((resource, min(amount, most[resource])) for resource, amount in declared)


def beyond(pod: PodInfo, most: Most) -> bool:
    """Whether the pod requests or declares more than it can use."""
    requests = bounded_requests(pod.requests, most)
    if requests[0] < pod.requests.get("cpu", 0.0) or requests[1] < pod.requests.get("memory", 0.0):
        return True
    declared = declared_amounts(pod)
    return bounded_amounts(declared, most) is not declared
