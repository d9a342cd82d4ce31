"""The cluster while a replay fills it: what is requested and what is measured now. Knows nothing of what comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats
from scorer.scores.least_allocated import nonzero_requests

_SAME_OVERCOMMITMENT = 1.05


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod to be placed.

    requests : (2,) CPU cores and memory bytes; 0 = none
    live     : (n_resources,) what it uses now, or what pods of its service use now
    index    : of the pod in the recording
    """

    service: int
    requests: Floats
    live: Floats
    index: int = 0


class ClusterState:
    """Nodes in columns.

    capacity    : (n_nodes, n_resources) known ones; NaN = not a limit
    requested   : (n_nodes, 2) sum of requests; `requested_nonzero` counts pods without requests at their default
    live_usage  : (n_nodes, n_resources) usage in the last half hour, pods placed since then included
    measured_counts : (n_nodes, n_services) the pods whose usage was measured in that half hour, those that have left
                  since included; one that was there for a third of it counts a third
    counts      : (n_nodes, n_services) pods
    arriving    : (n_services,) pods that are placed in this slot, all of them, wherever they go
    overcommitted : pods so far that fitted nowhere
    service_requests : (n_services, 2) what one more pod of a service would request
    """

    def __init__(self, capacity: Floats, allocatable: Floats, live_base: Floats, service_requests: Floats) -> None:
        self.capacity, self.allocatable, self.service_requests = capacity, allocatable, service_requests
        self.requested = np.zeros_like(allocatable)
        self.requested_nonzero = np.zeros_like(allocatable)
        self.live_usage = live_base.copy()
        self.counts = np.zeros((len(capacity), len(service_requests)))
        self.measured_counts = np.zeros_like(self.counts)
        self.arriving = np.zeros(len(service_requests))
        self.overcommitted = 0

    def feasible(self, pod: PendingPod) -> Bools:
        """Nodes on which the requests fit: (n_nodes,). Where none is, the least overcommitted ones, and it is counted.

        kube-scheduler would leave such a pod pending; here every rule has to carry the same load.
        """
        wanted = self.requested + pod.requests
        # A resource the pod does not ask for cannot keep it out (NodeResourcesFit does the same).
        fits = ((wanted <= self.allocatable * (1 + 1e-9)) | (pod.requests <= 0)).all(axis=1)
        if fits.any():
            return np.asarray(fits)
        self.overcommitted += 1
        over = (wanted / np.maximum(self.allocatable, 1e-12)).max(axis=1)
        return np.asarray(over <= over.min() * _SAME_OVERCOMMITMENT)

    def measure(self, usage: Floats, counts: Floats) -> None:
        """A half hour is over: usage of the nodes (n_nodes, n_resources), by these pods (n_nodes, n_services)."""
        self.live_usage, self.measured_counts = usage, counts

    def add(self, pod: PendingPod, node: int) -> None:
        """The pod runs on `node` from now on."""
        self.requested[node] += pod.requests
        self.requested_nonzero[node] += nonzero_requests(pod.requests)
        self.live_usage[node] += pod.live
        self.counts[node, pod.service] += 1

    def remove(self, service: int, requests: Floats, node: int) -> None:
        """The pod is gone. Live usage is measured anew before it is looked at again."""
        self.requested[node] -= requests
        self.requested_nonzero[node] -= nonzero_requests(requests)
        self.counts[node, service] -= 1
