"""A cluster whose load stays level: histories to train on, its nodes and pods as API objects, and what was recorded.

Nodes and services are those of testing/measured_cluster. All nodes use the same now, and so do all pods: less than the
model expects of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from forecast.resources import RESOURCES
from testing.measured_cluster.cluster import N_NODES, make_cluster
from testing.measured_cluster.truth_files import write_history
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.openmetrics import MetricSeries

NODES: Final = tuple(f"node-{number}" for number in range(N_NODES))
NAMESPACES: Final = ("shop", "pay", "media")
FIRST_POD: Final = ("shop", "app-00-5d9c7b8f6-0")
_HISTORY_DAYS: Final = 9
_PODS_OF_A_SERVICE: Final = 4
_USED: Final = {"cpu": 1.0, "memory": 4e9, "disk": 1e5, "network": 1e5, "log": 1e3}
_CAPACITY: Final = {"disk": 1e8, "network": 1e8, "log": 1e7}
_STEP, _RECORDED_SECONDS = 300, 7200


def write_histories(directory: Path, today: date) -> None:
    """`before` ends with the day before yesterday, `until-today` with yesterday."""
    for name, n_days in (("before", _HISTORY_DAYS - 1), ("until-today", _HISTORY_DAYS)):
        write_history(make_cluster(n_days=n_days, start=today - timedelta(days=_HISTORY_DAYS)), directory / name)


def create_objects(writer: ClusterWriter) -> Manifest:
    """Nodes, and the pods of eighteen Deployments on them; returns the ReplicaSet of the first."""
    for namespace in NAMESPACES:
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    nodes = [node(name, memory="10Gi") for name in NODES]  # the fullest of all, which panels show
    for one in nodes:
        one["metadata"]["annotations"] = {CAPACITY_ANNOTATION: json.dumps({k: str(v) for k, v in _CAPACITY.items()})}
    writer.create_many(nodes)
    owners = writer.create_many(
        replica_set(name, namespace=namespace, deployment=deployment, desired_replicas=_PODS_OF_A_SERVICE)
        for namespace, deployment, name in _replica_sets()
    )
    status = running()
    writer.create_many(
        pod(name, namespace=namespace, node=at, owner=owner, cpu="500m", status=status)
        for owner in owners
        for namespace, name, at in _pods_of(owner["metadata"]["namespace"], owner["metadata"]["name"])
    )
    return owners[0]


def recorded() -> list[MetricSeries]:
    """What rules have recorded in the last two hours, and what a shadow and, at midnight, others said of the nodes."""
    last = int(time.time()) // _STEP * _STEP
    times = np.arange(last - _RECORDED_SECONDS, last + 1, _STEP)
    return [MetricSeries(name, labels, times, np.full(len(times), value)) for name, labels, value in _recorded()]


def still_true(series: list[MetricSeries]) -> str:
    """The same in the exposition format, for a target that goes on saying so; rules make the rest of it anew."""
    goes_on = [one for one in series if not one.name.endswith(":30m") and "forecast:nodes_" not in one.name]
    return "".join(f"{one.prefix} {float(one.values[-1])!r}\n" for one in goes_on)


def _recorded() -> Iterator[tuple[str, dict[str, str], float]]:
    for resource in RESOURCES:
        of, used = {"resource": resource.name}, _USED[resource.name]
        for name in NODES:
            yield "forecast:node_usage", of | {"node": name}, used
            yield "forecast:node_usage:30m", of | {"node": name}, used
            for quantile in ("0.5", "0.95"):
                labels = of | {"node": name, "quantile": quantile, "day": "today"}
                yield "forecast_shadow_node_predicted_peak", labels, 2 * used
                yield "forecast_node_predicted_peak", labels | {"as_of": "midnight"}, 2 * used
        for name in ("within_bound", "compared"):
            yield f"forecast:nodes_{name}", of, N_NODES
        for namespace, deployment, replicas in _replica_sets():
            service = of | {"namespace": namespace, "kind": "Deployment", "name": deployment}
            yield "forecast:service_usage:30m", service, used / 2
            yield "forecast:service_pod_usage:30m", service, used / 2 / _PODS_OF_A_SERVICE
            for _, name, _ in _pods_of(namespace, replicas):
                yield "forecast:pod_usage", of | {"namespace": namespace, "pod": name}, used / 2 / _PODS_OF_A_SERVICE
    for namespace, _, replicas in _replica_sets():
        owner = {"created_by_kind": "ReplicaSet", "created_by_name": replicas, "host_network": "false"}
        for _, name, at in _pods_of(namespace, replicas):
            yield "forecast:pod_info", {"namespace": namespace, "pod": name, "uid": name, "node": at} | owner, 1.0


def _replica_sets() -> Iterator[tuple[str, str, str]]:
    """Namespace, Deployment and name."""
    for number in range(18):
        yield NAMESPACES[number % 3], f"app-{number:02d}", f"app-{number:02d}-5d9c7b8f6"


def _pods_of(namespace: str, replicas: str) -> Iterator[tuple[str, str, str]]:
    """Namespace, name and node."""
    first = int(replicas.split("-")[1])
    for number in range(_PODS_OF_A_SERVICE):
        yield namespace, f"{replicas}-{number}", NODES[(first + number) % N_NODES]
