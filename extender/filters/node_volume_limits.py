"""NodeVolumeLimits: how many volumes of a CSI driver can be attached to a node.

Source: framework/plugins/nodevolumelimits/csi.go, with VolumeLimitScaling off as is the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.filters.filter import ClusterView, Rejection
from extender.filters.pod_claims import claim_of, not_found, nowhere, owner_mistake
from extender.index.csi_translation import AttachedVolume, disk_volume
from scorer.cluster.objects import PodInfo

__all__ = ["NodeVolumeLimits"]

_TOO_MANY: Final = "node(s) exceed max volume count"


class NodeVolumeLimits:
    """What counts are the volumes of the pods of a node and its attachments, each once; the limit is the CSINode's."""

    name = "NodeVolumeLimits"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Why the pod cannot go to which nodes."""
        if not pod.volumes:
            return ()
        storage = view.index.storage
        new: dict[str, set[AttachedVolume]] = {}
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
                attached = storage.attached_as((pod.namespace, volume.claim))
            if attached is not None:
                new.setdefault(attached[0], set()).add(attached)
        full = np.zeros(view.n_rows, dtype=bool)
        for driver, volumes in new.items():
            limits = storage.limits(driver, view.state.names)
            n_new = storage.not_attached(tuple(volumes), view.n_rows)
            full |= (n_new > 0) & (storage.attached(driver, view.state.names) + n_new > limits)
        return (Rejection(full, _TOO_MANY, preemptible=True),) if full.any() else ()
