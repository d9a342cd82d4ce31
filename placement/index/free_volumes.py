"""PersistentVolumes that claims may still get, and nodes for which the volume of a claim could not be made.

Source: FindMatchingVolume in component-helpers/storage/volume/pv_helpers.go. Among free volumes of the same size
kube-scheduler takes any; here it is the one that became free first.

A provisioner that gives up takes the chosen node off the claim, and says no more. The same node would be chosen
again, as the best one, and the pod wait for ever while other nodes could have it: for a while such nodes come last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.labels import selector_matches
from kube.objects.storage_objects import VolumeClaimInfo, VolumeInfo
from placement.index.topology_pool import TopologyPool

_Category = tuple[str, str, frozenset[str]]

_SECONDS: Final = 240.0
"""Shorter than the five minutes after which pods that wait are looked at again in any case."""

_MOST_CLAIMS: Final = 10_000

_MOST_NODES: Final = 1_000
"""Nodes that are remembered of one claim; the oldest goes first."""


class FreeVolumes:
    """Follows the PersistentVolumes that it receives."""

    def __init__(self) -> None:
        self._pools: dict[str, TopologyPool] = {}
        self._kept: dict[tuple[str, str, str], dict[str, VolumeInfo]] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._categories: dict[_Category, int] = {}

    def put(self, volume: VolumeInfo) -> None:
        """A volume is new; what it was before must have been deleted."""
        if volume.terminating:
            return
        if volume.claim is not None:
            key = (volume.storage_class, volume.claim.namespace, volume.claim.name)
            self._kept.setdefault(key, {})[volume.name] = volume
        elif volume.is_available:
            category = (volume.mode, volume.attributes_class, volume.access_modes)
            number = self._categories.setdefault(category, len(self._categories))
            pool = self._pools.setdefault(volume.storage_class, TopologyPool())
            pool.put(volume.name, volume.capacity, volume.node_terms, category=number)
            self._labels[volume.name] = volume.labels

    def delete(self, volume: VolumeInfo) -> None:
        """A volume, as it was put, is gone."""
        if volume.claim is not None:
            key = (volume.storage_class, volume.claim.namespace, volume.claim.name)
            kept = self._kept.get(key, {})
            kept.pop(volume.name, None)
            if not kept:
                self._kept.pop(key, None)
        elif self._labels.pop(volume.name, None) is not None:
            pool = self._pools[volume.storage_class]
            pool.delete(volume.name)
            if not pool:
                del self._pools[volume.storage_class]

    def is_empty(self) -> bool:
        """Whether no volume is left."""
        return not (self._pools or self._kept or self._labels)

    def kept_for(self, claim: VolumeClaimInfo) -> Iterable[VolumeInfo]:
        """Volumes of its class that name the claim and would do, by name."""
        kept = self._kept.get((claim.storage_class, claim.namespace, claim.name))
        return sorted(
            (
                volume
                for volume in (kept or {}).values()
                if volume.claim is not None
                and volume.claim.uid in ("", claim.uid)
                and volume.capacity >= (claim.requested or 0.0)
                and (volume.mode, volume.attributes_class) == (claim.mode, claim.attributes_class)
            ),
            key=lambda volume: volume.name,
        )

    def pool(self, storage_class: str) -> TopologyPool | None:
        """Free volumes of a class; None = there are none."""
        return self._pools.get(storage_class)

    def suiting(self, pool: TopologyPool, claim: VolumeClaimInfo) -> Bools:
        """(n_slots,) volumes of a pool that would do for a claim."""
        table = np.fromiter(
            (
                (mode, attributes) == (claim.mode, claim.attributes_class) and modes >= claim.access_modes
                for mode, attributes, modes in self._categories
            ),
            dtype=bool,
            count=len(self._categories),
        )
        suiting = pool.with_amount(claim.requested or 0.0) & table[pool.categories]
        if claim.selector is not None:
            for slot in np.flatnonzero(suiting):
                suiting[slot] = selector_matches(claim.selector, self._labels[str(pool.names[slot])])
        return np.asarray(suiting)


class ProvisioningFailures:
    """Under the lock of the tables. seconds: how long a failure counts; clock: seconds."""

    def __init__(self, *, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._of: dict[str, dict[str, float]] = {}  # by UID of the claim: until when, by node; the latest last

    def add(self, claim_uid: str, node: str) -> None:
        """It failed just now."""
        nodes = self._of.pop(claim_uid, {})
        nodes.pop(node, None)
        nodes[node] = self._clock() + self._seconds
        while len(nodes) > _MOST_NODES:
            del nodes[next(iter(nodes))]
        self._of[claim_uid] = nodes
        while len(self._of) > _MOST_CLAIMS or self._is_over(next(iter(self._of))):
            del self._of[next(iter(self._of))]

    def nodes(self, claim_uid: str) -> Collection[str]:
        """Where it failed lately."""
        now = self._clock()
        # A clock that was set back makes no failure count for longer.
        return [node for node, until in self._of.get(claim_uid, {}).items() if 0 < until - now <= self._seconds]

    def _is_over(self, claim_uid: str) -> bool:
        return max(self._of[claim_uid].values()) <= self._clock()
