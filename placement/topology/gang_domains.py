"""What is left of a gang to be placed, kind by kind, what nodes have left for it, and which domains can hold it.

Room is counted per node and summed per domain. Members of several kinds are put one kind after the other, on what
those before have left over, in all domains at once: what holds them by this count holds them. The count may miss a
way in which they would fit. So it also returns the most that fits of each kind alone: a domain that fails by that
cannot hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.columns import request_units
from kube.objects.objects import PodInfo
from placement.devices.device_demand import gpu_demand
from placement.devices.device_table import DeviceTable
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter
from placement.pods_that_fit import room_for

FiltersOf = Callable[[PodInfo], Sequence[Filter]]
"""All that the profile asks about a pod."""

_MOST_KINDS: Final = 16
"""Of one gang; those of further kinds, the smallest, are not counted: filters are asked once for each."""

_MOST_ROOM: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class MemberKind:
    """Members of a gang that are alike.

    number  : of them that are to be placed, at least 1
    room    : (n_nodes,) of them that fit on each node if nothing else lands there; 0 where filters reject it
    needs   : (n_kinds,) what each requests, in the units of `RoomOf.units`
    devices : that each takes; 0 = none are counted
    milli   : (n_nodes,) thousandths of each of these on each node, at least 1
    """

    number: int
    room: Ints
    needs: Ints
    milli: Ints
    devices: int = 0

    def on(self, nodes: Ints) -> MemberKind:
        """The same of these nodes, in this order."""
        return replace(self, room=self.room[nodes], milli=self.milli[nodes])


@dataclass(frozen=True, slots=True)
class RoomOf:
    """What nodes have left. Nodes in no particular order.

    units  : (n_nodes, n_kinds) whole units of each resource, the number of pods among them
    milli  : (n_nodes, most_devices) thousandths free of each device, -1 = there is no such device
    domain : (n_nodes,) number of the node's domain, 0..n_domains - 1
    """

    units: Ints
    milli: Ints
    domain: Ints
    n_domains: int


@dataclass(frozen=True, slots=True)
class DomainCapacity:
    """
    everything : (n_domains,) whether all members have a place there, by the count that finds one
    maybe      : (n_domains,) whether each kind alone would fit: without that there is no way
    members    : (n_domains,) how many have a place there
    size       : (n_domains,) room for the first kind: the smallest domain that holds everything is taken
    """

    everything: Bools
    maybe: Bools
    members: Ints
    size: Ints


def domain_sums_of(amounts: Ints, domain: Ints, n_domains: int) -> Ints:
    """(n_domains,) sums over the nodes of each domain."""
    sums = np.zeros(n_domains, dtype=np.int64)
    np.add.at(sums, domain, amounts)
    return sums


def held_by_domain(kinds: Sequence[MemberKind], nodes: RoomOf) -> DomainCapacity:
    """Of each domain by itself: all members are put there. kinds: the largest first."""
    if not len(nodes.domain):
        nothing = np.zeros(nodes.n_domains, dtype=np.int64)
        return DomainCapacity(nothing > 0, nothing > 0, nothing, nothing)
    order = np.argsort(nodes.domain, kind="stable")
    domain = nodes.domain[order]
    units, milli = nodes.units[order].copy(), nodes.milli[order].copy()
    first = np.searchsorted(domain, np.arange(nodes.n_domains))  # (n_domains,) where its nodes begin
    n_domains = nodes.n_domains
    members = np.zeros(n_domains, dtype=np.int64)
    maybe = np.ones(n_domains, dtype=bool)
    for one in (kind.on(order) for kind in kinds):
        alone = np.minimum(one.room, one.number)
        maybe &= domain_sums_of(alone, domain, n_domains) >= one.number
        room = np.minimum(alone, rooms_left(one, units, milli))
        before = np.cumsum(room) - room  # in all domains before, too
        base = np.append(before, 0)[first]  # (n_domains,); any value for one without nodes, which is not looked up
        taken = np.clip(one.number - (before - base[domain]), 0, room)
        _take(one, taken, units, milli)
        members += domain_sums_of(taken, domain, n_domains)
    total = sum(one.number for one in kinds)
    size = domain_sums_of(kinds[0].room[order], domain, n_domains) if kinds else members
    return DomainCapacity(members >= total, maybe, members, size)


def rooms_left(one: MemberKind, units: Ints, milli: Ints) -> Ints:
    """(n_nodes,) members of a kind that fit, by resources and devices alone."""
    room = np.full(len(units), one.number, dtype=np.int64)
    wanted = np.flatnonzero(one.needs > 0)
    if len(wanted):
        np.minimum(room, (units[:, wanted] // one.needs[wanted]).min(axis=1), out=room)
    if one.devices:
        np.minimum(room, _fitting(one, milli).sum(axis=1) // one.devices, out=room)
    return np.maximum(room, 0)


def _fitting(one: MemberKind, milli: Ints) -> Ints:
    """(n_nodes, most_devices) shares of a device that members of the kind find there; 1 = a whole one."""
    shares: Ints = milli // one.milli[:, None]
    return np.maximum(shares, 0)


def _take(one: MemberKind, members: Ints, units: Ints, milli: Ints) -> None:
    """members : (n_nodes,) of the kind that land on each node."""
    units -= members[:, None] * one.needs
    if one.devices:
        shares = _fitting(one, milli)
        before = np.cumsum(shares, axis=1) - shares
        milli -= np.clip((members * one.devices)[:, None] - before, 0, shares) * one.milli[:, None]


def kinds_of(
    pods: Sequence[PodInfo],
    view: ClusterView,
    filters_of: FiltersOf,
    devices: DeviceTable,
    *,
    asked: PodInfo | None = None,
    rows: Ints | None = None,
) -> list[MemberKind]:
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
) -> MemberKind:
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
        return MemberKind(len(pods), room, needs, np.ones(view.n_rows, dtype=np.int64))
    return MemberKind(len(pods), room, needs, devices.milli_on(demand), demand.count)


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
