"""NodeVolumeLimits: how many volumes of a CSI driver can be attached to a node, and whether the node has the driver.

Source: framework/plugins/nodevolumelimits/csi.go of Kubernetes 1.37. The gate VolumeLimitScaling is not asked for: the
API server drops the field by which a driver opts in where the gate is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_claims import claim_of, not_found, nowhere, owner_mistake
from placement.filters.rejections import found
from placement.index.csi_translation import CSI, MIGRATED, AttachedVolume, disk_volume
from placement.index.storage import STORAGE_KINDS, ClaimKey, Storage

_TOO_MANY: Final = "node(s) exceed max volume count"


class NodeVolumeLimits(PlainFilter):
    """What counts are the volumes of the pods of a node and its attachments, each once; the limit is the CSINode's."""

    name = "NodeVolumeLimits"
    reads = STORAGE_KINDS
    woken_by = frozenset({EventKind.STORAGE_CHANGED, EventKind.POD_LEFT, EventKind.NODE_ADDED, EventKind.POD_BOUND})

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes."""
        if not pod.volumes:
            return ()
        storage = view.index.storage
        new: dict[str, set[AttachedVolume]] = {}
        native: set[str] = set()  # drivers of volumes that are not translated
        for volume in pod.volumes:
            if volume.disk:
                attached = disk_volume(volume.disk)
            else:
                claim = claim_of(pod, volume, view)
                if claim is None:
                    missing = not_found("persistentvolumeclaim", volume.claim)
                    return nowhere(view, f"looking up PVC {pod.namespace}/{volume.claim}: {missing}")
                if volume.is_ephemeral and (mistake := owner_mistake(pod, claim)):
                    return nowhere(view, mistake)
                key = (pod.namespace, volume.claim)
                attached = storage.attached_as(key)
                if attached is not None and _is_native(storage, key):
                    native.add(attached[0])
            if attached is not None:
                new.setdefault(attached[0], set()).add(attached)
        full, without = np.zeros(view.n_rows, dtype=bool), np.zeros(view.n_rows, dtype=bool)
        rejections: list[Rejection] = []
        for driver in sorted(new):
            lacks = storage.lacks(driver, view.state.names, native=driver in native) & ~without
            rejections += found(lacks, view, f"{driver} CSI driver is not installed on the node", preemptible=True)
            without |= lacks
        for driver, volumes in new.items():
            limits = storage.limits(driver, view.state.names)
            n_new = storage.not_attached(tuple(volumes), view.n_rows)
            full |= (n_new > 0) & (storage.attached(driver, view.state.names) + n_new > limits)
        return [*rejections, *found(full & ~without, view, _TOO_MANY, preemptible=True)]

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A volume of the pod that is in use on a node already needs no attachment there."""
        return Hint.of(event.kind is not EventKind.POD_BOUND or event.pod is None or bool(event.pod.volumes))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not pod.volumes


def _is_native(storage: Storage, key: ClaimKey) -> bool:
    """Whether the volume of a claim names its CSI driver itself; a translated one counts only beside a CSINode."""
    claim = storage.claims[key]
    volume = storage.volumes.get(claim.volume) if claim.volume else None
    if volume is not None:
        return volume.source.plugin == CSI
    return storage.classes[claim.storage_class].provisioner not in MIGRATED
