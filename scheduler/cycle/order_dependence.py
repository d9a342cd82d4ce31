"""Whether pods that land change what a filter says of like pods that come after them.

Where they do not, the filter is asked once for a whole batch. Room is the exception: it shrinks in a known way
(scheduler/shards/shard_room.py). A filter that is not known here is taken to depend on everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.predicted_peak import PredictedPeak
from placement.plugins import CountsRoom

_Rule = Callable[[Filter, PodInfo, ClusterView], bool]


def is_asked_once(filters: Iterable[Filter], pod: PodInfo, view: ClusterView) -> bool:
    """Whether like pods may be placed on what the filters said of the first, but for room."""
    return all(_UNMOVED.get(one.name, _moved)(one, pod, view) for one in filters)


def _moved(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return False


def _unmoved(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return True


def _without_volumes(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return not pod.volumes


def _counts_room(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return isinstance(one, NodeResourcesFit | CountsRoom)  # scheduler/shards/shard_room.py asks it what counts


def _counts_all_room(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    """Filters of the framework whose room is exact for some pods only."""
    counts_all = getattr(one, "counts_all_room", None)
    return counts_all is not None and bool(counts_all(pod))


def _without_ports(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return not pod.host_ports


def _without_hard_spread(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return not any(constraint.hard for constraint in pod.constraints.spread)


def _without_own_terms(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    # Terms of pods that sit may mean it, too; a like pod adds none.
    return not (pod.constraints.affinity or pod.constraints.anti_affinity)


def _without_thresholds(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    return isinstance(one, PredictedPeak) and not one.thresholds


def _says_so(one: Filter, pod: PodInfo, view: ClusterView) -> bool:
    """Filters of the framework that know best whether they have anything to say at the moment."""
    is_idle = getattr(one, "is_idle", None)
    return is_idle is not None and bool(is_idle(pod, view))


_UNMOVED: Final[Mapping[str, _Rule]] = MappingProxyType(
    {
        "SchedulingGates": _unmoved,
        "NodeUnschedulable": _unmoved,
        "NodeName": _unmoved,
        "TaintToleration": _unmoved,
        "NodeAffinity": _unmoved,
        "Domain": _unmoved,
        "Shard": _unmoved,
        "MachineGroup": _says_so,
        "ElasticQuota": _unmoved,  # QuotaLimit hands in no more pods than the quota admits
        "CardTypes": _unmoved,  # what is rare is looked at every few seconds, not when pods land
        "NodeResourcesFit": _counts_room,
        "NodePorts": _without_ports,
        "VolumeRestrictions": _without_volumes,
        "NodeVolumeLimits": _without_volumes,
        "VolumeBinding": _without_volumes,
        "VolumeZone": _without_volumes,
        "PodTopologySpread": _without_hard_spread,
        "InterPodAffinity": _without_own_terms,
        "NodeDeclaredFeatures": _unmoved,
        "PredictedPeak": _without_thresholds,
        "NominatedPods": _says_so,
        "NominatedDevices": _says_so,
        "OffPeak": _counts_room,
        "PredictedGap": _says_so,
        "IdleCpu": _says_so,
        "Serverless": _says_so,
        "StormHeadroom": _counts_room,
        "GpuDevices": _counts_room,
        "TideRoom": _counts_room,
        "NoResourceClaims": _unmoved,
        "DynamicResources": _says_so,
        "GangTopology": _unmoved,  # members that land confirm the domain that was chosen for the first
        "NodeResourceTopologyMatch": _counts_all_room,
    }
)
