"""Tables of predicted load made anew, off to the side: a copy of the tracked cluster at one moment, and what a model
predicts for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster.predicted.horizon import Horizon
from cluster.predicted.node_capacity import KnownCapacities
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.pod_runs import Run
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tables.changes import Seat
from forecast.service_key import ServiceKey
from kube.objects.objects import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
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


def predict(
    profiles: Profiles, capacities: KnownCapacities, snapshot: ClusterSnapshot, now: datetime
) -> PredictedCluster:
    """The cluster of a snapshot seen through a model. now: aware."""
    predicted = PredictedCluster(profiles, Horizon.at(now, profiles.model.calendar))
    for row, node in snapshot.nodes:
        known = capacities.look_up(node)
        predicted.set_node(row, node.name, known.amount, known.assumed)
    runs = snapshot.runs  # each has a curve of its own
    services = dict.fromkeys(snapshot.services[seat.service] for uid, seat in snapshot.seats.items() if uid not in runs)
    predicted.add_services(tuple(services), snapshot.replicas)
    for uid, seat in snapshot.seats.items():
        key = snapshot.services[seat.service]
        replicas, shadow = snapshot.replicas.get(key, 0.0), snapshot.shadows.get(uid)
        predicted.place(snapshot.pods[uid], key, seat.node, seat.weight, replicas, shadow=shadow, run=runs.get(uid))
    return predicted
