"""Whether the kubelet admits pods to nodes, by what their NUMA zones and physical cores have left: pure, for all
nodes at once.

Each resource that a request is aligned with hints at sets of zones with enough of it. A hint is preferred if its set
is as small as the resource allows on the empty node (pkg/kubelet/cm: generateCPUTopologyHints, calculateHints,
generateDeviceTopologyHints). The policies (pkg/kubelet/cm/topologymanager/policy*.go) admit

    single-numa-node   if one zone has enough of all
    restricted         if one set of zones is preferred by all
    best-effort, none  always; best-effort takes such a set if there is one

in scope `pod` for all that the pod requests, in scope `container` for one container after the other. Of several sets
the smallest is taken, then the one with the lowest zones. What no zone of a node reports is not aligned there.

The kubelet takes whole cores first, and single threads from cores that are in use already (takeByTopologyNUMAPacked
in pkg/kubelet/cm/cpumanager/cpu_assignment.go). So of a zone with `left` CPUs, `left mod threads` are threads of a
core that is partly in use, as long as pods leave in the order that keeps cores together. More of them cannot be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from placement.topology.aligned_needs import MILLI, AlignedNeeds, Units

NOWHERE: Final = 2**62
"""Left of a resource that no zone of the node reports."""

MOST_ZONES: Final = 8
"""Zones of a node of which sets are tried, as many as the kubelet allows by default (defaultMaxAllowableNUMANodes)."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Sets of zones, the smallest first, then the lowest.

    zones : (n_masks, n_zones) 1 = it is in the set
    size  : (n_masks,) zones in it
    """

    zones: Ints
    size: Ints


@lru_cache(maxsize=64)
def masks(n_zones: int, most: int) -> Masks:
    """All sets of at most `most` zones."""
    if most == 1:
        return Masks(np.eye(n_zones, dtype=np.int64), np.ones(n_zones, dtype=np.int64))
    bits = np.arange(1, 1 << n_zones)
    zones = (bits[:, None] >> np.arange(n_zones)) & 1
    size = zones.sum(axis=1)
    order = np.argsort(size, kind="stable")
    kept = order[size[order] <= most]
    return Masks(zones[kept], size[kept])


@dataclass(slots=True)
class ZonesLeft:
    """What the zones of nodes have left.

    units   : (n_nodes, n_zones, n_kinds) whole units; 0 where only other zones of the node report the resource, NOWHERE
              where none does. Pods whose zone is not known are taken from each
    there   : (n_nodes, n_zones) there is such a zone; by number, ascending
    kinds   : column by resource name
    total   : like `units`, of the empty zones as the kubelet counts them
    pending : (n_nodes, n_kinds) taken from each zone by pods whose zone is not known
    socket  : (n_nodes, n_zones) number of the zone's socket where zones of one socket are as good as one, else -1
    """

    units: Ints
    there: Bools
    kinds: Mapping[str, int]
    total: Ints
    pending: Ints
    socket: Ints

    def row(self, needs: Units) -> Ints:
        """(n_kinds,) of these resources; resources that no node reports are left out."""
        wanted = np.zeros(self.units.shape[2], dtype=np.int64)
        for kind, amount in needs.items():
            if (column := self.kinds.get(kind)) is not None:
                wanted[column] = amount
        return wanted

    def of(self, nodes: Ints) -> ZonesLeft:
        """Only these nodes."""
        units, there, total = self.units[nodes], self.there[nodes], self.total[nodes]
        return ZonesLeft(units, there, self.kinds, total, self.pending[nodes], self.socket[nodes])

    def reports(self, column: int) -> Bools:
        """(n_nodes,) whether a zone reports the resource."""
        return np.asarray(self.units[:, 0, column] < NOWHERE // 2)


@dataclass(frozen=True, slots=True)
class Walked:
    """
    is_aligned : (n_nodes,) every request found a set of zones that all its resources prefer
    extra      : (n_nodes,) zones that the requests take beyond the fewest that can hold them
    units      : as of ZonesLeft, afterwards
    zones      : (n_nodes, n_zones) 1 = the last request is there
    """

    is_aligned: Bools
    extra: Ints
    units: Ints
    zones: Ints


def sets_for(asked: Units, left: ZonesLeft) -> Masks:
    """Sets of at most as many zones as the request needs on any of the nodes while they are empty: those that can be
    preferred."""
    n_zones, together = left.there.shape[1], _together(left.row(asked), left.kinds)
    if (left.socket >= 0).any() or any(len(columns) > 1 for columns in together):
        return masks(n_zones, n_zones)
    most = 1
    for (column,) in together:
        known = left.there & left.reports(column)[:, None]
        largest = -np.sort(-np.where(known, left.total[:, :, column], 0), axis=1)
        holds = largest.cumsum(axis=1) >= left.row(asked)[column]  # (n_nodes, n_zones) the first n of the largest zones
        most = max(most, int(np.where(holds.any(axis=1), holds.argmax(axis=1), 0).max(initial=0)) + 1)
    return masks(n_zones, most)


def walk(requests: Sequence[Units], left: ZonesLeft, sets: Masks, held: Ints | None = None) -> Walked:
    """The requests one after the other, each from the set of zones that the kubelet takes.

    held : (n_nodes, n_zones) 1 = the first request for CPUs has to take this zone too; None = any
    """
    n_nodes = len(left.there)
    is_aligned, extra = np.ones(n_nodes, dtype=bool), np.zeros(n_nodes, dtype=np.int64)
    zones = np.zeros(left.there.shape, dtype=np.int64)
    now = ZonesLeft(left.units.copy(), left.there, left.kinds, left.total, left.pending, left.socket)
    for one in requests:
        wanted = left.row(one)
        preferred, enough, least = _hinted(wanted, now, sets)
        if held is not None and "cpu" in one:
            has_all = (held @ (1 - sets.zones.T)) == 0  # (n_nodes, n_masks)
            preferred, enough, held = preferred * has_all, enough * has_all, None
        is_preferred = (preferred > 0).any(axis=1)
        chosen = np.where(is_preferred, (preferred > 0).argmax(axis=1), (enough > 0).argmax(axis=1))
        is_aligned &= is_preferred
        beyond = np.where((enough > 0).any(axis=1), sets.size[chosen] - least, left.there.sum(axis=1))
        extra += np.where(is_preferred, 0, np.maximum(beyond, 0))
        zones = sets.zones[chosen]
        _take(wanted, now, zones)
    return Walked(is_aligned, extra, now.units, zones)


def container_fits(needs: AlignedNeeds, left: ZonesLeft, sets: Masks) -> Bools:
    """(n_nodes,) scope container: init containers leave what they had to the rest.

    Their CPUs stay with the pod. So the next container has to take their zones (reusableCPUs in
    generateCPUTopologyHints); of those after the first one that runs this is not known.
    """
    fits, held = np.ones(len(left.there), dtype=bool), np.zeros(left.there.shape, dtype=np.int64)
    for one in needs.starting:
        found = walk((one,), left, sets, held)
        fits &= found.is_aligned
        if "cpu" in one:
            held |= found.zones
    return np.asarray(fits & walk(needs.running, left, sets, held).is_aligned)


def pods_until_known(needs: AlignedNeeds, left: ZonesLeft, sets: Masks) -> Ints:
    """(n_nodes,) like pods, each aligned as a whole, that a node can be given before it says which zones they took."""
    preferred, _, _ = _hinted(left.row(needs.pod), left, sets)
    return np.asarray(preferred.max(axis=1))


def _hinted(wanted: Ints, left: ZonesLeft, sets: Masks) -> tuple[Ints, Ints, Ints]:
    """Requests like it that each set has room for, (n_nodes, n_masks): sets that every resource prefers, and all. Then
    (n_nodes,) zones that it needs at least."""
    fewest = left.there.sum(axis=1)  # (n_nodes,)
    is_there = ~(~left.there @ sets.zones.T.astype(bool))
    enough = np.where(is_there, NOWHERE, 0)  # (n_nodes, n_masks)
    is_preferred, needed = is_there, np.ones(len(fewest), dtype=np.int64)
    for columns in _together(wanted, left.kinds):
        can_ever = is_there.copy()
        concerned = np.zeros(len(fewest), dtype=bool)
        for column in columns:
            reported = left.reports(column)
            concerned |= reported
            known = reported[:, None] & left.there
            total, units = (np.where(known, of[:, :, column], 0) for of in (left.total, left.units))
            can_ever &= ~reported[:, None] | (total @ sets.zones.T >= wanted[column])
            free = units @ sets.zones.T + (sets.size - 1) * left.pending[:, column, None]
            np.minimum(enough, np.where(reported[:, None], free // wanted[column], NOWHERE), out=enough)
        least = np.where(can_ever, sets.size, fewest[:, None]).min(axis=1)  # (n_nodes,)
        preferred = sets.size == least[:, None]
        if columns == [left.kinds.get("cpu")] and (left.socket >= 0).any():
            preferred |= _is_socket_aligned(left, sets, least)
        is_preferred = is_preferred & (preferred | ~concerned[:, None])
        needed = np.where(concerned, np.maximum(needed, least), needed)
    enough = np.maximum(enough, 0)
    return np.where(is_preferred, enough, 0), enough, needed


def _together(wanted: Ints, kinds: Mapping[str, int]) -> list[list[int]]:
    """Columns that are asked for; memory and huge pages hint as one."""
    asked = {kind: column for kind, column in kinds.items() if wanted[column]}
    memory = [column for kind, column in asked.items() if kind == "memory" or kind.startswith("hugepages-")]
    return [*([memory] if memory else []), *([column] for column in asked.values() if column not in memory)]


def _is_socket_aligned(left: ZonesLeft, sets: Masks, least: Ints) -> Bools:
    """(n_nodes, n_masks) as isHintSocketAligned of pkg/kubelet/cm/cpumanager/policy_static.go."""
    numbers = np.arange(left.socket.shape[1])
    is_of = (left.socket[:, :, None] == numbers) & left.there[:, :, None]  # (n_nodes, n_zones, n_sockets)
    spanned = (np.einsum("mz,nzs->nms", sets.zones, is_of.astype(np.int64)) > 0).sum(axis=2)  # (n_nodes, n_masks)
    n_sockets = is_of.any(axis=1).sum(axis=1)
    per_socket = left.there.sum(axis=1) // np.maximum(n_sockets, 1)
    fewest = -(-least // np.maximum(per_socket, 1))
    return np.asarray((spanned == fewest[:, None]) & (n_sockets > 0)[:, None])


def _take(wanted: Ints, left: ZonesLeft, zones: Ints) -> None:
    """From zones (n_nodes, n_zones) of which 1 are taken from, the lowest first; the lowest owes what they lack."""
    lowest = zones.argmax(axis=1)
    nodes = np.arange(len(zones))
    for column in np.flatnonzero(wanted).tolist():
        rest = np.where(left.reports(column), wanted[column], 0)
        for zone in range(zones.shape[1]):
            taken = np.clip(left.units[:, zone, column], 0, rest) * zones[:, zone]
            left.units[:, zone, column] -= taken
            rest = rest - taken
        left.units[nodes, lowest, column] -= rest


def is_multiple(needs: AlignedNeeds, threads: Ints) -> Bools:
    """(n_nodes,) every container asks for whole physical cores (enforceSMTAlignment in policy_static.go).

    threads: (n_nodes,) CPUs of one physical core, at least 1
    """
    cores = np.asarray(needs.cores, dtype=np.int64)
    return np.asarray((cores % threads[:, None] == 0).all(axis=1))


def pods_in_full_cores(needs: AlignedNeeds, left: ZonesLeft, threads: Ints) -> Ints:
    """(n_nodes,) like pods for which the node has whole physical cores; threads as above."""
    column = left.kinds.get("cpu")
    if not needs.cores:
        return np.full(len(threads), NOWHERE, dtype=np.int64)
    room = np.where(is_multiple(needs, threads), NOWHERE, 0)
    if column is None:
        return room
    known = left.reports(column)
    published = np.where(left.there & known[:, None], left.units[:, :, column] + left.pending[:, column, None], 0)
    of_core = threads * MILLI
    whole = (published // of_core[:, None]).sum(axis=1) * of_core - left.pending[:, column]  # (n_nodes,)
    spare = whole - needs.cores_at_once * MILLI
    pods = np.where(spare >= 0, spare // needs.pod["cpu"] + 1, 0)
    return np.asarray(np.where(known, np.minimum(room, pods), room))


def loose_threads(units: Ints, left: ZonesLeft, threads: Ints) -> Ints:
    """(n_nodes,) threads that are left of cores in use.

    units: (n_nodes, n_zones, n_kinds) as of ZonesLeft; threads: (n_nodes,) at least 1
    """
    column = left.kinds.get("cpu")
    if column is None:
        return np.zeros(len(threads), dtype=np.int64)
    known = left.there & left.reports(column)[:, None]
    return np.asarray((np.where(known, units[:, :, column], 0) // MILLI % threads[:, None]).sum(axis=1))
