"""One pod of each service, which says what its pods to come request and declare, and where they may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from base.arrays import Floats
from cluster.predicted.pod_bounds import NO_NODE, Most, bounded_requests
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo


def example_pods(state: ClusterState, is_wanted: Callable[[ServiceKey], bool]) -> dict[int, PodInfo]:
    """One pod of each wanted service that has pods, by the number of the service; one that stays if there is one.

    During a rollout a pod of the new revision says what the pods to come are like.
    """
    found: dict[int, str] = {}
    looked_at: dict[int, float] = {}  # highest weight of a pod so far, by service
    for uid, seat in state.seat_of.items():
        if looked_at.get(seat.service, -1.0) >= seat.weight:
            continue
        looked_at[seat.service] = seat.weight
        if is_wanted(state.services[seat.service]):
            found[seat.service] = uid
    return {service: state.pods[found[service]] for service in sorted(found)}


def requests_of(pods: Sequence[PodInfo], most: Most = NO_NODE) -> Floats:
    """Cores and bytes that each pod requests, as far as it can use them: (n_pods, 2). most: see PodBounds"""
    rows = [bounded_requests(pod.requests, most) for pod in pods]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2)
