"""All filters of kube-scheduler by the name of their plugin, in the order in which it runs them.

Source: apis/config/v1/default_plugins.go of v1.36. v1.37 asks NodeName first, which rejects no pod that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from base.errors import UnknownName
from kube.decoding.decoding import Kind
from placement.filters.filter import Filter
from placement.filters.inter_pod_affinity import InterPodAffinity
from placement.filters.node_affinity import NodeAffinity
from placement.filters.node_declared_features import NodeDeclaredFeatures
from placement.filters.node_name import NodeName
from placement.filters.node_ports import NodePorts
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.node_unschedulable import NodeUnschedulable
from placement.filters.node_volume_limits import NodeVolumeLimits
from placement.filters.pod_topology_spread import PodTopologySpread
from placement.filters.scheduling_gates import SchedulingGates
from placement.filters.taint_toleration import TaintToleration
from placement.filters.volume_binding import VolumeBinding
from placement.filters.volume_restrictions import VolumeRestrictions
from placement.filters.volume_zone import VolumeZone

STANDARD_FILTERS: Final[Mapping[str, Callable[[], Filter]]] = {
    one.name: one
    for one in (
        SchedulingGates,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        NodeDeclaredFeatures,
    )
}


def standard_filters(names: Iterable[str] | None = None) -> tuple[Filter, ...]:
    """New filters of these names, in kube-scheduler's order; None = all. Raises UnknownName."""
    wanted = STANDARD_FILTERS.keys() if names is None else set(names)
    for name in wanted:
        if name not in STANDARD_FILTERS:
            raise UnknownName("filter", name, list(STANDARD_FILTERS))
    return tuple(make() for name, make in STANDARD_FILTERS.items() if name in wanted)


def kinds_read(filters: Collection[Filter]) -> tuple[Kind, ...]:
    """Return the kinds of objects that these filters need in addition to nodes and pods."""
    return tuple(dict.fromkeys(kind for one in filters for kind in one.reads))
