"""Do the tables, kept up to date event by event, equal tables made anew from the objects?

`observe` copies what is to be compared (quick, under the caller's lock); `drifts` makes the tables anew, pod by pod
and without anything remembered, and says what differs (seconds for a hundred thousand pods, no lock needed).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.tables.changes import Seat
from cluster.tables.columns import MOST_SUM, nonzero_units, per_unit, request_units
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey, service_of_pod
from kube.decoding.jobs import JobInfo
from kube.objects.counted_pods import seat_weight, serves, sits
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo
from kube.objects.rollout import deployment_of, is_superseded, newest_revision, replicas_wanted

_AT_MOST = 100  # drifts of one kind worth reading


@dataclass(frozen=True, slots=True)
class Observed:
    """A copy of the objects and tables of a ClusterState, axes as there. replicas: (n_services,)"""

    now: float
    names: tuple[str, ...]
    row_of: Mapping[str, int]
    kinds: Mapping[str, int]
    nodes: tuple[NodeInfo | None, ...]
    pods: Mapping[str, PodInfo]
    replica_sets: Mapping[str, ReplicaSetInfo]
    jobs: Mapping[str, JobInfo]
    seat_of: Mapping[str, Seat]
    services: tuple[ServiceKey, ...]
    service_of: Mapping[ServiceKey, int]
    replicas: tuple[float, ...]
    alive: Bools
    capacity: Floats
    allocatable: Floats
    requested: Floats
    requested_nonzero: Floats
    pod_count: Ints
    qos_pods: Ints


def self_check(state: ClusterState) -> tuple[str, ...]:
    """What differs, one sentence each; empty = sound."""
    return drifts(observe(state))


def observe(state: ClusterState) -> Observed:
    """Copy what is compared. Objects are never changed in place and so are not copied."""
    return Observed(
        now=state.now,
        names=tuple(state.names),
        row_of=dict(state.row_of),
        kinds=dict(state.kinds),
        nodes=tuple(state.nodes),
        pods=dict(state.pods),
        replica_sets=dict(state.replica_sets),
        jobs=dict(state.jobs),
        seat_of=dict(state.seat_of),
        services=tuple(state.services),
        service_of=dict(state.service_of),
        replicas=tuple(state.replicas(service) for service in range(len(state.services))),
        alive=state.alive.copy(),
        capacity=state.capacity.copy(),
        allocatable=state.allocatable.copy(),
        requested=state.requested.copy(),
        requested_nonzero=state.requested_nonzero.copy(),
        pod_count=state.pod_count.copy(),
        qos_pods=state.qos_pods.copy(),
    )


def drifts(observed: Observed) -> tuple[str, ...]:
    """What differs from tables made anew, one sentence each."""
    found = [*_row_drifts(observed)]
    if found:  # nothing else can be compared
        return tuple(found)
    services, weights, replicas = _expected_services(observed)
    found += _seat_drifts(observed, services, weights)
    found += _column_drifts(observed)
    found += _replica_drifts(observed, replicas)
    return tuple(found)


def _row_drifts(o: Observed) -> Iterable[str]:
    named = {name: row for row, name in enumerate(o.names) if name}
    if named != o.row_of:
        yield f"rows are named {len(named)} times, looked up as {len(o.row_of)}, and the two differ"
    for key, index in o.service_of.items():
        if not (0 <= index < len(o.services)) or o.services[index] != key:
            yield f"service {key}: looked up as number {index}, which is another"
    expected: set[str] = {pod.node for pod in o.pods.values() if sits(pod)} | {n.name for n in o.nodes if n is not None}
    yield from _limited(f"node {name}: has pods or a Node object, but no row" for name in expected - o.row_of.keys())
    yield from _limited(f"node {name}: has a row, but no pods and no Node" for name in o.row_of.keys() - expected)
    for row, node in enumerate(o.nodes):
        if bool(o.alive[row]) != (node is not None) or (node is not None and o.names[row] != node.name):
            yield f"node {o.names[row]}: row {row} is marked alive = {o.alive[row]} and holds {node and node.name}"


def _expected_services(o: Observed) -> tuple[dict[str, ServiceKey], dict[str, float], dict[ServiceKey, float]]:
    """Service and seat weight by pod UID, and replicas by service."""
    of_deployment: dict[ServiceKey, list[ReplicaSetInfo]] = defaultdict(list)
    for replica_set in o.replica_sets.values():
        deployment = deployment_of(replica_set)
        if deployment is not None:
            of_deployment[deployment].append(replica_set)
    superseded = {
        r.uid
        for replica_sets in of_deployment.values()
        for r in replica_sets
        if is_superseded(r, newest_revision(replica_sets), o.now)
    }
    services: dict[str, ServiceKey] = {}
    weights: dict[str, float] = {}
    replicas: dict[ServiceKey, float] = defaultdict(float)
    for uid, pod in o.pods.items():
        owner = o.replica_sets.get(pod.owner_uid) or o.jobs.get(pod.owner_uid)
        service = service_of_pod(
            pod.namespace,
            pod.name,
            pod.owner,
            owner_of_owner=owner.owner if owner else None,
            pod_labels=pod.labels,
        )
        pod_serves = serves(pod, superseded=pod.owner_uid in superseded, now=o.now)
        services[uid] = service
        weights[uid] = seat_weight(service, serves=pod_serves)
        replicas[service] += pod_serves
    there = Counter(services.values())
    for deployment, replica_sets in of_deployment.items():
        wanted = replicas_wanted(replica_sets, there[deployment], o.now)
        if wanted is not None:
            replicas[deployment] = float(wanted)
    return services, weights, replicas


def _seat_drifts(o: Observed, services: Mapping[str, ServiceKey], weights: Mapping[str, float]) -> Iterable[str]:
    sitting = {uid for uid, pod in o.pods.items() if sits(pod)}
    yield from _limited(f"pod {_pod(o, uid)}: is bound, but has no seat" for uid in sitting - o.seat_of.keys())
    yield from _limited(f"pod {_pod(o, uid)}: has a seat, but is not there" for uid in o.seat_of.keys() - sitting)

    def misplaced() -> Iterable[str]:
        for uid in sitting & o.seat_of.keys():
            seat, pod = o.seat_of[uid], o.pods[uid]
            found = _place(o.names[seat.node], o.services[seat.service], seat.weight)
            expected = _place(pod.node, services[uid], weights[uid])
            if found != expected:
                yield f"pod {_pod(o, uid)}: {found}, {expected} by the objects"

    yield from _limited(misplaced())


def _column_drifts(o: Observed) -> Iterable[str]:
    n_rows, n_kinds = len(o.names), len(o.kinds)
    exact = np.zeros((n_rows, n_kinds), dtype=object)  # sums of absurd requests pass 64 bits
    exact_nonzero = np.zeros((n_rows, 2), dtype=object)
    qos = np.zeros((n_rows, 3), dtype=np.int64)
    for pod in o.pods.values():
        if not sits(pod):
            continue
        row = o.row_of[pod.node]
        for kind, amount in pod.requests.items():
            if (column := o.kinds.get(kind)) is not None:
                exact[row, column] += request_units(kind, amount)
        exact_nonzero[row] += nonzero_units(pod)
        qos[row, pod.qos] += 1
    units, nonzero = (np.minimum(sums, MOST_SUM).astype(np.int64) for sums in (exact, exact_nonzero))
    pod_count = qos.sum(axis=1)
    units[:, o.kinds["pods"]] = pod_count
    requested = units / np.array([per_unit(kind) for kind in o.kinds])
    capacity, allocatable = np.zeros((n_rows, n_kinds)), np.zeros((n_rows, n_kinds))
    for row, node in enumerate(o.nodes):
        if node is not None:
            for table, stated in ((capacity, node.capacity), (allocatable, node.allocatable)):
                for kind, amount in stated.items():
                    table[row, o.kinds[kind]] = amount

    kinds = list(o.kinds)
    yield from _table_drifts(o, "capacity", kinds, o.capacity, capacity, "its Node")
    yield from _table_drifts(o, "allocatable", kinds, o.allocatable, allocatable, "its Node")
    yield from _table_drifts(o, "requested", kinds, o.requested, requested, "its pods")
    yield from _table_drifts(
        o, "requested (non-zero)", ["cpu", "memory"], o.requested_nonzero, nonzero / [1000.0, 1.0], "its pods"
    )
    yield from _table_drifts(o, "number of", ["pods"], o.pod_count[:, None], pod_count[:, None], "its pods")
    yield from _table_drifts(o, "pods that are", ["Guaranteed", "Burstable", "BestEffort"], o.qos_pods, qos, "its pods")


def _table_drifts(
    o: Observed, what: str, columns: list[str], found: Floats | Ints, expected: Floats | Ints, by: str
) -> Iterable[str]:
    return _limited(
        f"node {o.names[row] or f'(free row {row})'}: {what} {columns[column]} {found[row, column]:.15g}, "
        f"{expected[row, column]:.15g} by {by}"
        for row, column in np.argwhere(found != expected)
    )


def _replica_drifts(o: Observed, expected: Mapping[ServiceKey, float]) -> Iterable[str]:
    return _limited(
        f"service {key}: {o.replicas[index]:g} replicas, {expected.get(key, 0.0):g} by its pods"
        for key, index in o.service_of.items()
        if o.replicas[index] != expected.get(key, 0.0)
    )


def _place(node: str, service: ServiceKey, weight: float) -> str:
    return f"on {node} for {service} with weight {weight:g}"


def _pod(o: Observed, uid: str) -> str:
    pod = o.pods.get(uid)
    return f"{pod.namespace}/{pod.name}" if pod else f"with UID {uid}"


def _limited(found: Iterable[str]) -> Iterable[str]:
    """Yield the first ones, and how many more there are."""
    more = 0
    for number, drift in enumerate(found):
        if number < _AT_MOST:
            yield drift
        else:
            more += 1
    if more:
        yield f"and {more} more of this kind"
