"""VolumeBinding: volumes that are bound must be reachable from the node, those that are not must be to be had there.

Source: framework/plugins/volumebinding/volume_binding.go and binder.go, with the default feature gates. What binding
a pod's claims changes is seen by the next pod where our loops bind it (framework/volumes); else once the API server
does.

Source: findMatchingVolumes in framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import BindingMode, StorageClassInfo, VolumeClaimInfo, VolumeInfo
from placement.cluster_events import NODE_EVENTS, EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_claims import claim_of, not_found, nowhere, owner_mistake, quoted
from placement.index.csi_translation import translated_terms
from placement.index.node_labels import rows_with_labels
from placement.index.storage import STORAGE_KINDS
from placement.index.topology_pool import NONE

_NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
_BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
_NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"
_VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"

_MOST_WAITING: Final = 128
"""Claims of a pod without a volume: each costs a search over all nodes, and no node takes so many."""

_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def smallest_first(claims: Iterable[VolumeClaimInfo]) -> Sequence[VolumeClaimInfo]:
    """In the order they are to be matched."""
    return sorted(claims, key=lambda claim: claim.requested or 0.0)


class VolumeMatching:
    """One claim after the other; what one has got on a node the next does not get there.

    candidates : (n_rows,) nodes that matter
    """

    def __init__(self, view: ClusterView, candidates: Bools) -> None:
        self._view, self._candidates = view, candidates
        self._kept_taken: dict[str, Bools] = {}
        self._taken: dict[str, list[Ints]] = {}

    def match(self, claim: VolumeClaimInfo) -> Bools:
        """(n_rows,) nodes where there is a volume for the claim (FindMatchingVolume, see free_volumes.py)."""
        kept, slots = self._found(claim)
        matched = slots != NONE
        for _, nodes in kept:
            matched |= nodes
        return np.asarray(matched)

    def volume(self, claim: VolumeClaimInfo, row: int) -> str:
        """The same for one node: the name of the volume, '' = there is none."""
        kept, slots = self._found(claim)
        for name, nodes in kept:
            if nodes[row]:
                return name
        pool = self._view.index.storage.free.pool(claim.storage_class)
        return "" if pool is None or slots[row] == NONE else str(pool.names[int(slots[row])])

    def _found(self, claim: VolumeClaimInfo) -> tuple[list[tuple[str, Bools]], Ints]:
        """Volumes kept for it with the nodes (n_rows,) that reach them, and (n_rows,) slots of free ones elsewhere."""
        free, labels, n_rows = self._view.index.storage.free, self._view.index.labels, self._view.n_rows
        undecided, kept = self._candidates, []
        for volume in free.kept_for(claim):
            taken = self._kept_taken.get(volume.name, np.zeros(n_rows, dtype=bool))
            here = undecided & ~taken
            reachable = here & rows_with_labels(volume.node_terms, labels, n_rows)
            self._kept_taken[volume.name] = taken | reachable
            kept.append((volume.name, reachable))
            # A volume kept for the claim is the only one, be it out of reach.
            undecided = undecided & ~here
        pool = free.pool(claim.storage_class)
        if pool is None or not undecided.any():
            return kept, np.full(n_rows, NONE, dtype=np.int64)
        taken_before = self._taken.setdefault(claim.storage_class, [])
        slots = pool.smallest(free.suiting(pool, claim), labels, n_rows, taken_before)
        slots = np.where(undecided, slots, NONE)
        taken_before.append(slots)
        return kept, slots


class VolumeBinding(PlainFilter):
    """Evicting pods never helps: volumes stay where they are."""

    name = "VolumeBinding"
    reads = STORAGE_KINDS
    woken_by = NODE_EVENTS | {EventKind.STORAGE_CHANGED}

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes."""
        bound: dict[str, VolumeClaimInfo] = {}
        waiting: list[tuple[VolumeClaimInfo, StorageClassInfo]] = []
        immediate = False
        for volume in pod.volumes:
            if volume.disk:
                continue
            claim = claim_of(pod, volume, view)
            if claim is None:
                return nowhere(view, _missing_reason(volume.claim, is_ephemeral=volume.is_ephemeral))
            if reason := _unusable_reason(pod, claim, is_ephemeral=volume.is_ephemeral):
                return nowhere(view, reason)
            storage_class = view.index.storage.classes.get(claim.storage_class)
            if claim.is_bound:
                bound[claim.name] = claim
            elif storage_class is None or not is_waiting(claim, storage_class):
                immediate = True
            elif storage_class.binding_mode is None:
                return nowhere(view, f"VolumeBindingMode not set for StorageClass {quoted(claim.storage_class)}")
            else:
                waiting.append((claim, storage_class))
        if immediate:
            return nowhere(view, _UNBOUND_IMMEDIATE)
        if len(waiting) > _MOST_WAITING:
            return nowhere(view, f"pod has more than {_MOST_WAITING} unbound PersistentVolumeClaims")
        found = _Found(view.n_rows)
        if bound:
            _check_bound(bound.values(), view, found)
        if waiting:
            _find_or_provision(waiting, view, found)
        return found.rejections()

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not pod.volumes


def is_waiting(claim: VolumeClaimInfo, storage_class: StorageClassInfo | None) -> bool:
    """Whether a claim gets its volume once a pod that uses it has a node."""
    # A volume that is named but not bound yet is for the controller to bind.
    is_immediate = storage_class is None or storage_class.binding_mode is BindingMode.IMMEDIATE
    return not (claim.is_bound or claim.volume or is_immediate)


