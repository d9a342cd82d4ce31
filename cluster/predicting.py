"""Tables of predicted load made anew, off to the side: for a new model, for a new day, and for the self-check."""

from __future__ import annotations

from datetime import datetime

from cluster.predicted.capacity import KnownCapacities
from cluster.predicted.cluster import PredictedCluster
from cluster.predicted.horizon import Horizon
from cluster.predicted.profiles import Profiles
from cluster.snapshot import Snapshot


def predict(profiles: Profiles, capacities: KnownCapacities, snapshot: Snapshot, now: datetime) -> PredictedCluster:
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
