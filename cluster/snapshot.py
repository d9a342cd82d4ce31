"""The tracked cluster as it was at one moment, for tables that are made from it without its lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.predicted.run_windows import Run
from cluster.tables.changes import Seat
from forecast.service_key import ServiceKey
from kube.objects.objects import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as a rebuild needs it.

    nodes    : rows and their nodes
    seats    : by pod UID, as `pods`; services: by the index that seats name
    replicas : pods that share the load of each service
    shadows  : by pod UID, see TrackedCluster.believe
    runs     : by pod UID, of those that run for a while only
    changed  : UIDs of pods that changed since, in order
    """

    nodes: tuple[tuple[int, NodeInfo], ...]
    pods: Mapping[str, PodInfo]
    seats: Mapping[str, Seat]
    services: tuple[ServiceKey, ...]
    replicas: Mapping[ServiceKey, float]
    shadows: Mapping[str, int]
    changed: dict[str, None]
    runs: Mapping[str, Run] = field(default_factory=dict)
