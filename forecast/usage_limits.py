"""What pods can use at most: what their node's own usage leaves, and what the node has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES

TOLERANCE: Final = {CPU: 1.5, MEMORY: 1.5, DISK: 3.0, NETWORK: 10.0, LOG: 3.0}
"""Factors on a node's usage. On the sample, all pods together reach 0.998 of it. Disk and log wait in caches. Traffic
between pods of one node passes no card of the node."""

FLOOR: Final = 0.02
"""Of the capacity, or else of what nodes typically use at most: a node at rest is measured too roughly for a factor."""

_BUSY_TOLERANCE: Final = 1.5
"""Factor on a node's usage where claims pass its capacity, if that is known: ten times a busy node is no use."""

_LYING_SHARE: Final = 0.02
_FEWEST_LIES: Final = 4

_FEWEST_NODES: Final = 2
"""Nodes from which on a service beyond its nodes, in that share of its half hours, is not believed for the rest of the
day. What is left of a lie between two cuts looks honest: trained on, it took a node to six times its capacity. Where
all half hours are of one node, and the service runs on others too, only those count that no other service is cut in: a
node may measure too little of itself.
"""

FLEET_FACTOR: Final = 1000.0
"""A node without a known capacity uses at most this many times the median of what nodes use in their highest half hour.
Of 318 real machines (Bitbrains), the highest half hour of all is 333 times that in disk, 268 times in network. It is
tens of thousands of times the median half hour, since most machines are idle most of the time."""

LARGEST: Final = np.array([1e6 if resource.unit == "cores" else 1e15 for resource in RESOURCES])
"""More of a resource than any machine has: for pods of clusters of which no capacity is known."""


@dataclass(frozen=True, slots=True)
class CutSeries:
    """What was cut of one service on one node.

    slots : half hours cut
    ratio : the most that the service claimed there, divided by the node's own usage; inf = the node used nothing
    """

    service: int
    node: int
    resource: int
    slots: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Excess:
    """Services beyond their node in single half hours of a day; each array is (n_cells,)."""

    service: Ints
    node: Ints
    resource: Ints
    slot: Ints
    ratio: Floats


def typical_peaks(node_usage: Floats32) -> Floats:
    """Median over nodes of their highest half hour, of those that use a resource: (n_resources,), 0 = no node uses it.

    node_usage : (n_nodes, n_resources, n_days, 48), NaN = not measured
    """
    typical = np.zeros(len(RESOURCES))
    for r in range(len(RESOURCES)):
        highest = np.fmax.reduce(node_usage[:, r], axis=(1, 2))  # (n_nodes,)
        used = highest[highest > 0]
        typical[r] = np.median(used) if len(used) else 0.0
    return typical


