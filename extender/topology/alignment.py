"""Whether a pod fits into single NUMA zones of nodes: pure, for all nodes at once.

As scheduler-plugins has it (pkg/noderesourcetopology/filter.go), which follows the kubelet's policy single-numa-node:

    scope pod         all that the pod requests fits into one zone
    scope container   each container fits into one zone; those that run together take from the first that holds them

Of pods that are not Guaranteed only devices are aligned: CPU and memory of theirs come from everywhere. What no zone of
a node reports is not aligned there (upstream rejects the node then, if it is CPU or memory).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from extender.filters.node_resources_fit import NodeResourcesFit
from forecast.arrays import Bools, Ints
from scorer.cluster.columns import request_units
from scorer.cluster.objects import PodInfo, QosClass

__all__ = ["NOWHERE", "AlignedNeeds", "ZonesLeft", "aligned_needs", "container_fits", "pod_fits", "pods_in_one_zone"]

NOWHERE = 2**62
"""Left of a resource that no zone of the node reports."""

Units = Mapping[str, int]

_FIT = NodeResourcesFit()


@dataclass(frozen=True, slots=True)
class AlignedNeeds:
    """What of a pod is aligned, in whole units.

    pod      : all of it
    starting : of each init container, one after the other
    running  : of each container, together
    """

    pod: Units
    starting: tuple[Units, ...]
    running: tuple[Units, ...]

    @property
    def is_one(self) -> bool:
        """Whether one container asks for all of it."""
        return not self.starting and len(self.running) == 1


@dataclass(slots=True)
class ZonesLeft:
    """What the zones of nodes have left.

    units : (n_nodes, n_zones, n_kinds) whole units; 0 where only other zones of the node report the resource, NOWHERE
            where none does
    there : (n_nodes, n_zones) there is such a zone; by number, ascending
    kinds : column by resource name
    """

    units: Ints
    there: Bools
    kinds: Mapping[str, int]

    def row(self, needs: Units) -> Ints:
        """(n_kinds,) of these resources; those that nobody reports are left out."""
        wanted = np.zeros(self.units.shape[2], dtype=np.int64)
        for kind, amount in needs.items():
            if (column := self.kinds.get(kind)) is not None:
                wanted[column] = amount
        return wanted


def aligned_needs(pod: PodInfo) -> AlignedNeeds | None:
    """None = nothing of it is aligned."""
    keep_all = pod.qos is QosClass.GUARANTEED
    whole = _aligned(pod.requests, keep_all)
    if not whole:
        return None
    if pod.containers is None:
        return AlignedNeeds(whole, (), (whole,))
    starting, running = (
        tuple(needs for one in them if (needs := _aligned(one, keep_all)))
        for them in (pod.containers.starting, pod.containers.running)
    )
    return AlignedNeeds(whole, starting, running)


def _aligned(requests: Mapping[str, float], keep_all: bool) -> Units:
    return {
        kind: units
        for kind, amount in requests.items()
        if (keep_all or _is_device(kind)) and (units := request_units(kind, amount)) > 0
    }


@lru_cache(maxsize=1024)
def _is_device(kind: str) -> bool:
    """Extended resources; CPU, memory and huge pages are shared by pods that are not Guaranteed."""
    return "/" in kind and "kubernetes.io/" not in kind and _FIT.counts(kind)


def pod_fits(needs: AlignedNeeds, left: ZonesLeft) -> Bools:
    """(n_nodes,) scope pod."""
    return np.asarray(_fitting(left.row(needs.pod), left.units, left.there).any(axis=1))


def container_fits(needs: AlignedNeeds, left: ZonesLeft) -> Bools:
    """(n_nodes,) scope container."""
    fits = np.ones(len(left.there), dtype=bool)
    for one in needs.starting:
        fits &= _fitting(left.row(one), left.units, left.there).any(axis=1)
    if len(needs.running) == 1:
        return np.asarray(fits & _fitting(left.row(needs.running[0]), left.units, left.there).any(axis=1))
    units = left.units.copy()
    nodes = np.arange(len(units))
    for one in needs.running:
        wanted = left.row(one)
        fitting = _fitting(wanted, units, left.there)
        fits &= fitting.any(axis=1)
        units[nodes, fitting.argmax(axis=1)] -= wanted
    return fits


def pods_in_one_zone(needs: AlignedNeeds, left: ZonesLeft, is_pod_scope: Bools) -> Ints:
    """(n_nodes,) like pods that a node can be given before it says which zones they took: each may be in any of them.

    Where containers are aligned one by one: of pods of several no more than one. is_pod_scope: (n_nodes,)
    """
    wanted = left.row(needs.pod)
    asked = np.flatnonzero(wanted)
    if not len(asked):
        return np.full(len(left.there), NOWHERE, dtype=np.int64)
    pods = (left.units[:, :, asked] // wanted[asked]).min(axis=2)  # (n_nodes, n_zones)
    most = np.where(left.there, pods, 0).max(axis=1, initial=0)
    return np.asarray(most if needs.is_one else np.where(is_pod_scope, most, np.minimum(most, 1)))


def _fitting(wanted: Ints, units: Ints, there: Bools) -> Bools:
    """(n_nodes, n_zones)"""
    asked = np.flatnonzero(wanted)
    if not len(asked):
        return np.broadcast_to(np.ones(1, dtype=bool), there.shape)
    return np.asarray((units[:, :, asked] >= wanted[asked]).all(axis=2) & there)
