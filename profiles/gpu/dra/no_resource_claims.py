"""Filter NoResourceClaims, of profiles that do not allocate devices: pods that wait for some are not placed blindly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, Hint
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import every_node, found
from profiles.gpu.dra.extended_resources import backed_kinds, extended_claims

_REASON: Final = "pods with ResourceClaims are placed by the gpu profile"


class NoResourceClaims(NodeFilter):
    """Unresolvable: it does not depend on what other pods have."""

    name = "NoResourceClaims"

    def __init__(self, class_resources: Mapping[str, str] | None = None) -> None:
        """class_resources: name of the DeviceClass by extended resource, of those that have one; may change."""
        self._class_resources = {} if class_resources is None else class_resources

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod's claims never change, what a device plugin offers may."""
        return Hint.QUEUE

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """All nodes for claims; for extended resources those where a DRA driver would have to offer them."""
        if pod.resource_claims:
            return every_node(view, _REASON)
        kinds = backed_kinds(pod, self._class_resources)
        if not kinds:
            return ()
        reason = f"{', '.join(kinds)} of DeviceClasses: such pods are placed by the gpu profile"
        return [
            rejection
            for nodes, claim in extended_claims(pod, self._class_resources, view)
            if claim is not None
            for rejection in found(nodes, view, reason, preemptible=False)
        ]
