"""What Prometheus would hold of the sample: as blocks for the days that are over, as a page to scrape from now on.

forecast:pod_usage, forecast:node_usage, forecast:pod_info    as our recording rules make them
                                                              (docs/operate/prometheus.md)
kube_*, node_network_speed_bytes                              the facts that are read beside them, every six hours
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Floats
from forecast.resources import NETWORK, RESOURCES
from testing.local_cluster.objects import machine
from testing.local_cluster.sample import HALF_HOUR, Course, NodeCourse, PodCourse, Sample
from testing.servers.openmetrics import MetricSeries
from trainer.prometheus.recording_rules import NODE_USAGE, POD_INFO, POD_USAGE

_FACTS_EVERY = 12  # half hours
_NODE_INFO: Final = "kube_node_info"
_SEEN_EVERY: Final = 240
"""Seconds between samples of _NODE_INFO, of which any moment of the last day is asked: Prometheus looks back 300 s."""


@dataclass(frozen=True, slots=True)
class _Metric:
    """Of a pod or node. resource: whose usage its value is; None = `value`, now and then."""

    name: str
    labels: Mapping[str, str]
    resource: int | None = None
    value: float = 1.0
    every: int = 1


def past(sample: Sample, until: float, cluster: str) -> Iterator[MetricSeries]:
    """Everything up to `until` (unix seconds). cluster: whose machines the nodes are (objects.machine)."""
    for course, metrics in _everything(sample, cluster):
        times = course.begins + HALF_HOUR  # a recorded value is about the time before it
        there = times <= until
        if there.any():
            for metric in metrics:
                if metric.name == _NODE_INFO:
                    seen = np.arange(int(until) - 86_400, int(until), _SEEN_EVERY)
                    yield MetricSeries(metric.name, metric.labels, seen, np.ones(len(seen)))
                    continue
                chosen = slice(None, None, metric.every)
                values = _values(metric, course)[there][chosen]
                yield MetricSeries(metric.name, metric.labels, times[there][chosen], values)


def page(sample: Sample, now: float, cluster: str) -> str:
    """The same at one moment, in the exposition format."""
    moment, lines = sample.moment(now), []
    for course, metrics in _everything(sample, cluster):
        usage = course.at(moment)
        if usage is not None:
            for metric in metrics:
                value = metric.value if metric.resource is None else float(usage[metric.resource])
                lines.append(f"{_prefix(metric)} {value!r}\n")
    return "".join(lines)


def _prefix(metric: _Metric) -> str:
    return MetricSeries(metric.name, metric.labels, np.zeros(0, dtype=np.int64), np.zeros(0)).prefix


def _values(metric: _Metric, course: Course) -> Floats:
    if metric.resource is None:
        return np.full(len(course.begins), metric.value)
    found: Floats = course.usage[:, metric.resource]
    return found


def _everything(sample: Sample, cluster: str) -> Iterator[tuple[Course, Iterator[_Metric]]]:
    yield from ((pod.course, _of_pod(pod)) for pod in sample.pods)
    yield from ((node.course, _of_node(node, cluster)) for node in sample.nodes)
    always = sample.nodes[0].course
    yield always, _of_replica_sets(sample)


def _of_pod(pod: PodCourse) -> Iterator[_Metric]:
    where = {"namespace": pod.namespace, "pod": pod.name}
    for index, resource in enumerate(RESOURCES):
        yield _Metric(POD_USAGE, where | {"resource": resource.name}, index)
    kind, name = pod.controller
    identity = where | {"uid": f"uid-{pod.name}"}
    made_by = {"created_by_kind": kind, "created_by_name": name, "host_network": "false"}
    yield _Metric(POD_INFO, identity | {"node": pod.node} | made_by)
    for which, amount in zip(("cpu", "memory"), pod.requests, strict=True):
        labels = identity | {"container": "main", "resource": which}
        yield _Metric("kube_pod_container_resource_requests", labels, value=amount, every=_FACTS_EVERY)


def _of_node(node: NodeCourse, cluster: str) -> Iterator[_Metric]:
    for index, resource in enumerate(RESOURCES):
        yield _Metric(NODE_USAGE, {"node": node.name, "resource": resource.name}, index)
    for which, capacity, allocatable in zip(("cpu", "memory"), node.capacity[:2], node.allocatable, strict=True):
        labels = {"node": node.name, "resource": which}
        yield _Metric("kube_node_status_capacity", labels, value=float(capacity), every=_FACTS_EVERY)
        yield _Metric("kube_node_status_allocatable", labels, value=allocatable, every=_FACTS_EVERY)
    yield _Metric(_NODE_INFO, {"node": node.name} | machine(node.name, cluster))
    speed = {"node": node.name, "device": "eth0"}
    yield _Metric("node_network_speed_bytes", speed, value=float(node.capacity[NETWORK]), every=_FACTS_EVERY)


def _of_replica_sets(sample: Sample) -> Iterator[_Metric]:
    for namespace, name, deployment in sample.replica_sets():
        labels = {"namespace": namespace, "replicaset": name, "owner_kind": "Deployment", "owner_name": deployment}
        yield _Metric("kube_replicaset_owner", labels | {"owner_is_controller": "true"}, every=_FACTS_EVERY)
