"""Headroom for replicas that autoscaled services are expected to add: gathered from the live cluster.

`scorer.predicted.soft_load` shares it out. Gathering is quick and needs the lock, sharing out is not and does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Floats, Floats32
from scorer.predicted.soft_load import soft_load
from scorer.tracking import TrackedCluster

__all__ = ["ScaleOut", "expected_scale_out"]


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """Autoscaled services that will have more pods than they have.

    extra    : (n_scaled, n_slots) expected pods beyond those there are
    usage    : (n_scaled, n_resources, n_slots) of one pod
    requests : (n_scaled, 2) of one pod
    free     : (n_nodes, 2) not requested yet
    size     : (n_nodes,) allocatable CPU of nodes that take pods
    """

    extra: Floats
    usage: Floats32
    requests: Floats
    free: Floats
    size: Floats

    def load(self) -> AnyFloats:
        """(n_nodes, n_resources, n_slots) base units."""
        return soft_load(self.extra, self.usage, self.requests, self.free, self.size)


def expected_scale_out(cluster: TrackedCluster) -> ScaleOut | None:
    """None = nobody is expected to grow, or there is no model.

    What one pod requests is what a pod of the service that is there requests.
    """
    predicted, state = cluster.predicted, cluster.state
    if predicted is None:
        return None
    requests_of = {}
    for uid, seat in state.seat_of.items():
        if seat.service not in requests_of and predicted.profiles.autoscaled(state.services[seat.service]):
            requests = state.pods[uid].requests
            requests_of[seat.service] = (requests.get("cpu", 0.0), requests.get("memory", 0.0))
    services = sorted(requests_of)
    if not services:
        return None
    keys = [state.services[service] for service in services]
    replicas = np.array([state.replicas(service) for service in services])
    expected = predicted.profiles.expected_replicas(keys, predicted.horizon.days)
    extra = np.maximum(expected - replicas[:, None], 0.0)
    growing = extra.any(axis=1)
    if not growing.any():
        return None
    n = predicted.load.n_nodes
    takes_pods = np.zeros(n, dtype=bool)
    for row, node in enumerate(state.nodes[:n]):
        takes_pods[row] = node is not None and node.ready and not node.unschedulable
    columns = [state.kinds["cpu"], state.kinds["memory"]]
    free = np.zeros((n, 2))
    rows = min(n, state.n_rows)
    free[:rows] = np.maximum(state.allocatable[:rows, columns] - state.requested[:rows, columns], 0.0)
    size = np.zeros(n)
    size[:rows] = np.where(takes_pods[:rows], state.allocatable[:rows, columns[0]], 0.0)
    grown_keys = [key for key, grows in zip(keys, growing, strict=True) if grows]
    return ScaleOut(
        extra=extra[growing],
        usage=predicted.profiles.mean(grown_keys, replicas[growing], predicted.horizon.days),
        requests=np.array([requests_of[service] for service in services])[growing],
        free=free,
        size=size,
    )
