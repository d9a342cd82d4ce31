"""Which domains can hold what is left of a gang: pure.

Room is counted per node and summed per domain. Members of several kinds are put one kind after the other, on what those
before have left over, in all domains at once: what holds them by this count holds them. The count may miss a way in
which they would fit. So it also returns the most that fits of each kind alone: a domain that fails by that cannot hold
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Bools, Ints


@dataclass(frozen=True, slots=True)
class Kind:
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

    def on(self, nodes: Ints) -> Kind:
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


def held_by_domain(kinds: Sequence[Kind], nodes: RoomOf) -> DomainCapacity:
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


def rooms_left(one: Kind, units: Ints, milli: Ints) -> Ints:
    """(n_nodes,) members of a kind that fit, by resources and devices alone."""
    room = np.full(len(units), one.number, dtype=np.int64)
    wanted = np.flatnonzero(one.needs > 0)
    if len(wanted):
        np.minimum(room, (units[:, wanted] // one.needs[wanted]).min(axis=1), out=room)
    if one.devices:
        np.minimum(room, _fitting(one, milli).sum(axis=1) // one.devices, out=room)
    return np.maximum(room, 0)


def _fitting(one: Kind, milli: Ints) -> Ints:
    """(n_nodes, most_devices) shares of a device that members of the kind find there; 1 = a whole one."""
    shares: Ints = milli // one.milli[:, None]
    return np.maximum(shares, 0)


def _take(one: Kind, members: Ints, units: Ints, milli: Ints) -> None:
    """members : (n_nodes,) of the kind that land on each node."""
    units -= members[:, None] * one.needs
    if one.devices:
        shares = _fitting(one, milli)
        before = np.cumsum(shares, axis=1) - shares
        milli -= np.clip((members * one.devices)[:, None] - before, 0, shares) * one.milli[:, None]
