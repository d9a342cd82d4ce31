"""The self-check of all tables: the cluster's columns, the predicted load, the charges.

What is compared is copied under the lock and made anew without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice

import numpy as np
from msgspec import Struct

from base.arrays import Floats
from cluster.predicted.load import LoadSnapshot
from cluster.predicted.load_parts import PlacedPod, Sums
from cluster.predicted.node_capacity import KnownCapacities
from cluster.predicted.pod_bounds import PodBounds, bounded_amounts, declared_amounts
from cluster.predicted.pod_profiles import ProfileKey, Profiles
from cluster.predicted.pod_runs import under_way
from cluster.tables.changes import Seat
from cluster.tables.self_check import Observed, drifts, observe
from cluster.tracking import TrackedCluster

_TOLERANCE = 1e-3
"""Share of capacity by which the float32 sums of a day may be off: a tenth of a point of score."""

_SHOWN = 5


class SelfCheck(Struct, frozen=True):
    """Whether the tables kept event by event equal tables rebuilt from the objects; drift: what differs."""

    sound: bool
    checked_at: datetime
    nodes: int
    pods: int
    drift: tuple[str, ...]


def check(locked: AbstractContextManager[TrackedCluster], now: datetime) -> SelfCheck:
    """Compare the tables with a rebuild. Takes seconds for a hundred thousand pods, milliseconds of them locked."""
    with locked as cluster:
        cluster.tick(cluster.now)  # replica counts are followed once a second
        observed = observe(cluster.state)
        capacity, capacities, charged = cluster.capacity.copy(), cluster.capacities, cluster.charges.open()
        predicted = cluster.predicted
        placed = {} if predicted is None else dict(predicted.placed)
        load = None if predicted is None else predicted.load.snapshot()
        sums = None if predicted is None else predicted.sums()
        keys = () if predicted is None else tuple(predicted.keys)
        replicas = [] if predicted is None else [predicted.replicas_used(profile) for profile in range(len(keys))]
        half_hour = 0 if predicted is None else under_way(predicted.horizon)
        charges = cluster.charges.drift()
    drift = list(drifts(observed))
    if load is not None and sums is not None:
        drift += _placed_drifts(observed.seat_of, placed)
        if predicted is not None:
            drift += islice(
                _profile_drifts(observed, placed, keys, replicas, predicted.profiles, half_hour, capacity), _SHOWN
            )
        drift += _load_drifts(load, placed, observed.names)
        drift += _sum_drifts(sums, placed, observed.names)
    drift += islice(_capacity_drifts(observed, capacity, capacities), _SHOWN)
    drift += islice(_charge_drifts(observed.seat_of, charged), _SHOWN)
    if charges > 1e-6:
        drift.append(f"virtual requests: sums differ from the charges they are made of by {charges:.1e}")
    n_nodes = sum(node is not None for node in observed.nodes)
    return SelfCheck(sound=not drift, checked_at=now, nodes=n_nodes, pods=len(observed.pods), drift=tuple(drift))


def _placed_drifts(seats: Mapping[str, Seat], placed: Mapping[str, PlacedPod]) -> Iterator[str]:
    """Pods that the predicted load has elsewhere than the cluster."""
    wrong = [
        uid
        for uid in seats.keys() | placed.keys()
        if uid not in seats
        or uid not in placed
        or (seats[uid].node, seats[uid].weight) != (placed[uid].node, placed[uid].weight)
    ]
    for uid in sorted(wrong)[:_SHOWN]:
        yield f"predicted load: pod {uid} sits on {_where(seats.get(uid))}, and is counted on {_where(placed.get(uid))}"
    if len(wrong) > _SHOWN:
        yield f"predicted load: {len(wrong) - _SHOWN} more pods are counted elsewhere than they sit"


def _profile_drifts(
    observed: Observed,
    placed: Mapping[str, PlacedPod],
    keys: Sequence[ProfileKey],
    replicas: Sequence[float],
    profiles: Profiles,
    half_hour: int,
    capacity: Floats,
) -> Iterator[str]:
    """Pods counted with the curve of another service, or of a run that is over; curves for another number of replicas.

    half_hour : the one under way, as `cluster.predicted.pod_runs` counts them
    capacity  : (n_rows, n_resources), NaN = unknown
    """
    wrong = over = 0
    bounds = PodBounds()
    for row, amount in enumerate(capacity):
        bounds.put(row, amount)
    for uid, pod in placed.items():
        seat = observed.seat_of.get(uid)
        if seat is not None:
            key, service = keys[pod.profile], observed.services[seat.service]
            wrong += (key.service, key.declared) != (
                profiles.known_as(service) if profiles.knows(service) else None,
                bounded_amounts(declared_amounts(observed.pods[uid]), bounds.of(seat.node)),
            )
            over += key.run is not None and key.run.end <= half_hour
    if over:
        yield f"predicted load: {over} pods are there, and counted with the curve of a run that is over"
    if wrong:
        yield f"predicted load: {wrong} pods are counted with the curve of another service"
    for key, used in zip(keys, replicas, strict=True):
        if key.service is not None and key.run is None and key.service in observed.service_of:
            there = observed.replicas[observed.service_of[key.service]]
            if there != used:
                yield f"predicted load: {key.service} has {there:g} replicas, its curve is for {used:g}"


def _capacity_drifts(observed: Observed, capacity: Floats, capacities: KnownCapacities) -> Iterator[str]:
    """Nodes whose capacity is not what is known of them."""
    for row, node in enumerate(observed.nodes):
        if node is not None and not np.array_equal(capacity[row], capacities.of(node), equal_nan=True):
            yield f"node {node.name}: its capacity is kept as {capacity[row].tolist()}"


def _charge_drifts(seats: Mapping[str, Seat], charged: Mapping[str, tuple[int, float]]) -> Iterator[str]:
    """Charges of pods that do not sit on the node that is charged."""
    for uid, (node, _) in charged.items():
        if uid not in seats or seats[uid].node != node:
            yield f"virtual requests: pod {uid} is charged to row {node}, and sits on {_where(seats.get(uid))}"


def _where(seat: Seat | PlacedPod | None) -> str:
    return "no node" if seat is None else f"row {seat.node} with weight {seat.weight:g}"


def _load_drifts(load: LoadSnapshot, placed: Mapping[str, PlacedPod], names: tuple[str, ...]) -> Iterator[str]:
    """Nodes whose sum of curves is not that of the pods counted there."""
    n_nodes, n_resources, n_points = load.share.shape
    n_profiles = len(load.usage)
    counted = [pod for pod in placed.values() if pod.weight]
    node = np.array([pod.counts_on for pod in counted], dtype=np.int64)
    profile = np.array([pod.profile for pod in counted], dtype=np.int64)
    weight = np.array([pod.weight for pod in counted], dtype=np.float32)
    usage = load.usage.reshape(n_profiles, n_resources * n_points)
    order = np.argsort(node, kind="stable")
    begins = np.searchsorted(node[order], np.arange(n_nodes + 1))
    off = np.zeros(n_nodes)
    for row in range(n_nodes):  # one by one: the curves of all together are as large as the table itself
        pods = order[begins[row] : begins[row + 1]]
        total = (weight[pods] @ usage[profile[pods]]).reshape(n_resources, n_points)
        share = total * load.per_capacity[row, :, None] + load.base[row]
        off[row] = np.abs(share - load.share[row]).max(initial=0.0)
    for row in np.flatnonzero(~(off <= _TOLERANCE))[:_SHOWN].tolist():  # NaN is off, too
        yield f"predicted load: node {_name(names, row)} is off by {off[row]:.4f} of its capacity"


def _sum_drifts(sums: Sums, placed: Mapping[str, PlacedPod], names: tuple[str, ...]) -> Iterator[str]:
    """Nodes whose other sums are not those of the pods counted there."""
    now, memory = np.zeros_like(sums.now), np.zeros_like(sums.qos_memory)
    unknown = 0
    for pod in placed.values():
        if pod.present:
            now[pod.node] += sums.use_now[pod.profile]
        if pod.weight:
            memory[pod.counts_on, pod.qos] += pod.weight * sums.memory_peak[pod.profile]
            unknown += not sums.known[pod.profile]
    # One pod at least: sums from which all pods were taken away again keep a rest of the last digits.
    one_pod = np.abs(sums.use_now).max(axis=0, initial=0.0), np.abs(sums.memory_peak).max(initial=0.0)
    for what, expected, found, least in (
        ("usage now", now, sums.now, one_pod[0]),
        ("memory by QoS class", memory, sums.qos_memory, one_pod[1]),
    ):
        scale = np.maximum(np.abs(expected).max(axis=0, initial=0.0), np.maximum(least, 1e-9))
        off = (np.abs(expected - found) / scale).max(axis=1, initial=0.0)
        for row in np.flatnonzero(~(off <= _TOLERANCE))[:_SHOWN].tolist():
            yield f"predicted load: {what} of node {_name(names, row)} is not that of its pods"
    if unknown != sums.unknown_pods:
        yield f"predicted load: {sums.unknown_pods} pods of unknown services are counted, there are {unknown}"


def _name(names: tuple[str, ...], row: int) -> str:
    return (names[row] if row < len(names) else "") or f"in row {row}"
