"""What our recording rules would have made of a Cluster, as series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from forecast.resources import RESOURCES
from testing.servers.openmetrics import MetricSeries
from trainer.prometheus.recording_rules import NODE_USAGE, POD_INFO, POD_USAGE

if TYPE_CHECKING:
    from testing.measured_cluster.cluster import Cluster

_STEP = 300
_EVALUATED_AFTER = 20
"""Seconds after a tick: a rule group has an offset of its own."""


def recorded_series(cluster: Cluster, since: int) -> Iterator[MetricSeries]:
    """Usage of pods and nodes, and pod_info, evaluated from a unix time on."""
    first = max(0, -(-(since - cluster.start) // _STEP))
    total = cluster.base.copy()
    for life in cluster.lives:
        total[life.node, life.begin : life.end] += life.usage
        ticks = np.arange(max(first, life.begin), life.end)
        ticks = ticks[~cluster.gap[ticks]]
        times = cluster.start + (ticks + 1) * _STEP + _EVALUATED_AFTER
        pod = {"namespace": life.namespace, "pod": life.pod}
        for number, resource in enumerate(RESOURCES):
            usage = life.usage[ticks - life.begin, number]
            yield MetricSeries(POD_USAGE, pod | {"resource": resource.name}, times, usage)
        controller = {"created_by_kind": life.owner[0], "created_by_name": life.owner[1], "host_network": "false"}
        info = pod | {"uid": life.uid, "node": f"node-{life.node}"} | controller
        yield MetricSeries(POD_INFO, info, times, np.ones(len(times)))
    ticks = np.arange(first, cluster.n_ticks)
    ticks = ticks[~cluster.gap[ticks]]
    times = cluster.start + (ticks + 1) * _STEP + _EVALUATED_AFTER
    for node, usage in enumerate(total):
        for number, resource in enumerate(RESOURCES):
            labels = {"node": f"node-{node}", "resource": resource.name}
            yield MetricSeries(NODE_USAGE, labels, times, usage[ticks, number])
