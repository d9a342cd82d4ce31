"""The volume filters beside what the slow loop says of the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kube.decoding.decoding import decode_pod
from kube.objects.objects import PodInfo
from placement.filters.filter import Filter
from placement.filters.node_volume_limits import NodeVolumeLimits
from placement.filters.volume_binding import VolumeBinding
from placement.filters.volume_restrictions import VolumeRestrictions
from placement.filters.volume_zone import VolumeZone
from tests.placement.slow_volume_filters import Reasons, SlowCluster
from tests.placement.storage_cluster import StorageCluster

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