@dataclass(slots=True)
class _Found:
    """(n_rows,) each: nodes rejected, by reason."""

    n_rows: int
    rejected: dict[str, Bools] = field(default_factory=dict)

    def reject(self, nodes: Bools, reason: str) -> None:
        before = self.rejected.get(reason)
        self.rejected[reason] = nodes if before is None else before | nodes

    def rejections(self) -> list[Rejection]:
        return [
            Rejection(self.rejected[reason], reason, preemptible=False)
            for reason in (_NODE_CONFLICT, _BIND_CONFLICT, _NOT_ENOUGH_SPACE, _VOLUME_MISSING)
            if reason in self.rejected and self.rejected[reason].any()
        ]


def _missing_reason(claim: str, *, is_ephemeral: bool) -> str:
    if is_ephemeral:
        return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quoted(claim)}"
    return not_found("persistentvolumeclaim", claim)


def _unusable_reason(pod: PodInfo, claim: VolumeClaimInfo, *, is_ephemeral: bool) -> str:
    """podHasPVCs in volume_binding.go; '' = it can be used."""
    if claim.is_lost:
        return (
            f"persistentvolumeclaim {quoted(claim.name)} bound to non-existent persistentvolume {quoted(claim.volume)}"
        )
    if claim.terminating:
        return f"persistentvolumeclaim {quoted(claim.name)} is being deleted"
    return owner_mistake(pod, claim) if is_ephemeral else ""


def _check_bound(claims: Iterable[VolumeClaimInfo], view: ClusterView, found: _Found) -> None:
    """checkBoundClaims in binder.go: the first claim that fails gives the reason."""
    undecided = np.ones(view.n_rows, dtype=bool)
    for claim in claims:
        volume = view.index.storage.volumes.get(claim.volume)
        if volume is None:
            found.reject(undecided, _VOLUME_MISSING)
            return
        near = reachable(volume, view)
        found.reject(undecided & ~near, _NODE_CONFLICT)
        undecided &= near


def reachable(volume: VolumeInfo, view: ClusterView) -> Bools:
    """(n_rows,) nodes from which a bound volume can be reached; where its plugin is migrated, by the driver's terms."""
    labels, n_rows = view.index.labels, view.n_rows
    near = rows_with_labels(volume.node_terms, labels, n_rows)
    if (terms := translated_terms(volume)) != volume.node_terms:
        migrated = view.index.storage.migrated(volume.source.plugin, view.state.names)
        if migrated.any():
            near = np.where(migrated, rows_with_labels(terms, labels, n_rows), near)
    return near


def _find_or_provision(
    waiting: Sequence[tuple[VolumeClaimInfo, StorageClassInfo]], view: ClusterView, found: _Found
) -> None:
    """FindPodVolumes in binder.go: free volumes first, smaller claims first; what is left is to be provisioned."""
    n_rows = view.n_rows
    candidates = np.ones(n_rows, dtype=bool)
    to_provision: list[tuple[VolumeClaimInfo, StorageClassInfo, Bools]] = []
    to_match: list[tuple[VolumeClaimInfo, StorageClassInfo]] = []
    for claim, storage_class in waiting:
        if claim.selected_node is None:
            to_match.append((claim, storage_class))
            continue
        row = view.state.row_of.get(claim.selected_node)
        only = np.zeros(n_rows, dtype=bool)
        if row is not None:
            only[row] = True
        candidates &= only
        to_provision.append((claim, storage_class, only))
    found.reject(~candidates, _BIND_CONFLICT)
    matching = VolumeMatching(view, candidates)
    class_of = {claim.name: storage_class for claim, storage_class in to_match}
    in_order = smallest_first(claim for claim, _ in to_match)
    to_provision += [(claim, class_of[claim.name], ~matching.match(claim)) for claim in in_order]
    undecided = candidates
    for claim, storage_class, nodes in to_provision:
        wanting = undecided & nodes
        if not wanting.any():
            continue
        can = _provisions(storage_class, view)
        has_room = _has_room(claim, storage_class, view)
        can = can & ~_failed_before(claim, wanting & can & has_room, view)
        found.reject(wanting & ~can, _BIND_CONFLICT)
        found.reject(wanting & can & ~has_room, _NOT_ENOUGH_SPACE)
        undecided = undecided & ~(wanting & ~(can & has_room))


def _failed_before(claim: VolumeClaimInfo, possible: Bools, view: ClusterView) -> Bools:
    """(n_rows,) nodes where making its volume failed lately, as long as there are others among `possible` (n_rows,)."""
    failed = np.zeros(view.n_rows, dtype=bool)
    for name in view.index.storage.failures.nodes(claim.uid):
        if (row := view.state.row_of.get(name)) is not None:
            failed[row] = True
    return failed if (possible & ~failed).any() else np.zeros_like(failed)


def _provisions(storage_class: StorageClassInfo, view: ClusterView) -> Bools:
    """(n_rows,) nodes for which the class makes volumes."""
    if storage_class.provisioner in ("", _NO_PROVISIONER):
        return np.zeros(view.n_rows, dtype=bool)
    return rows_with_labels(storage_class.allowed_topologies or None, view.index.labels, view.n_rows)


def _has_room(claim: VolumeClaimInfo, storage_class: StorageClassInfo, view: ClusterView) -> Bools:
    """(n_rows,) nodes that reach enough storage, as far as the driver says (hasEnoughCapacity in binder.go)."""
    storage = view.index.storage
    driver = storage.drivers.get(storage_class.provisioner)
    if claim.requested is None or driver is None or not driver.reports_capacity:
        return np.ones(view.n_rows, dtype=bool)
    room = storage.room(storage_class.name)
    enough = room.with_amount(math.ceil(claim.requested))
    return np.asarray(room.smallest(enough, view.index.labels, view.n_rows) != NONE)
