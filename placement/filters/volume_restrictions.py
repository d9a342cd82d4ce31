"""VolumeRestrictions: disks and ReadWriteOncePod claims that other pods use already.

Source: framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kube.objects.objects import PodInfo
from placement.cluster_events import EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_claims import claim_of, not_found, nowhere
from placement.index.storage import STORAGE_KINDS

_DISK_CONFLICT: Final = "node(s) had no available disk"
_CLAIM_CONFLICT: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions(PlainFilter):
    """GCE, AWS, iSCSI and RBD disks go to a node once, or read-only; a ReadWriteOncePod claim to one pod at all.

    Claims of ephemeral volumes are not looked at: no other pod can have them.
    """

    name = "VolumeRestrictions"
    reads = STORAGE_KINDS
    woken_by = frozenset({EventKind.STORAGE_CHANGED, EventKind.POD_LEFT, EventKind.NODE_ADDED})

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes."""
        if not pod.volumes:
            return ()
        storage, rejections = view.index.storage, list[Rejection]()
        in_use = False
        for volume in pod.volumes:
            if volume.disk or volume.is_ephemeral:
                continue
            claim = claim_of(pod, volume, view)
            if claim is None:
                return nowhere(view, not_found("persistentvolumeclaim", volume.claim))
            if "ReadWriteOncePod" in claim.access_modes:
                in_use |= storage.users.is_named((pod.namespace, volume.claim), view.state.alive)
        conflicts = np.zeros(view.n_rows, dtype=bool)
        for volume in dict.fromkeys(pod.volumes):
            if volume.disk:
                storage.disks.conflicts(volume, conflicts)
        if conflicts.any():
            rejections.append(Rejection(conflicts, _DISK_CONFLICT, preemptible=True))
        if in_use:
            rejections.append(Rejection(~conflicts, _CLAIM_CONFLICT, preemptible=True))
        return rejections

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not pod.volumes
