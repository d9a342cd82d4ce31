"""VolumeZone: zone and region labels of bound volumes against those of nodes.

Source: framework/plugins/volumezone/volume_zone.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import Operator, Requirement
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import BindingMode, VolumeClaimInfo, VolumeInfo
from placement.cluster_events import NODE_EVENTS, EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_claims import claim_of, not_found, nowhere, quoted
from placement.index.node_labels import ABSENT, rows_meeting
from placement.index.storage import STORAGE_KINDS

_CONFLICT: Final = "node(s) had no available volume zone"

_GENERAL_LABEL: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels that are compared, and the one that a node may have instead."""


class VolumeZone(PlainFilter):
    """A volume of a zone goes only to nodes of that zone; nodes without any such label take all volumes."""

    name = "VolumeZone"
    reads = STORAGE_KINDS
    woken_by = NODE_EVENTS | {EventKind.STORAGE_CHANGED}

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes."""
        if not pod.volumes:
            return ()
        required: list[tuple[str, tuple[str, ...]]] = []
        for volume in pod.volumes:
            if volume.disk or volume.is_ephemeral:
                continue
            claim = claim_of(pod, volume, view)
            if claim is None:
                return nowhere(view, not_found("persistentvolumeclaim", volume.claim))
            if not claim.volume:
                if reason := _unbound_reason(claim, view):
                    return nowhere(view, reason)
                continue
            persistent = view.index.storage.volumes.get(claim.volume)
            if persistent is None:
                return nowhere(view, not_found("persistentvolume", claim.volume))
            required += _topologies(persistent)
        if not required:
            return ()
        rejected = ~_all_meet(required, view) & _labelled(view)
        return (Rejection(rejected, _CONFLICT, preemptible=False),) if rejected.any() else ()

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not pod.volumes


def _unbound_reason(claim: VolumeClaimInfo, view: ClusterView) -> str:
    """Why a claim without a volume cannot be used; '' = it waits for the pod, as it may."""
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = view.index.storage.classes.get(claim.storage_class)
    if storage_class is None:
        return not_found("storageclass.storage.k8s.io", claim.storage_class)
    if storage_class.binding_mode is None:
        return f"VolumeBindingMode not set for StorageClass {quoted(claim.storage_class)}"
    if storage_class.binding_mode is BindingMode.WAIT_FOR_FIRST_CONSUMER:
        return ""
    return "PersistentVolume had no name"


def _topologies(volume: VolumeInfo) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Labels of a volume and their values: zones of a volume that is in several are parted by two underscores."""
    for key in _GENERAL_LABEL:
        if (value := volume.labels.get(key)) is not None:
            zones = tuple(zone.strip() for zone in value.split("__"))
            if all(zones):
                yield key, zones


def _all_meet(required: Sequence[tuple[str, tuple[str, ...]]], view: ClusterView) -> Bools:
    labels, n_rows = view.index.labels, view.n_rows
    met = np.ones(n_rows, dtype=bool)
    for key, zones in set(required):
        here = rows_meeting((Requirement(key, Operator.IN, zones),), labels, n_rows)
        general = _GENERAL_LABEL[key]
        if general != key:
            instead = rows_meeting((Requirement(general, Operator.IN, zones),), labels, n_rows)
            here |= instead & (labels.column(key).values == ABSENT)
        met &= here
    return met


def _labelled(view: ClusterView) -> Bools:
    """(n_rows,) nodes that have one of the labels."""
    found = np.zeros(view.n_rows, dtype=bool)
    for key in _GENERAL_LABEL:
        found |= view.index.labels.column(key).values != ABSENT
    return found