def fleet_limits(typical: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """The most that a node can use without a known capacity, and the floor of every node: (n_nodes, n_resources) each.

    typical  : from `typical_peaks`. The limit is inf where nothing is known
    capacity : (n_nodes, n_resources) of the day that is judged
    """
    unknown = ~np.isfinite(capacity)
    limit = np.where(unknown & (typical > 0), FLEET_FACTOR * typical, np.inf)
    return limit, FLOOR * np.where(unknown, typical, capacity)


def most_of_nodes(capacity: Floats, assumed: Bools, largest: float) -> tuple[Floats, Floats]:
    """The most that each node, (n_nodes, n_resources), and one pod on any of them, (n_resources,), can use by physics.

    capacity : (n_nodes, n_resources), NaN = unknown: such a node has `FLEET_FACTOR` x the median of the known ones
    assumed  : (n_nodes, n_resources) learned rather than known: the node may have as much as its pods can hold
    largest  : where no node has a known capacity
    """
    factor = FLOOR + np.array([TOLERANCE[r] for r in range(len(RESOURCES))])
    node, pod = np.full(capacity.shape, largest), np.full(len(RESOURCES), largest)
    for r in range(len(RESOURCES)):
        known = np.isfinite(capacity[:, r])
        if known.any():
            typical = float(np.median(capacity[known, r]))
            node[:, r] = np.where(known, capacity[:, r] * factor[r], FLEET_FACTOR * typical)
            pod[r] = max(float(node[known, r].max()), 0.0 if known.all() else FLEET_FACTOR * typical)
    return node, pod


def services_beyond(
    usage: Floats,
    present: Floats,
    node: Ints,
    service: Ints,
    node_usage: Floats32,
    capacity: Floats,
    floor: Floats,
    limit: Floats,
) -> tuple[Bools, Excess]:
    """Which values of pods are cut on one day, (n_pods, n_resources, 48), and of which services they are.

    usage, present, node : of the pods, see `forecast.aggregation.PodWindow`, one day
    service              : (n_pods,)
    node_usage           : (n_nodes, n_resources, 48); NaN = not measured: then `limit` alone holds
    capacity             : (n_nodes, n_resources) on that day, NaN = unknown
    floor, limit         : from `fleet_limits`
    """
    cut = np.zeros(usage.shape, dtype=np.bool_)
    found: list[Excess] = []
    n_nodes = len(node_usage)
    pod, slot = np.nonzero((node >= 0) & (present > 0))
    where = node[pod, slot].astype(np.int64)
    cell, owner = where * SLOTS_PER_DAY + slot, service[pod]
    for r, tolerance in TOLERANCE.items():
        values = np.nan_to_num(usage[pod, r, slot] * present[pod, slot])
        own = node_usage[:, r].astype(np.float64)  # (n_nodes, 48)
        by_node = np.fmin(tolerance * own, np.maximum(_BUSY_TOLERANCE * own, capacity[:, r, None]))  # NaN is no limit
        most = np.where(np.isfinite(own), by_node + floor[:, r, None], limit[:, r, None]).ravel()
        beyond = np.bincount(cell, weights=values, minlength=n_nodes * SLOTS_PER_DAY) > most
        suspect = np.flatnonzero(beyond[cell])
        if not len(suspect):
            continue
        n_services = int(service.max()) + 1
        key, _, total = _summed(cell[suspect] * n_services + owner[suspect], values[suspect])
        cells = key // n_services
        order = np.lexsort((total, cells))  # the smallest service of each cell first
        running = np.cumsum(total[order])
        begins = np.flatnonzero(np.diff(cells[order], prepend=-1))
        before = np.repeat(running[begins] - total[order][begins], np.diff(begins, append=len(order)))
        cut_keys = key[order][running - before > most[cells[order]]]
        named = np.zeros(n_services, dtype=np.bool_)
        named[cut_keys % n_services] = True
        of_named = np.flatnonzero(named[owner])
        key, member, total = _summed(cell[of_named] * n_services + owner[of_named], values[of_named])
        gone = _lying(key, cut_keys, n_services)[key % n_services] | np.isin(key, cut_keys)
        of_pods = of_named[gone[member]]
        cut[pod[of_pods], r, slot[of_pods]] = True
        cells, services = np.divmod(key[gone], n_services)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(total[gone] / own.ravel()[cells], nan=np.inf, posinf=np.inf)
        found.append(
            Excess(services, cells // SLOTS_PER_DAY, np.full(len(cells), r), cells % SLOTS_PER_DAY, np.asarray(ratio))
        )
    return cut, _joined(found)


def fold(found: list[Excess]) -> tuple[CutSeries, ...]:
    """One entry for each service, node and resource, the most often cut first."""
    if not found:
        return ()
    together = _joined(found)
    keys = np.stack([together.service, together.node, together.resource], axis=1)
    group, member, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    most = np.zeros(len(group))
    np.maximum.at(most, member.ravel(), together.ratio)
    rows = [
        CutSeries(service, node, resource, slots, ratio)
        for (service, node, resource), slots, ratio in zip(group.tolist(), count.tolist(), most.tolist(), strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row.slots))


def _summed(key: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """The keys that occur, ascending, the position of each value's key among them, and the sum of each key."""
    keys, member = np.unique(key, return_inverse=True)
    return keys, member, np.asarray(np.bincount(member, weights=values, minlength=len(keys)), dtype=np.float64)


def _lying(there: Ints, beyond: Ints, n_services: int) -> Bools:
    """Which services are not believed for the rest of the day: (n_services,).

    there, beyond : keys (cell * n_services + service) where the services have pods, and where they are cut
    """

    def counts(keys: Ints) -> tuple[Ints, Ints]:
        cells, services = np.divmod(keys, n_services)
        on_nodes = np.unique(cells // SLOTS_PER_DAY * n_services + services) % n_services
        return np.bincount(services, minlength=n_services), np.bincount(on_nodes, minlength=n_services)

    _, member, n_cut = np.unique(beyond // n_services, return_inverse=True, return_counts=True)
    (slots, nodes), (slots_beyond, nodes_beyond) = counts(there), counts(beyond)
    slots_alone, _ = counts(beyond[n_cut[member] == 1])
    enough = np.maximum(_LYING_SHARE * slots, _FEWEST_LIES)
    on_nodes = nodes_beyond >= np.minimum(nodes, _FEWEST_NODES)
    return np.asarray((slots_alone >= enough) | ((slots_beyond >= enough) & on_nodes))


def _joined(parts: list[Excess]) -> Excess:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Excess(none, none, none, none, np.zeros(0))
    return Excess(
        np.concatenate([part.service for part in parts]),
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.resource for part in parts]),
        np.concatenate([part.slot for part in parts]),
        np.concatenate([part.ratio for part in parts]),
    )


def largest_node(capacity: AnyFloats, otherwise: AnyFloats = LARGEST) -> Floats:
    """The most of each resource that a node has: (n_resources,), finite.

    capacity  : (n_nodes, n_resources), NaN = unknown
    otherwise : (n_resources,) of a resource that is known of no node
    """
    most = np.fmax.reduce(capacity, axis=0, initial=np.nan)
    return np.where(np.isfinite(most), most, otherwise)


def bounded_by_nodes(requests: Floats, capacity: Floats, node: Ints | None = None) -> Floats:
    """Requests as far as a node can serve them: (n_pods, n_resources), NaN as they were.

    requests : (n_pods, n_resources)
    capacity : (n_nodes, n_resources), NaN = unknown
    node     : (n_pods,) row of the pod's node, -1 = none; None = none is known. Such a pod may have the largest node
    """
    most = np.broadcast_to(largest_node(capacity, LARGEST[: capacity.shape[1]]), requests.shape)
    if node is not None and len(capacity):
        own = np.where((node >= 0)[:, None], capacity[node], np.nan)
        most = np.where(np.isfinite(own), own, most)
    return np.minimum(requests, most)
