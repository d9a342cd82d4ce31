"""Headroom for replicas that autoscaled services are expected to add: an example pod of each service, their number,
their load in the evening.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from cluster.predicted.pod_bounds import NO_NODE, Most, bounded_requests
from cluster.predicted.pod_profiles import Profiles
from cluster.tables.state import ClusterState
from cluster.tracking import TrackedCluster
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo

_SERVICES_AT_ONCE: Final = 256
"""The curves of 256 services are 20 MB, and their nodes as many at 5,000 nodes."""


def soft_load(
    extra: AnyFloats,
    usage: AnyFloats,
    requests: AnyFloats,
    free: AnyFloats,
    size: AnyFloats,
    usable: Bools | None = None,
) -> AnyFloats:
    """Expected load of replicas still to come, on the nodes that could take them: (n_nodes, n_resources, n_slots).

        soft[n] = sum over s of extra_s * u_s * part[n, s]

    where part[n, s] distributes a pod over the usable nodes with room for its request, by their size. If no usable node
    has room, the pod presses on all usable nodes. A service that can use no node adds nothing.

    extra    : (n_scaled, n_slots) expected replicas beyond those there are, of autoscaled services
    usage    : (n_scaled, n_resources, n_slots) of one pod
    requests : (n_scaled, 2) of one pod, CPU cores and memory bytes
    free     : (n_nodes, 2) not requested yet
    size     : (n_nodes,) 0 = takes no pods
    usable   : (n_nodes, n_scaled) nodes that pods of each service could use if they were empty; None = every node
    """
    could = np.broadcast_to((size > 0)[:, None], (len(size), len(extra)))
    if usable is not None:
        could = could & usable
    room = could & (free[:, None] >= requests).all(axis=2)  # (n_nodes, n_scaled)
    nodes = np.where(room.any(axis=0), room, could)
    # Most services have the same nodes: each distinct column is multiplied once.
    _, first, of_service = np.unique(np.packbits(nodes, axis=0), axis=1, return_index=True, return_inverse=True)
    part = np.where(nodes[:, first], size[:, None], 0.0)  # (n_nodes, n_distinct)
    part = (part / np.maximum(part.sum(axis=0), np.finfo(np.float32).tiny)).astype(usage.dtype)
    chosen = (np.arange(len(first))[:, None] == of_service.reshape(-1)).astype(usage.dtype)  # (n_distinct, n_scaled)
    load = np.tensordot(
        chosen, extra[:, None].astype(usage.dtype) * usage, axes=1
    )  # (n_distinct, n_resources, n_slots)
    return np.asarray(np.tensordot(part, load, axes=1))


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


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """Autoscaled services that have pods, and the nodes that could take more of these.

    services    : in any order
    examples    : one pod of each service
    replicas    : (n_services,) pods that serve now
    requests    : (n_services, 2) of one pod, cores and bytes
    free        : (n_nodes, 2) not requested yet
    allocatable : (n_nodes, 2) of the empty node
    usable      : (n_masks, n_nodes) nodes that pods could use
    mask_of     : (n_services,) row of `usable`
    most        : that a pod can use
    """

    profiles: Profiles
    days: tuple[date, ...]
    services: Sequence[ServiceKey]
    examples: Sequence[PodInfo]
    replicas: Floats
    requests: Floats
    free: Floats
    allocatable: Floats
    usable: Bools
    mask_of: Ints
    most: Most

    def load(self) -> AnyFloats | None:
        """(n_nodes, n_resources, n_slots) base units; None = no service is expected to grow."""
        found: AnyFloats | None = None
        # Services with equal masks and requests have the same nodes: next to each other they are distributed together.
        order = np.lexsort((self.requests[:, 1], self.requests[:, 0], self.mask_of))
        for start in range(0, len(order), _SERVICES_AT_ONCE):
            load = self._load_of(order[start : start + _SERVICES_AT_ONCE])
            if found is None:
                found = load
            elif load is not None:
                found += load
        return found

    def _load_of(self, block: Ints) -> AnyFloats | None:
        """Of some services, by position."""
        services = [self.services[i] for i in block.tolist()]
        expected = self.profiles.expected_replicas(services, self.days)  # (n_block, n_slots)
        extra = np.maximum(expected - self.replicas[block][:, None], 0.0)
        growing = extra.any(axis=1)
        if not growing.any():
            return None
        grown = block[growing]
        keys = [self.profiles.key_of(self.examples[i], self.services[i], None, self.most) for i in grown.tolist()]
        usage: Floats32 = self.profiles.mean_of(keys, self.replicas[grown], self.days)
        large_enough = (self.allocatable[:, None] >= self.requests[grown]).all(axis=2)  # (n_nodes, n_grown)
        return soft_load(
            extra[growing],
            usage,
            self.requests[grown],
            self.free,
            self.allocatable[:, 0],
            self.usable[self.mask_of[grown]].T & large_enough,
        )


def expected_scale_out(cluster: TrackedCluster) -> ScaleOut | None:
    """Return what `ScaleOut.load` needs, in copies; None = there is no model or no autoscaled service has pods.

    A pod of the service that is there says what one pod requests and declares, and which nodes it could use.
    """
    predicted, state = cluster.predicted, cluster.state
    if predicted is None:
        return None
    # Pods of Job owners come by the clock and are left out (docs/understand/placement.md says why).
    profiles = predicted.profiles
    examples = example_pods(cluster.state, lambda key: profiles.autoscaled(key) and not key.runs_to_completion)
    if not examples:
        return None
    services, pods = list(examples), list(examples.values())
    usable, mask_of = cluster.usable_nodes.usable_by(pods)
    n = min(predicted.load.n_nodes, state.n_rows)
    columns = [state.kinds["cpu"], state.kinds["memory"]]
    allocatable = state.allocatable[:n, columns]
    return ScaleOut(
        profiles=profiles,
        days=predicted.horizon.days,
        services=[state.services[service] for service in services],
        examples=pods,
        replicas=np.array([state.replicas(service) for service in services]),
        requests=requests_of(pods, predicted.bounds.of(None)),
        most=predicted.bounds.of(None),
        free=np.maximum(allocatable - state.requested[:n, columns], 0.0),
        allocatable=allocatable,
        usable=usable[:, :n],
        mask_of=mask_of,
    )
