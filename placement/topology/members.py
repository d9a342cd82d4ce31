"""What is left of a gang to be placed, kind by kind, and what nodes have left for it: from the tables to domains.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Ints
from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.devices.demand import gpu_demand
from placement.devices.device_table import DeviceTable
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter
from placement.pods_that_fit import room_for
from placement.topology.domains import Kind, RoomOf

FiltersOf = Callable[[PodInfo], Sequence[Filter]]
"""All that the profile asks about a pod."""

_MOST_KINDS: Final = 16
"""Of one gang; those of further kinds, the smallest, are not counted: filters are asked once for each."""

_MOST_ROOM: Final = 2**31 - 1


def kinds_of(
    pods: Sequence[PodInfo],
    view: ClusterView,
    filters_of: FiltersOf,
    devices: DeviceTable,
    *,
    asked: PodInfo | None = None,
    rows: Ints | None = None,
) -> list[Kind]:
    """The largest first; room and needs by row and resource of the tables.

    pods        : to be placed
    asked, rows : one of them for which the nodes that come into question are known already
    """
    alike: dict[Hashable, list[PodInfo]] = {}
    for pod in pods:
        alike.setdefault(_likeness(pod), []).append(pod)
    largest = sorted(alike.items(), key=lambda item: _size(item[1][0], view, devices), reverse=True)
    known = None if asked is None else _likeness(asked)
    return [
        _kind(them, view, filters_of(them[0]), devices, rows if likeness == known else None)
        for likeness, them in largest[:_MOST_KINDS]
    ]


def rooms_of(pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rows: Ints) -> Ints:
    """(n_nodes,) pods like it that fit on each of these nodes, which pass all filters; sums of them fit, too."""
    return np.clip(room_for(pod, view, filters, rows), 0, _MOST_ROOM)


def left_of_nodes(view: ClusterView, devices: DeviceTable, domain: Ints, n_domains: int, rows: Ints) -> RoomOf:
    """Of these rows. domain: (n_rows,) by row."""
    state = view.state
    units = state.allocatable_units[rows] - state.requested_units[rows]
    pods = state.kinds["pods"]
    units[:, pods] = state.allocatable_units[rows, pods] - state.pod_count[rows]
    return RoomOf(units, devices.free_milli[rows], domain[rows], n_domains)


def _kind(
    pods: Sequence[PodInfo], view: ClusterView, filters: Sequence[Filter], devices: DeviceTable, rows: Ints | None
) -> Kind:
    pod, state = pods[0], view.state
    if rows is None:
        rows = np.flatnonzero(verdict(pod, view, filters).passes)
    room = np.zeros(view.n_rows, dtype=np.int64)
    room[rows] = rooms_of(pod, view, filters, rows)
    needs = np.zeros(len(state.kinds), dtype=np.int64)
    for kind, amount in pod.requests.items():
        if (column := state.kinds.get(kind)) is not None:
            needs[column] = request_units(kind, amount)
    needs[state.kinds["pods"]] = 1
    demand = gpu_demand(pod, devices.options)
    if demand is None:
        return Kind(len(pods), room, needs, np.ones(view.n_rows, dtype=np.int64))
    return Kind(len(pods), room, needs, devices.milli_on(demand), demand.count)


def _likeness(pod: PodInfo) -> Hashable:
    """Return everything by which filters may treat members of one gang differently."""
    return (
        pod.scheduler_name,
        tuple(sorted(pod.requests.items())),
        tuple(sorted(pod.annotations.items())),
        tuple(sorted(pod.labels.items())) if pod.constraints.affects_others else (),
        pod.constraints,
        pod.host_ports,
        pod.volumes,
        pod.qos,
    )


def _size(pod: PodInfo, view: ClusterView, devices: DeviceTable) -> tuple[int, float]:
    """Thousandths of devices, then the sum of its shares of all that the cluster has."""
    demand = gpu_demand(pod, devices.options)
    state = view.state
    total = state.allocatable.sum(axis=0)
    shares = sum(
        amount / float(total[column])
        for kind, amount in pod.requests.items()
        if (column := state.kinds.get(kind)) is not None and total[column] > 0
    )
    return (0 if demand is None else demand.count * demand.milli), shares
