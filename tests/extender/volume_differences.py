"""The volume filters beside what the slow loop says of the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from extender.filters.filter import Filter
from extender.filters.node_volume_limits import NodeVolumeLimits
from extender.filters.volume_binding import VolumeBinding
from extender.filters.volume_restrictions import VolumeRestrictions
from extender.filters.volume_zone import VolumeZone
from scorer.cluster.decoding import decode_pod
from scorer.cluster.objects import PodInfo
from tests.extender.slow_volume_filters import Reasons, SlowCluster
from tests.extender.storage_cluster import StorageCluster

__all__ = ["VOLUME_FILTERS", "differences"]

VOLUME_FILTERS: Sequence[tuple[Filter, Callable[[SlowCluster, PodInfo], dict[str, Reasons]]]] = (
    (VolumeRestrictions(), SlowCluster.volume_restrictions),
    (NodeVolumeLimits(), SlowCluster.node_volume_limits),
    (VolumeZone(), SlowCluster.volume_zone),
    (VolumeBinding(), SlowCluster.volume_binding),
)


def differences(cluster: StorageCluster, slow: SlowCluster, probes: Sequence[Mapping[str, Any]]) -> list[object]:
    """Filter, volumes, our reasons and theirs, where they are not the same."""
    found: list[object] = []
    for probe in probes:
        info = decode_pod(probe)
        for one, slowly in VOLUME_FILTERS:
            ours, theirs = cluster.reasons(one, info), slowly(slow, info)
            if ours != theirs:
                found.append((one.name, probe["spec"]["volumes"], ours, theirs))
    return found
